//! What messages send out, driven as a route drives it, against the cluster inside of this process.
use super::{
    partitions::{COUNTS, java},
    read_back::{Published, read_back, refuse_next, texts},
};
use crate::{
    Timestamp,
    kafka::{Kafka, Record, Topic, record::Borrowed},
    outgoing::{Outbox, Outgoing},
    sink::Sink,
    transaction::{self, Transaction},
};
use futures::{FutureExt, future::poll_immediate};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// What must come at all, comes within it.
const BOUND: Duration = Duration::from_secs(60);

/// A message at a time, and those who have to be flushed.
#[derive(Default)]
struct Message {
    outgoing: Outgoing,
    outboxes: Vec<Arc<dyn Outbox>>,
}

impl Message {
    fn put<'r, K: Send + Sync + 'static, V: Send + Sync + 'static>(
        &mut self,
        topic: &Topic<K, V>,
        record: impl Into<Borrowed<'r, K, V>>,
    ) {
        topic.config.put(&record.into(), None, &mut self.outgoing).unwrap();
    }

    /// Answers whether there is room for more.
    fn publish(&mut self) -> bool {
        self.outgoing.hand_over(|outbox| self.outboxes.push(Arc::clone(outbox)))
    }

    async fn flush(&self) -> Result<(), String> {
        for outbox in &self.outboxes {
            let flushed = tokio::time::timeout(BOUND, outbox.flush()).await.expect("it ends");
            flushed.map_err(|error| told(&*error))?;
        }
        Ok(())
    }
}

/// An error with its causes.
fn told(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        told += &format!(": {error}");
        source = error.source();
    }
    told
}

type Texts = Topic<String, String>;

async fn texts_topic(kafka: &Kafka, name: &str, partitions: i32, settings: &[(&str, &str)]) -> Texts {
    kafka.create_topic(name, partitions).await.unwrap();
    kafka.topic(name).text().settings(settings.iter().copied()).unwrap()
}

fn pair(key: &str, value: impl ToString) -> (String, String) {
    (key.to_owned(), value.to_string())
}

#[tokio::test]
async fn records_of_a_key_keep_their_order_over_messages() {
    let kafka = Kafka::in_process().unwrap();
    let topic = texts_topic(&kafka, "ordered", 4, &[]).await;
    let mut message = Message::default();
    for n in 0..1_000 {
        message.put(&topic, &pair(&format!("key {}", n % 10), n));
        if n % 7 == 0 {
            message.publish();
        }
    }
    message.publish();
    message.flush().await.unwrap();
    let mut by_key: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for record in read_back(&kafka, "ordered", 4) {
        by_key.entry(record.key.clone()).or_default().push(record.text().parse().unwrap());
    }
    assert_eq!(by_key.len(), 10);
    for (n, numbers) in (0..).zip(by_key.values()) {
        assert_eq!(*numbers, (0..100).map(|turn| turn * 10 + n).collect::<Vec<u32>>());
    }
    assert_eq!(message.outboxes.len(), 1, "it is told of once");
}

#[tokio::test]
async fn keys_lead_to_the_partitions_that_javas_client_chooses() {
    for (i, partitions) in COUNTS.into_iter().enumerate() {
        let kafka = Kafka::in_process().unwrap();
        kafka.create_topic("keys", partitions).await.unwrap();
        let topic = kafka.topic::<Vec<u8>, Vec<u8>>("keys").raw();
        let mut message = Message::default();
        for (key, ..) in java() {
            message.put(&topic, &(key, b"value".to_vec()));
        }
        message.publish();
        message.flush().await.unwrap();
        let mut placed: Vec<_> = read_back(&kafka, "keys", partitions)
            .into_iter()
            .map(|record| (record.key.unwrap(), record.partition))
            .collect();
        let mut expected: Vec<_> = java().into_iter().map(|(key, _, at)| (key, at[i])).collect();
        placed.sort();
        expected.sort();
        assert_eq!(placed, expected, "of {partitions} partitions");
    }
}

#[tokio::test]
async fn null_is_not_empty_on_the_wire_neither_as_key_nor_as_value() {
    let kafka = Kafka::in_process().unwrap();
    kafka.create_topic("nulls", 1).await.unwrap();
    let topic = kafka.topic::<Option<String>, Option<String>>("nulls").text();
    let keyless = kafka.topic::<(), Option<u32>>("nulls").json();
    let mut message = Message::default();
    message.put(&topic, &(None, None));
    message.put(&topic, &(Some(String::new()), Some(String::new())));
    message.put(&keyless, &((), None));
    message.put(&keyless, &((), Some(7)));
    message.publish();
    message.flush().await.unwrap();
    let records = read_back(&kafka, "nulls", 1).into_iter();
    let (null, empty) = (None, Some(Vec::new()));
    assert_eq!(
        records.map(|record| (record.key, record.value)).collect::<Vec<_>>(),
        [
            (null.clone(), null.clone()),
            (empty.clone(), empty),
            (null.clone(), null.clone()),
            (null, Some(b"7".to_vec()))
        ]
    );
}

