//! A message as its topic gives it: its bytes, to be decoded where a handler takes it.
//!
//! ```text
//! Arc of batch, codecs, topic ◀── Encoded (a number in the batch) ──FromItem──▶ Message<K, V>, or V alone
//! ```
//!
//! Invariant: decoding happens once for each handling, and an error of it names where the message stands.
use super::{TopicError, batch::Batch, topic::Codecs};
use crate::{
    BoxError, FromItem, Message, Timestamp,
    codec::{self, Codec},
    transaction,
};
use std::{fmt, sync::Arc};

/// A message of a [`Topic`](super::Topic), not yet decoded. A handler takes a [`Message`] or its value in its
/// place, and whoever takes it as it is has the bytes too. Clones share them.
///
/// ```
/// use slipstream_core::{Message, Result, kafka::Encoded};
///
/// fn length(message: Encoded<String, String>) -> Result<(usize, String)> {
///     let bytes = message.value_bytes().unwrap_or_default().len();
///     Ok((bytes, message.value()?))
/// }
/// ```
pub struct Encoded<K, V> {
    filled: Arc<Filled<K, V>>,
    at: usize,
}

/// Some messages of a topic, and how they are read.
pub(super) struct Filled<K, V> {
    pub(super) batch: Batch,
    pub(super) codecs: Arc<Codecs<K, V>>,
    pub(super) topic: Arc<str>,
}

impl<K, V> Encoded<K, V> {
    /// The message number `at` of a batch, which has so many.
    #[inline]
    pub(super) fn new(filled: &Arc<Filled<K, V>>, at: usize) -> Self {
        Encoded { filled: Arc::clone(filled), at }
    }
}

impl<K: 'static, V: 'static> Encoded<K, V> {
    /// Decodes all of it.
    ///
    /// # Errors
    /// [`TopicError::Decode`] when its key or its value is not what the topic's codec reads.
    pub fn message(&self) -> Result<Message<K, V>, TopicError> {
        Ok(Message {
            key: self.key()?,
            value: self.value()?,
            topic: Arc::clone(&self.filled.topic),
            partition: self.partition(),
            offset: self.offset(),
            timestamp: self.timestamp(),
            headers: self.headers().map(|(name, value)| (name.to_owned(), value.to_vec())).collect(),
            replayed: transaction::is_replayed(),
        })
    }

    /// Decodes its key.
    ///
    /// # Errors
    /// [`TopicError::Decode`] when it is not what the topic's codec reads.
    pub fn key(&self) -> Result<K, TopicError> {
        self.decode("the key", &*self.filled.codecs.key, self.key_bytes())
    }

    /// Decodes its value.
    ///
    /// # Errors
    /// [`TopicError::Decode`] when it is not what the topic's codec reads.
    pub fn value(&self) -> Result<V, TopicError> {
        self.decode("the value", &*self.filled.codecs.value, self.value_bytes())
    }

    fn decode<T: 'static>(
        &self,
        part: &'static str,
        codec: &dyn Codec<T>,
        bytes: Option<&[u8]>,
    ) -> Result<T, TopicError> {
        codec::read(codec, bytes).map_err(|cause| TopicError::Decode {
            topic: self.topic().to_owned(),
            partition: self.partition(),
            offset: self.offset(),
            part,
            cause,
        })
    }
}

impl<K, V> Encoded<K, V> {
    /// The topic's name.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.filled.topic
    }

    /// Its partition.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.filled.batch.get(self.at).map_or(0, |record| record.partition)
    }

    /// Where it stands in its partition.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.filled.batch.get(self.at).map_or(0, |record| record.offset)
    }

    /// When it was made, or when the broker took it; where the topic has either.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.filled.batch.get(self.at)?.timestamp()
    }

    /// Its headers, in the order written. A value that is null is given as no bytes.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let batch = &self.filled.batch;
        batch.get(self.at).into_iter().flat_map(|record| batch.headers(record))
    }

    /// The bytes of its key; `None` where that is null.
    #[must_use]
    pub fn key_bytes(&self) -> Option<&[u8]> {
        self.filled.batch.key(self.filled.batch.get(self.at)?)
    }

    /// The bytes of its value; `None` where that is null.
    #[must_use]
    pub fn value_bytes(&self) -> Option<&[u8]> {
        self.filled.batch.value(self.filled.batch.get(self.at)?)
    }
}

impl<K, V> Clone for Encoded<K, V> {
    #[inline]
    fn clone(&self) -> Self {
        Encoded::new(&self.filled, self.at)
    }
}

impl<K, V> fmt::Debug for Encoded<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoded")
            .field("topic", &self.topic())
            .field("partition", &self.partition())
            .field("offset", &self.offset())
            .finish_non_exhaustive()
    }
}

impl<K: 'static, V: 'static> FromItem<Encoded<K, V>> for Message<K, V> {
    #[inline]
    fn from_item(item: Encoded<K, V>) -> Result<Self, BoxError> {
        Ok(item.message()?)
    }
}

impl<K: 'static, V: 'static> FromItem<Encoded<K, V>> for V {
    #[inline]
    fn from_item(item: Encoded<K, V>) -> Result<V, BoxError> {
        Ok(item.value()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{KeyCodec, Text};

    fn encoded(key: Option<&[u8]>, value: Option<&[u8]>) -> Encoded<String, String> {
        let mut batch = Batch::default();
        batch.push((3, 41, 1_000), key, value);
        batch.header(b"from", Some(b"here"));
        let codecs = Arc::new(Codecs { key: Box::new(KeyCodec), value: Box::new(Text) });
        Encoded::new(&Arc::new(Filled { batch, codecs, topic: Arc::from("words") }), 0)
    }

    #[test]
    fn a_handler_takes_the_message_or_its_value_alone() {
        let item = encoded(Some(b"k"), Some(b"v"));
        let message: Message<String, String> = FromItem::from_item(item.clone()).unwrap();
        assert_eq!((&*message.key, &*message.value, &*message.topic), ("k", "v", "words"));
        assert_eq!((message.partition, message.offset), (3, 41));
        assert_eq!(message.timestamp, Timestamp::from_secs(1));
        assert_eq!(message.headers, [("from".to_owned(), b"here".to_vec())]);
        let value: String = FromItem::from_item(item).unwrap();
        assert_eq!(value, "v");
    }

    #[test]
    fn what_cannot_be_decoded_is_named_by_where_it_stands() {
        let error = encoded(Some(b"\xff"), Some(b"v")).message().unwrap_err();
        assert_eq!(error.to_string(), "the key of message 41 of partition 3 of topic `words` cannot be read");
        let error = encoded(Some(b"k"), None).value().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the value of message 41 of partition 3 of topic `words` cannot be read"
        );
    }
}
