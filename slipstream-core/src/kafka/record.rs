//! A record: what is sent to a topic, where a pair of key and value does not say enough.
use crate::Timestamp;

/// What is sent to a topic: a key and a value, and what stands beside them.
///
/// ```
/// use slipstream_core::{Timestamp, kafka::Record};
///
/// let record = Record::new("JFK", 72.5)
///     .header("unit", "fahrenheit")
///     .null_header("station")
///     .timestamp(Timestamp::from_micros(1_700_000_000_000_000))
///     .partition(3);
/// assert_eq!((record.key, record.value, record.partition), ("JFK", 72.5, Some(3)));
/// ```
///
/// A handler returns it where its sink is a topic, or [`Topic::send_record`](super::Topic::send_record) sends it. Where
/// a pair `(key, value)` says enough, that is a record too.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Record<K, V> {
    /// Which partition it goes to, unless one is named. Records of the same key keep their order.
    pub key: K,
    /// What it says.
    pub value: V,
    /// The partition; without one it is chosen by the key, as Java's client does.
    pub partition: Option<i32>,
    /// When it was made; without one when it is sent. Kafka keeps milliseconds.
    pub timestamp: Option<Timestamp>,
    /// Names and bytes beside the value, in the order added; no bytes and none (null) are two things.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl<K, V> Record<K, V> {
    /// A record with nothing but a key and a value.
    #[must_use]
    pub fn new(key: K, value: V) -> Self {
        Record { key, value, partition: None, timestamp: None, headers: Vec::new() }
    }

    /// With a header more. A name may be there several times.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.into(), Some(value.as_ref().to_vec())));
        self
    }

    /// With a header more, whose value is null.
    #[must_use]
    pub fn null_header(mut self, name: impl Into<String>) -> Self {
        self.headers.push((name.into(), None));
        self
    }

    /// Made at this time, rather than when it is sent.
    #[must_use]
    pub fn timestamp(mut self, timestamp: Timestamp) -> Self {
        self.timestamp = Some(timestamp);
        self
    }

    /// For this partition, rather than for the one that its key leads to.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }
}

/// A record that is the caller's.
pub(super) struct Borrowed<'r, K, V> {
    pub(super) key: &'r K,
    pub(super) value: &'r V,
    pub(super) partition: Option<i32>,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) headers: &'r [(String, Option<Vec<u8>>)],
}

impl<'r, K, V> From<&'r (K, V)> for Borrowed<'r, K, V> {
    fn from((key, value): &'r (K, V)) -> Self {
        Borrowed { key, value, partition: None, timestamp: None, headers: &[] }
    }
}

impl<'r, K, V> From<&'r Record<K, V>> for Borrowed<'r, K, V> {
    fn from(record: &'r Record<K, V>) -> Self {
        Borrowed {
            key: &record.key,
            value: &record.value,
            partition: record.partition,
            timestamp: record.timestamp,
            headers: &record.headers,
        }
    }
}
