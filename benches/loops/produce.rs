//! A producer with a window: never an await for one delivery, and all acknowledged at a commit.
//!
//! Deliveries are counted by a thread of `rdkafka`'s, which wakes the one that sends when that waits for one of
//! them. (`BaseProducer::poll` would do without, but spins for what is left of a millisecond.)
use super::{COMMIT_EVERY, Result, native::flush};
use crate::twin::clock::{Clock, Took};
use rdkafka::{
    ClientConfig, ClientContext,
    error::KafkaError,
    message::{DeliveryResult, ToBytes},
    producer::{BaseRecord, Producer as _, ProducerContext, ThreadedProducer},
    types::RDKafkaErrorCode,
};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::{self, Thread},
    time::{Duration, Instant},
};

struct Deliveries {
    delivered: AtomicU64,
    has_failed: AtomicBool,
    /// For how many deliveries `owner` waits.
    awaited: AtomicU64,
    /// The thread that made the producer, and sends.
    owner: Thread,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if result.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        // No other thread counts.
        let delivered = self.delivered.load(Ordering::Relaxed) + 1;
        self.delivered.store(delivered, Ordering::Release);
        if delivered == self.awaited.load(Ordering::Relaxed) {
            self.owner.unpark();
        }
    }
}

pub(crate) struct Producer {
    client: ThreadedProducer<Deliveries>,
    window: u64,
    sent: AtomicU64,
}

impl Producer {
    pub(crate) fn new(config: &ClientConfig, window: u64) -> Result<Self> {
        let (delivered, awaited, has_failed) = Default::default();
        let deliveries = Deliveries { delivered, has_failed, awaited, owner: thread::current() };
        Ok(Producer { client: config.create_with_context(deliveries)?, window, sent: AtomicU64::new(0) })
    }

    /// Hands a record over, when the window has room for it.
    pub(crate) fn send<K: ToBytes + ?Sized, P: ToBytes + ?Sized>(
        &self,
        mut record: BaseRecord<'_, K, P>,
    ) -> Result<()> {
        let sent = self.sent.load(Ordering::Relaxed);
        if sent - self.delivered() >= self.window {
            // For a good part of it, else the two would wait for each other at each record.
            self.wait(sent - self.window / 2);
        }
        loop {
            match self.client.send(record) {
                Ok(()) => break,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => record = back,
                Err((error, _)) => return Err(error.into()),
            }
            self.wait(self.delivered() + 1);
        }
        self.sent.store(sent + 1, Ordering::Relaxed);
        Ok(())
    }

    fn delivered(&self) -> u64 {
        self.client.context().delivered.load(Ordering::Acquire)
    }

    /// Waits for so many deliveries.
    fn wait(&self, delivered: u64) {
        self.client.context().awaited.store(delivered, Ordering::Relaxed);
        while self.delivered() < delivered {
            // No longer, since the other may just have looked.
            thread::park_timeout(Duration::from_millis(1));
        }
    }

    /// Waits until all is acknowledged.
    pub(crate) fn drain(&self) -> Result<()> {
        flush(self.client.client());
        self.wait(self.sent.load(Ordering::Relaxed));
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
) -> Result<Took> {
    let producer = Producer::new(config, window)?;
    // Else there may be half a second in it until librdkafka is connected to those who lead the partitions.
    producer.send(BaseRecord::<(), _>::to(topic).payload(value))?;
    producer.drain()?;
    let clock = Clock::start();
    let mut committed = Instant::now();
    for (n, key) in (0..count).zip(keys.iter().cycle()) {
        producer.send(BaseRecord::to(topic).key(key.as_ref()).payload(value))?;
        if n % 64 == 0 && committed.elapsed() >= COMMIT_EVERY {
            producer.drain()?;
            committed = Instant::now();
        }
    }
    producer.drain()?;
    // The client's end is not in it: `rdkafka` waits for its thread.
    Ok(clock.took())
}