#[tokio::test]
async fn a_record_keeps_its_partition_its_time_and_its_headers() {
    let kafka = Kafka::in_process().unwrap();
    let topic = texts_topic(&kafka, "records", 4, &[]).await;
    let mut message = Message::default();
    for n in 0..3_i64 {
        let record = Record::new("key".to_owned(), format!("value {n}"))
            .partition(2)
            .timestamp(Timestamp::from_micros(1_700_000_000_123_456 + n * 1_000))
            .header("n", n.to_string())
            .header("empty", "")
            .null_header("null")
            .header("n", [0, 255]);
        message.put(&topic, &record);
    }
    message.publish();
    message.flush().await.unwrap();
    let expected: Vec<_> = (0..3_i64)
        .map(|n| Published {
            partition: 2,
            key: Some(b"key".to_vec()),
            value: Some(format!("value {n}").into_bytes()),
            millis: Some(1_700_000_000_123 + n),
            headers: vec![
                ("n".into(), Some(n.to_string().into_bytes())),
                ("empty".into(), Some(Vec::new())),
                ("null".into(), None),
                ("n".into(), Some(vec![0, 255])),
            ],
        })
        .collect();
    assert_eq!(read_back(&kafka, "records", 4), expected);
}

#[tokio::test]
async fn what_cannot_be_written_is_an_error_that_leaves_nothing_behind() {
    let kafka = Kafka::in_process().unwrap();
    let topic = texts_topic(&kafka, "written", 1, &[("message.max.bytes", "2000")]).await;
    let mut message = Message::default();
    message.put(&topic, &pair("a", 1));
    let mut error = |record: Record<String, String>| {
        told(&topic.config.put(&(&record).into(), None, &mut message.outgoing).unwrap_err())
    };
    let record = || Record::new("key".to_owned(), "value".to_owned());
    assert_eq!(
        error(record().partition(-1)),
        "a record for topic `written` cannot be sent: its partition is negative"
    );
    assert!(error(record().timestamp(Timestamp::from_micros(999))).contains("its timestamp"));
    assert!(error(record().header("a\0b", "")).contains("has a zero byte"));
    assert_eq!(
        error(Record::new(String::new(), "x".repeat(2_000)).header("a", "b")),
        "a record for topic `written` has 2038 bytes, and the setting `message.max.bytes` allows 2000"
    );
    message.put(&topic, &pair("b", 2));
    message.publish();
    message.flush().await.unwrap();
    assert_eq!(texts(&kafka, "written", 1), ["1", "2"]);

    let json = kafka.topic::<(), BTreeMap<Vec<u8>, u32>>("written").json();
    let value = ((), BTreeMap::from([(vec![1], 1)]));
    let error = json.config.put(&(&value).into(), None, &mut message.outgoing).unwrap_err();
    assert!(error.to_string().contains("the value of a record for topic `written`"), "{error}");
}

#[tokio::test]
async fn what_is_rolled_back_is_never_sent() {
    let kafka = Kafka::in_process().unwrap();
    let topic = texts_topic(&kafka, "rolled back", 1, &[]).await;
    let mut message = Message::default();
    message.put(&topic, &pair("a", "sent 1"));
    let then = message.outgoing.len();
    message.put(&topic, &Record::new("a".to_owned(), "never".to_owned()).header("a", "b"));
    message.put(&topic, &pair("a", "never"));
    message.outgoing.truncate(then);
    message.put(&topic, &pair("a", "sent 2"));
    message.publish();
    message.put(&topic, &pair("a", "never"));
    message.outgoing.truncate(0);
    message.publish();
    message.flush().await.unwrap();
    assert_eq!(texts(&kafka, "rolled back", 1), ["sent 1", "sent 2"]);
}

#[tokio::test]
async fn a_sink_and_a_call_write_into_the_message_in_hand() {
    let kafka = Kafka::in_process().unwrap();
    let topic = texts_topic(&kafka, "staged", 1, &[]).await;
    topic.open_as_sink().await.unwrap();
    assert!(topic.stage(&pair("a", "outside")).is_err());

    let mut current = Some(Box::new(Transaction::default()));
    transaction::during(&mut current, || {
        topic.stage(&pair("a", "a pair")).unwrap();
        topic.stage(&Record::new("a".to_owned(), "a record".to_owned())).unwrap();
        topic.send("a".into(), "a call".into()).now_or_never().expect("it does not wait").unwrap();
    });
    let mut message =
        Message { outgoing: std::mem::take(&mut current.unwrap().outgoing), outboxes: Vec::new() };
    assert_eq!(texts(&kafka, "staged", 1), [""; 0], "nothing leaves before the message is published");
    message.publish();
    message.flush().await.unwrap();
    assert_eq!(texts(&kafka, "staged", 1), ["a pair", "a record", "a call"]);
}

