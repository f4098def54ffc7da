//! A topic as a sink: records are written into the message that a handler is at, and leave when it is published.
//!
//! ```text
//! output ─stage─▶ codecs ─▶ Records, of the message ─published─▶ Producer
//! ```
//!
//! Invariants: what is written and not published never leaves; a record that cannot be written fails its handler, not
//! the commit.
use super::{
    Record, Topic, TopicError,
    native_producer::NativeTopic,
    origin::Origin,
    producer::{Producer, Queue},
    record::Borrowed,
    records::{Draft, Records},
    topic::TopicConfig,
};
use crate::{
    BoxError, codec,
    outgoing::Outgoing,
    sink::Sink,
    transaction::{self, Transaction},
    watch::Watched,
};
use std::sync::{
    Arc, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// Where a topic's records go.
pub(super) struct Outlet {
    /// Before its producer.
    pub(super) topic: Arc<NativeTopic>,
    pub(super) producer: Arc<Producer>,
    /// The cluster has the topic.
    is_known: AtomicBool,
}

/// What Kafka adds to the bytes of a record, at the most.
const OVERHEAD: usize = 36;

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> TopicConfig<K, V> {
    /// Where records go; made by the first that asks, and again after a failure: a flow of which this is no sink, but
    /// whose handlers send to it, opens none when it begins anew.
    pub(super) fn outlet(&self) -> Result<Arc<Outlet>, TopicError> {
        let known = self.outlet.read().unwrap_or_else(PoisonError::into_inner).clone();
        let known = known.filter(|outlet| !outlet.producer.has_failed());
        known.map_or_else(|| self.new_outlet(), Ok)
    }

    #[cold]
    fn new_outlet(&self) -> Result<Arc<Outlet>, TopicError> {
        let mut outlet = self.outlet.write().unwrap_or_else(PoisonError::into_inner);
        match &*outlet {
            Some(outlet) if !outlet.producer.has_failed() => Ok(Arc::clone(outlet)),
            _ => {
                let producer = self.kafka.producer(&self.settings)?;
                let topic = Arc::new(producer.topic(&self.name)?);
                let made = Arc::new(Outlet { topic, producer, is_known: AtomicBool::new(false) });
                *outlet = Some(Arc::clone(&made));
                Ok(made)
            }
        }
    }

    /// As [`outlet`](TopicConfig::outlet), of a topic that the cluster has, and with a producer that has not failed.
    pub(super) async fn open_outlet(self: &Arc<Self>) -> Result<Arc<Outlet>, TopicError> {
        let known = self.outlet.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(outlet) = known
            && outlet.is_known.load(Ordering::Relaxed)
            && !outlet.producer.has_failed()
        {
            return Ok(outlet);
        }
        let config = Arc::clone(self);
        let opened = super::connect::waiting(move |quits| {
            let outlet = config.new_outlet()?;
            outlet.producer.look_up(&config.name, super::connect::LOOK_UP, quits)?;
            outlet.is_known.store(true, Ordering::Relaxed);
            Ok(outlet)
        });
        opened.await?
    }

    /// Writes a record to the end of `records`, or nothing.
    pub(super) fn write(
        &self,
        record: &Borrowed<'_, K, V>,
        origin: Option<&Origin<'_>>,
        outlet: &Outlet,
        records: &mut Records,
    ) -> Result<(), TopicError> {
        let mut draft = records.draft(&outlet.topic);
        self.fill(record, &mut draft)?;
        if let Some(origin) = origin {
            origin.write(&mut draft);
        }
        let limits = outlet.producer.limits();
        let (bytes, value) = draft.sizes();
        let too_large = |bytes, most, setting| {
            Err(TopicError::TooLarge { topic: self.name.to_string(), bytes, most, setting })
        };
        if bytes + OVERHEAD > limits.record_bytes {
            return too_large(bytes + OVERHEAD, limits.record_bytes, "message.max.bytes");
        }
        if value > limits.value_bytes {
            return too_large(value, limits.value_bytes, "queue.buffering.max.kbytes");
        }
        draft.finish(record.partition, self.millis(record)?);
        Ok(())
    }

    fn fill(&self, record: &Borrowed<'_, K, V>, draft: &mut Draft<'_>) -> Result<(), TopicError> {
        let failed = |part| move |cause| TopicError::Encode { topic: self.name.to_string(), part, cause };
        draft.key(|bytes| codec::write(&*self.codecs.key, record.key, bytes)).map_err(failed("the key"))?;
        draft
            .value(|bytes| codec::write(&*self.codecs.value, record.value, bytes))
            .map_err(failed("the value"))?;
        if record.partition.is_some_and(|partition| partition < 0) {
            return Err(self.refusal("its partition is negative"));
        }
        for (name, value) in record.headers {
            if name.contains('\0') {
                return Err(self.refusal("the name of a header has a zero byte"));
            }
            draft.header(name.as_bytes(), value.as_deref());
        }
        Ok(())
    }

    fn millis(&self, record: &Borrowed<'_, K, V>) -> Result<Option<i64>, TopicError> {
        let Some(timestamp) = record.timestamp else { return Ok(None) };
        match timestamp.as_millis() {
            // librdkafka has no other sign for now, and brokers refuse what is before.
            ..=0 => Err(self.refusal("its timestamp is not after the first millisecond of 1970")),
            millis => Ok(Some(millis)),
        }
    }

    fn refusal(&self, reason: &'static str) -> TopicError {
        TopicError::Record { topic: self.name.to_string(), reason }
    }

    /// Puts a record into the message in hand.
    pub(super) fn put(
        &self,
        record: &Borrowed<'_, K, V>,
        watched: Option<&mut Watched>,
        outgoing: &mut Outgoing,
    ) -> Result<(), TopicError> {
        let outlet = self.outlet()?;
        let origin = watched.filter(|_| self.says_origin).and_then(Origin::next);
        let mut written = Ok(());
        let put = outgoing.put(&outlet.producer, |queue: &mut Queue| {
            written = self.write(record, origin.as_ref(), &outlet, &mut queue.records);
            // That it is none is enough to know here; which one is kept with its type.
            if written.is_ok() { Ok(()) } else { Err(BoxError::from("")) }
        });
        debug_assert_eq!(put.is_ok(), written.is_ok());
        written
    }

    /// Writes a record, and says what would be sent.
    pub(super) fn pretend(&self, record: &Borrowed<'_, K, V>) -> Result<(), TopicError> {
        let mut bytes = Vec::new();
        let failed = |part| move |cause| TopicError::Encode { topic: self.name.to_string(), part, cause };
        let has_key = codec::write(&*self.codecs.key, record.key, &mut bytes).map_err(failed("the key"))?;
        let key = std::mem::take(&mut bytes);
        let has_value =
            codec::write(&*self.codecs.value, record.value, &mut bytes).map_err(failed("the value"))?;
        let shown = |is_there: bool, bytes: &[u8]| {
            if is_there { String::from_utf8_lossy(bytes).into_owned() } else { "null".to_owned() }
        };
        tracing::debug!(
            topic = &*self.name,
            key = shown(has_key, &key),
            value = shown(has_value, &bytes),
            partition = ?record.partition,
            headers = record.headers.len(),
            "a record that is not sent, in a dry run"
        );
        Ok(())
    }

    fn stage(&self, record: &Borrowed<'_, K, V>) -> Result<(), TopicError> {
        if self.is_dry_run {
            return self.pretend(record);
        }
        transaction::with(|current| match current {
            Some(Transaction { outgoing, watched, .. }) => self.put(record, watched.as_mut(), outgoing),
            None => {
                Err(self.refusal("there is no message in hand; outside of messages await `topic.send(…)`"))
            }
        })
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Topic<K, V> {
    /// Looks whether the cluster has the topic, and connects its producer, before messages are sent to it. Nothing is
    /// lost when the future is dropped.
    pub(super) async fn open_as_sink(&self) -> Result<(), TopicError> {
        if !self.config.is_dry_run {
            self.config.open_outlet().await?;
        }
        Ok(())
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Sink<(K, V)> for Topic<K, V> {
    const WAITS: bool = false;

    async fn open(&self) -> Result<(), BoxError> {
        Ok(self.open_as_sink().await?)
    }

    fn stage(&self, output: &(K, V)) -> Result<(), BoxError> {
        Ok(self.config.stage(&output.into())?)
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Sink<Record<K, V>> for Topic<K, V> {
    const WAITS: bool = false;

    async fn open(&self) -> Result<(), BoxError> {
        Ok(self.open_as_sink().await?)
    }

    fn stage(&self, output: &Record<K, V>) -> Result<(), BoxError> {
        Ok(self.config.stage(&output.into())?)
    }
}
