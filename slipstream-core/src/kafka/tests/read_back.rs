//! What a topic has, read without this library.
use crate::kafka::Kafka;
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    message::Headers,
    types::{RDKafkaApiKey, RDKafkaRespErr},
};
use std::time::{Duration, Instant};

/// A record of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Published {
    pub(super) partition: i32,
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Option<Vec<u8>>,
    pub(super) millis: Option<i64>,
    pub(super) headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Published {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.value.clone().unwrap()).unwrap()
    }
}

/// All records that the topic has by now, each partition in its order.
pub(super) fn read_back(kafka: &Kafka, topic: &str, partitions: i32) -> Vec<Published> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", kafka.bootstrap_servers())
        .set("group.id", "read back")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("fetch.wait.max.ms", "10")
        .create()
        .unwrap();
    let mut assignment = TopicPartitionList::new();
    for partition in 0..partitions {
        assignment.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&assignment).unwrap();
    let (mut published, mut ended, began) = (Vec::new(), 0, Instant::now());
    while ended < partitions {
        assert!(began.elapsed() < Duration::from_secs(60), "{} records, then nothing", published.len());
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => published.push(Published {
                partition: message.partition(),
                key: message.key().map(<[u8]>::to_vec),
                value: message.payload().map(<[u8]>::to_vec),
                millis: message.timestamp().to_millis(),
                headers: message.headers().into_iter().flat_map(|headers| headers.iter()).fold(
                    Vec::new(),
                    |mut all, header| {
                        all.push((header.key.to_owned(), header.value.map(<[u8]>::to_vec)));
                        all
                    },
                ),
            }),
            Some(Err(KafkaError::PartitionEOF(_))) => ended += 1,
            Some(Err(error)) => panic!("{error}"),
            None => {}
        }
    }
    published
}

/// As texts.
pub(super) fn texts(kafka: &Kafka, topic: &str, partitions: i32) -> Vec<String> {
    read_back(kafka, topic, partitions).iter().map(Published::text).collect()
}

/// The next request with records is answered by an error that no second try mends.
pub(super) fn refuse_next(kafka: &Kafka) {
    let error = RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_RECORD;
    kafka.mock().unwrap().request_errors(RDKafkaApiKey::Produce, &[error]);
}