#[tokio::test]
async fn a_flush_waits_until_all_is_acknowledged() {
    let kafka = Kafka::in_process().unwrap();
    let topic = texts_topic(&kafka, "acknowledged", 1, &[("reconnect.backoff.max.ms", "100")]).await;
    topic.open_as_sink().await.unwrap();
    kafka.mock().unwrap().broker_down(-1).unwrap();
    let mut message = Message::default();
    message.put(&topic, &pair("a", 1));
    message.publish();
    let mut flushes: Vec<_> = (0..3).map(|_| message.outboxes[0].flush()).collect();
    for flush in &mut flushes {
        assert!(poll_immediate(flush).await.is_none(), "the broker is down");
    }
    kafka.mock().unwrap().broker_up(-1).unwrap();
    for flush in flushes {
        tokio::time::timeout(BOUND, flush).await.expect("the broker is up").unwrap();
    }
    assert_eq!(texts(&kafka, "acknowledged", 1), ["1"]);
}

#[tokio::test]
async fn a_flush_does_not_wait_for_the_linger() {
    let kafka = Kafka::in_process().unwrap();
    // More than three minutes.
    let topic = texts_topic(&kafka, "lingering", 4, &[("linger.ms", "200000")]).await;
    let mut message = Message::default();
    for n in 0..5_000 {
        message.put(&topic, &pair(&n.to_string(), n));
        message.publish();
    }
    message.flush().await.unwrap();
    assert_eq!(read_back(&kafka, "lingering", 4).len(), 5_000);
    message.flush().await.unwrap();
}

#[tokio::test]
async fn a_record_that_is_not_acknowledged_in_time_fails_the_flush_with_topic_partition_and_cause() {
    let kafka = Kafka::in_process().unwrap();
    let topic = texts_topic(&kafka, "late", 1, &[("message.timeout.ms", "300"), ("linger.ms", "0")]).await;
    topic.open_as_sink().await.unwrap();
    kafka.mock().unwrap().broker_down(-1).unwrap();
    let mut message = Message::default();
    message.put(&topic, &pair("a", "lost"));
    message.publish();
    let error = message.flush().await.unwrap_err();
    assert!(
        error.starts_with("a record for partition 0 of topic `late` was not delivered: ")
            && error.contains("timed out"),
        "{error}"
    );
}

#[tokio::test]
async fn a_record_that_is_refused_fails_each_flush_and_a_flow_that_begins_anew_has_another_producer() {
    let kafka = Kafka::in_process().unwrap();
    let topic = texts_topic(&kafka, "refused", 1, &[]).await;
    topic.open_as_sink().await.unwrap();
    refuse_next(&kafka);
    let mut message = Message::default();
    message.put(&topic, &pair("a", "lost"));
    message.publish();
    let error = message.flush().await.unwrap_err();
    assert!(error.contains("partition 0 of topic `refused`"), "{error}");
    message.put(&topic, &pair("a", "sent by the flow that ends"));
    message.publish();
    assert_eq!(message.flush().await.unwrap_err(), error);

    topic.open_as_sink().await.unwrap();
    let mut message = Message::default();
    message.put(&topic, &pair("a", "sent"));
    message.publish();
    message.flush().await.unwrap();
    assert!(texts(&kafka, "refused", 1).contains(&"sent".to_owned()));

    // Also where it is no sink of the flow, so that nobody opens it.
    refuse_next(&kafka);
    message.put(&topic, &pair("a", "lost too"));
    message.publish();
    message.flush().await.unwrap_err();
    let mut message = Message::default();
    message.put(&topic, &pair("a", "sent by a call"));
    message.publish();
    message.flush().await.unwrap();
    assert!(texts(&kafka, "refused", 1).contains(&"sent by a call".to_owned()));
}

#[tokio::test]
async fn a_record_for_a_partition_that_is_not_there_fails_the_flush() {
    let kafka = Kafka::in_process().unwrap();
    let topic = texts_topic(&kafka, "partitions", 2, &[]).await;
    topic.open_as_sink().await.unwrap();
    let mut message = Message::default();
    message.put(&topic, &Record::new("a".to_owned(), "b".to_owned()).partition(7));
    message.publish();
    let error = message.flush().await.unwrap_err();
    assert!(
        error.starts_with("a record for partition 7 of topic `partitions` was not delivered: "),
        "{error}"
    );
}

