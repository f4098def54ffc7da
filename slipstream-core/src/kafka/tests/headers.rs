//! Headers are read where there are any, whatever stands before them: that there are none is seen from what
//! librdkafka has fetched, since to ask it costs a third of a message.
use super::fake::cluster;
use crate::{Message, kafka::Offset};
use futures::TryStreamExt;
use rdkafka::{
    ClientConfig,
    message::{Header, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, Producer},
};
use std::time::Duration;

type Headers = Vec<(String, Vec<u8>)>;
type Bytes = Option<Vec<u8>>;

/// As many headers as it says, for each of the ways in which a key and a value can be there or not.
fn records() -> Vec<(Bytes, Bytes, Headers)> {
    let parts = [None, Some(Vec::new()), Some(vec![0; 3]), Some(vec![7; 200])];
    let headers = |count: usize| (0..count).map(|n| (format!("h{n}"), vec![0; n])).collect::<Headers>();
    // 64 is the first number that takes two bytes.
    let counts = [0, 1, 2, 63, 64, 128];
    let mut all = Vec::new();
    for key in &parts {
        for value in &parts {
            all.extend(counts.map(|count| (key.clone(), value.clone(), headers(count))));
        }
    }
    all
}

async fn read_as_sent(compression: &str, batch: &str) {
    let kafka = cluster(&[("headers", 1)]).await;
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", kafka.bootstrap_servers()).set("linger.ms", "20");
    config.set("compression.type", compression).set("batch.num.messages", batch);
    let producer: BaseProducer = config.create().unwrap();
    let records = records();
    for (key, value, headers) in &records {
        let native = headers
            .iter()
            .fold(OwnedHeaders::new(), |all, (key, value)| all.insert(Header { key, value: Some(value) }));
        let mut record = BaseRecord::<[u8], [u8]>::to("headers").headers(native);
        record.key = key.as_deref();
        record.payload = value.as_deref();
        producer.send(record).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(Duration::from_secs(60)).unwrap();
    let topic = kafka.topic::<Bytes, Bytes>("headers").raw().until(Offset::End);
    let read: Vec<Message<Bytes, Bytes>> = topic.stream().try_collect().await.unwrap();
    let read: Vec<_> =
        read.into_iter().map(|message| (message.key, message.value, message.headers)).collect();
    let wrong = read.iter().zip(&records).find(|(read, sent)| read != sent);
    assert_eq!((wrong, read.len()), (None, records.len()), "with {compression} and batches of {batch}");
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_are_read_as_they_were_sent_after_any_key_and_value() {
    for compression in ["none", "lz4"] {
        for batch in ["1", "7", "10000"] {
            read_as_sent(compression, batch).await;
        }
    }
}
