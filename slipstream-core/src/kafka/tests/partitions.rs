//! librdkafka chooses the partitions that Java's client does, so the library has no partitioner of its own.
//!
//! The numbers are those of `org.apache.kafka.common.utils.Utils` of kafka-clients 4.3.1:
//! `toPositive(murmur2(key)) % partitions`.
use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use std::sync::Mutex;
use std::time::Duration;

pub(super) const COUNTS: [i32; 4] = [4, 7, 12, 100];

/// A key, what `murmur2` makes of it in Java, and its partition for each of `COUNTS`.
pub(super) fn java() -> Vec<(Vec<u8>, i32, [i32; 4])> {
    let kilobyte: Vec<u8> = (0..=255).cycle().take(1024).collect();
    vec![
        (b"a".to_vec(), -1_563_381_124, [0, 5, 4, 24]),
        (b"".to_vec(), 275_646_681, [1, 2, 9, 81]),
        ("ключ".into(), 2_122_343_024, [0, 4, 8, 24]),
        (kilobyte, -1_290_320_997, [3, 2, 11, 51]),
        (vec![0xff; 1024], -1_011_646_459, [1, 4, 1, 89]),
        // Lengths that leave two and three bytes over, and a byte above 127.
        (b"ab".to_vec(), 316_155_434, [2, 0, 2, 34]),
        (b"abc".to_vec(), 479_470_107, [3, 4, 3, 7]),
        (b"abcd".to_vec(), -1_323_649_548, [0, 5, 8, 0]),
        (vec![0x80, 0xff, 0xfe], 810_766_165, [1, 6, 1, 65]),
    ]
}

/// A record's key, and where it went.
type Placed = (Option<Vec<u8>>, i32);

/// The records that were delivered.
#[derive(Default)]
struct Delivered(Mutex<Vec<Placed>>);

impl ClientContext for Delivered {}

impl ProducerContext for Delivered {
    type DeliveryOpaque = ();

    fn delivery(&self, delivered: &DeliveryResult<'_>, (): ()) {
        let message = delivered.as_ref().unwrap();
        self.0.lock().unwrap().push((message.key().map(<[u8]>::to_vec), message.partition()));
    }
}

/// Sends a record for each key to a topic of so many partitions.
fn send(keys: &[Option<&[u8]>], partitions: i32) -> Result<Vec<Placed>, KafkaError> {
    let cluster = MockCluster::new(1)?;
    cluster.create_topic("keys", partitions, 1)?;
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", cluster.bootstrap_servers()).set("partitioner", "murmur2_random");
    let producer: BaseProducer<Delivered> = config.create_with_context(Delivered::default())?;
    for key in keys {
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to("keys").payload(b"value");
        record.key = *key;
        producer.send(record).map_err(|(error, _)| error)?;
    }
    producer.flush(Duration::from_secs(30))?;
    let mut delivered = producer.context().0.lock().unwrap();
    Ok(std::mem::take(&mut *delivered))
}

#[test]
fn the_numbers_agree_with_each_other() {
    for (key, murmur2, partitions) in java() {
        assert_eq!(COUNTS.map(|count| (murmur2 & i32::MAX) % count), partitions, "{key:x?}");
    }
}

#[test]
fn each_key_goes_to_the_partition_that_javas_client_chooses() {
    let java = java();
    let keys: Vec<Option<&[u8]>> = java.iter().map(|(key, ..)| Some(key.as_slice())).collect();
    for (i, count) in COUNTS.into_iter().enumerate() {
        let mut delivered = send(&keys, count).unwrap();
        let mut expected: Vec<_> = java.iter().map(|(key, _, at)| (Some(key.clone()), at[i])).collect();
        delivered.sort();
        expected.sort();
        assert_eq!(delivered, expected, "of {count} partitions");
    }
}

#[test]
fn an_empty_key_is_not_none() {
    let delivered = send(&[Some(b""), None], 4).unwrap();
    assert!(delivered.contains(&(Some(Vec::new()), 1)), "{delivered:?}");
    assert!(delivered.iter().any(|(key, _)| key.is_none()), "{delivered:?}");
}