#[tokio::test]
async fn what_a_full_queue_does_not_take_waits_in_order_and_no_message_begins_meanwhile() {
    let kafka = Kafka::in_process().unwrap();
    let settings = [("queue.buffering.max.messages", "10"), ("reconnect.backoff.max.ms", "100")];
    let topic = texts_topic(&kafka, "backlog", 1, &settings).await;
    topic.open_as_sink().await.unwrap();
    kafka.mock().unwrap().broker_down(-1).unwrap();
    let mut message = Message::default();
    let mut expected = Vec::new();
    for n in 0..300 {
        let record = Record::new("a".to_owned(), n.to_string()).header("n", n.to_string());
        message.put(&topic, &record);
        expected.push(n.to_string());
        if n % 3 == 2 {
            let has_room = message.publish();
            assert_eq!(has_room, n < 10, "after {n}");
        }
    }
    let outbox = Arc::clone(&message.outboxes[0]);
    let mut room = outbox.room();
    assert!(poll_immediate(&mut room).await.is_none(), "the broker is down");
    kafka.mock().unwrap().broker_up(-1).unwrap();
    tokio::time::timeout(BOUND, room).await.expect("the broker is up");
    assert!(outbox.has_room());
    message.flush().await.unwrap();
    assert_eq!(texts(&kafka, "backlog", 1), expected);
}

#[tokio::test]
async fn many_records_go_through_a_small_queue_from_several_threads_each_in_its_order() {
    let kafka = Kafka::in_process().unwrap();
    let topic = texts_topic(&kafka, "crowded", 4, &[("queue.buffering.max.messages", "50")]).await;
    topic.open_as_sink().await.unwrap();
    let workers = (0..4).map(|worker| {
        let topic = topic.clone();
        tokio::task::spawn_blocking(move || {
            let mut message = Message::default();
            for n in 0..1_000 {
                message.put(&topic, &pair(&worker.to_string(), n));
                message.publish();
            }
            message
        })
    });
    for worker in workers {
        worker.await.unwrap().flush().await.unwrap();
    }
    let mut by_key: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for record in read_back(&kafka, "crowded", 4) {
        by_key.entry(record.key.clone()).or_default().push(record.text().parse().unwrap());
    }
    assert_eq!(by_key.len(), 4);
    assert!(by_key.values().all(|numbers| numbers.iter().copied().eq(0..1_000)));
}

#[tokio::test]
async fn topics_with_the_same_settings_share_a_producer_and_others_do_not() {
    let kafka = Kafka::in_process().unwrap();
    let one = texts_topic(&kafka, "one", 1, &[]).await;
    let other = kafka.topic::<(), u32>("other").json();
    let patient = texts_topic(&kafka, "patient", 1, &[("linger.ms", "50")]).await;
    let producer = |outlet: Arc<crate::kafka::sink::Outlet>| Arc::as_ptr(&outlet.producer);
    let first = producer(one.config.outlet().unwrap());
    assert_eq!(producer(one.clone().config.outlet().unwrap()), first);
    assert_eq!(producer(other.config.outlet().unwrap()), first);
    assert_ne!(producer(patient.config.outlet().unwrap()), first);
}

#[tokio::test]
async fn the_thread_of_a_producer_ends_with_its_last_handle_also_when_records_are_on_their_way() {
    let kafka = Kafka::in_process().unwrap();
    let topic = texts_topic(&kafka, "dropped", 1, &[]).await;
    topic.open_as_sink().await.unwrap();
    kafka.mock().unwrap().broker_down(-1).unwrap();
    let mut message = Message::default();
    message.put(&topic, &pair("a", 1));
    message.publish();
    let thread = topic.config.outlet().unwrap().producer.thread_runs.clone();
    drop(topic);
    drop(message);
    tokio::task::spawn_blocking(move || {
        while thread.strong_count() > 0 {
            std::thread::yield_now();
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_dry_run_writes_and_sends_nothing() {
    let kafka = Kafka::in_process().unwrap();
    let topic = texts_topic(&kafka, "dry", 1, &[]).await.dry_run();
    topic.open_as_sink().await.unwrap();
    let mut current = Some(Box::new(Transaction::default()));
    transaction::during(&mut current, || topic.stage(&pair("a", 1)).unwrap());
    topic.send("a".into(), "b".into()).await.unwrap();
    assert!(current.unwrap().outgoing.is_empty());
    assert_eq!(texts(&kafka, "dry", 1), [""; 0]);

    // What cannot be written is told all the same.
    let json = kafka.topic::<(), BTreeMap<Vec<u8>, u32>>("dry").json().dry_run();
    assert!(json.send((), BTreeMap::from([(vec![1], 1)])).await.is_err());
}
