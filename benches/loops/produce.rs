//! A producer with a window: never an await for one delivery, and all acknowledged at a commit.
use super::{COMMIT_EVERY, Result};
use rdkafka::{
    ClientConfig, ClientContext,
    error::KafkaError,
    message::{DeliveryResult, ToBytes},
    producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext},
    types::RDKafkaErrorCode,
};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

#[derive(Default)]
struct Deliveries {
    delivered: AtomicU64,
    has_failed: AtomicBool,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        // One thread polls.
        self.delivered.store(self.delivered.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if result.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
    }
}

pub(crate) struct Producer {
    client: BaseProducer<Deliveries>,
    window: u64,
    sent: AtomicU64,
}

impl Producer {
    pub(crate) fn new(config: &ClientConfig, window: u64) -> Result<Self> {
        let client = config.create_with_context(Deliveries::default())?;
        Ok(Producer { client, window, sent: AtomicU64::new(0) })
    }

    fn in_flight(&self) -> u64 {
        self.sent.load(Ordering::Relaxed) - self.client.context().delivered.load(Ordering::Relaxed)
    }

    /// Hands a record over, when the window has room for it.
    pub(crate) fn send<K: ToBytes + ?Sized, P: ToBytes + ?Sized>(
        &self,
        mut record: BaseRecord<'_, K, P>,
    ) -> Result<()> {
        while self.in_flight() >= self.window {
            self.client.poll(Duration::from_millis(1));
        }
        loop {
            match self.client.send(record) {
                Ok(()) => break,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => record = back,
                Err((error, _)) => return Err(error.into()),
            }
            self.client.poll(Duration::from_millis(1));
        }
        self.sent.store(self.sent.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes note of what was delivered.
    pub(crate) fn poll(&self) {
        self.client.poll(Duration::ZERO);
    }

    /// Waits until all is acknowledged.
    pub(crate) fn drain(&self) -> Result<()> {
        while self.in_flight() > 0 {
            // In steps, since a poll lasts as long as it may; an error says that there is more.
            let _more = self.client.flush(Duration::from_millis(1));
        }
        if self.client.context().has_failed.load(Ordering::Relaxed) {
            return Err("a delivery failed".into());
        }
        Ok(())
    }
}

/// Sends `count` records, by turns with each of the keys, and has all acknowledged each 100 ms.
pub(crate) fn produce(
    config: &ClientConfig,
    window: u64,
    topic: &str,
    count: u64,
    keys: &[impl AsRef<[u8]>],
    value: &[u8],
) -> Result<()> {
    let producer = Producer::new(config, window)?;
    let mut committed = Instant::now();
    for (n, key) in (0..count).zip(keys.iter().cycle()) {
        producer.send(BaseRecord::to(topic).key(key.as_ref()).payload(value))?;
        if n % 64 == 0 {
            producer.poll();
            if committed.elapsed() >= COMMIT_EVERY {
                producer.drain()?;
                committed = Instant::now();
            }
        }
    }
    producer.drain()
}
