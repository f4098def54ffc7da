//! A message: a value with its key, and where it stands in its topic.
use crate::Timestamp;
use std::sync::Arc;

/// What a source with keys gives. A handler takes the whole message, or its value alone.
///
/// ```
/// use slipstream_core::Message;
/// let message = Message::new("JFK", 72.5);
/// assert_eq!((message.key, message.value, message.partition), ("JFK", 72.5, 0));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Message<K, V> {
    /// Its key; `()` where the topic has none.
    pub key: K,
    /// What it says.
    pub value: V,
    /// The topic's name, shared by all messages of the topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// Where it stands in its partition.
    pub offset: i64,
    /// When it was made, or when the broker took it; where the topic has either.
    pub timestamp: Option<Timestamp>,
    /// Names and bytes beside the value, in the order written.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Whether it was handled before, and comes again because a repair asked for it.
    pub replayed: bool,
}

impl<K, V> Message<K, V> {
    /// A message of partition 0, offset 0, of a topic without a name: for tests that call a handler.
    #[must_use]
    pub fn new(key: K, value: V) -> Self {
        Message {
            key,
            value,
            topic: Arc::from(""),
            partition: 0,
            offset: 0,
            timestamp: None,
            headers: Vec::new(),
            replayed: false,
        }
    }
}
