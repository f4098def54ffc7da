//! A producer: takes what messages send out, and says when it is where a crash does not lose it.
//!
//! ```text
//! message published ─hand_over─▶ librdkafka's queue ─▶ broker
//!                        │ full         ▲                 │ acknowledged, or given up
//!                        └─▶ backlog ───┘◀── thread ◀─────┘
//!                                              └─▶ Deliveries ─▶ flush
//! ```
//!
//! Invariants: records of one caller leave in the order of its calls, also through the backlog; the backlog has what
//! messages that had begun still sent out, since none begins until it is empty; the thread ends with the last handle.
use super::{
    Connection, Kafka, Settings, TopicError,
    connect::Refusal,
    deliveries::{Deliveries, Failure, Ticket},
    native_producer::{Event, NativeProducer, NativeTopic, Report},
    records::Records,
};
use crate::{
    BoxError,
    given::unique_id,
    outgoing::{OutQueue, Outbox},
};
use futures::future::BoxFuture;
use rdkafka::{ClientConfig, ClientContext, config::RDKafkaLogLevel, error::KafkaError};
use std::{
    any::Any,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};
use tokio::sync::Notify;

/// How many records of the backlog are given on under its lock. More, and who hands over waits for the lock; fewer, and
/// the lock is taken more often.
const AT_ONCE: usize = 256;

/// How long the thread sleeps where nothing happens. It is woken, so this is for the case that a wake-up is lost.
const IDLE: Duration = Duration::from_secs(1);

/// For how long a flush asks librdkafka to send without linger before it looks whether it still has to.
const HURRY: Duration = Duration::from_millis(10);

/// A producer of a cluster, shared by the topics with the same settings.
pub(super) struct Producer {
    shared: Arc<Shared>,
    #[cfg(test)]
    pub(super) thread_runs: std::sync::Weak<()>,
}

struct Shared {
    id: u64,
    limits: Limits,
    deliveries: Deliveries,
    /// Before the client, which it keeps alive.
    backlog: Mutex<Records>,
    /// Whether there is something in it: only then is its lock taken.
    is_backlogged: AtomicBool,
    room: Notify,
    quits: AtomicBool,
    native: NativeProducer,
    /// After the client: a cluster inside of this process lives as long as its producers.
    _kafka: Kafka,
}

/// What librdkafka refuses at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) record_bytes: usize,
    pub(super) value_bytes: usize,
}

impl Producer {
    /// Starts one.
    pub(super) fn start(
        config: &ClientConfig,
        settings: &Settings,
        kafka: Kafka,
    ) -> Result<Self, TopicError> {
        let limits = Limits::of(config).map_err(TopicError::client)?;
        let connection = Connection::new(settings.get("bootstrap.servers").unwrap_or_default());
        let native = NativeProducer::new(config, connection).map_err(TopicError::client)?;
        let shared = Arc::new(Shared {
            id: unique_id(),
            limits,
            deliveries: Deliveries::default(),
            backlog: Mutex::default(),
            is_backlogged: AtomicBool::new(false),
            room: Notify::new(),
            quits: AtomicBool::new(false),
            native,
            _kafka: kafka,
        });
        let (its, runs) = (Arc::clone(&shared), Arc::new(()));
        #[cfg(test)]
        let thread_runs = Arc::downgrade(&runs);
        let thread = thread::Builder::new().name("slipstream-producer".to_owned()).spawn(move || {
            its.serve();
            // The client with it, for which librdkafka waits for threads of its own.
            drop(its);
            drop(runs);
        });
        // Nobody waits for it.
        thread
            .map_err(|error| TopicError::client(KafkaError::ClientCreation(format!("no thread: {error}"))))?;
        Ok(Producer {
            shared,
            #[cfg(test)]
            thread_runs,
        })
    }

    /// A topic for its records. Make one for each name, and share it.
    pub(super) fn topic(&self, name: &str) -> Result<NativeTopic, TopicError> {
        self.shared.native.topic(name).map_err(TopicError::client)
    }

    /// How many partitions the topic has: see [`Connection::look_up`].
    pub(super) fn look_up(
        &self,
        topic: &str,
        within: Duration,
        quits: &AtomicBool,
    ) -> Result<usize, TopicError> {
        let client = self.shared.native.client();
        client.context().look_up(client, topic, within, quits, || ())
    }

    pub(super) fn limits(&self) -> Limits {
        self.shared.limits
    }

    /// Whether a record was given up: those who flush will always hear of it.
    pub(super) fn has_failed(&self) -> bool {
        self.shared.deliveries.has_failed()
    }

    /// Sends the one record of `records`, and waits until it is acknowledged.
    pub(super) async fn send(&self, mut records: Records) -> Result<(), TopicError> {
        self.shared.room().await;
        let (ticket, delivered) = self.shared.deliveries.call();
        records.stamp(ticket);
        self.shared.give(&mut records);
        match delivered.await {
            Ok(delivered) => Ok(delivered?),
            // The thread has gone, which it does not do while there is a handle.
            Err(_) => Err(TopicError::Fatal { reason: "its producer has ended".to_owned() }),
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.shared.quits.store(true, Ordering::Release);
        self.shared.native.wake();
    }
}

impl Limits {
    fn of(config: &ClientConfig) -> Result<Self, KafkaError> {
        let config = config.create_native_config()?;
        let number = |name| config.get(name).map(|value| value.parse().unwrap_or(usize::MAX));
        let kilobytes = number("queue.buffering.max.kbytes")?;
        Ok(Limits { record_bytes: number("message.max.bytes")?, value_bytes: kilobytes.saturating_mul(1024) })
    }
}

impl Shared {
    /// What the thread does.
    fn serve(&self) {
        /// Also where it panics: nobody would be told of anything any more.
        struct Ends<'s>(&'s Deliveries);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                self.0.refuse(&Refusal::Fatal { reason: "its producer's thread has ended".to_owned() });
            }
        }
        let _ends = Ends(&self.deliveries);
        while !self.quits.load(Ordering::Acquire) {
            self.native.poll(IDLE, |event| self.take(event));
            while self.drain() {}
        }
        let lost = self.deliveries.unacknowledged();
        if lost > 0 {
            tracing::warn!(
                records = lost,
                "a producer was dropped before all of its records were acknowledged"
            );
        }
    }

    fn take(&self, event: Event<'_>) {
        match event {
            Event::Reports(reports) => self.deliveries.settle(reports.map(outcome)),
            Event::Error(code, reason) => {
                if let Some(refusal) = self.native.client().context().hear(code, &reason) {
                    self.deliveries.refuse(&refusal);
                }
            }
            Event::Log(level, place, line) => {
                self.native.client().context().log(as_level(level), &place, &line);
            }
        }
    }

    /// Gives records with their tickets to librdkafka, or keeps them until it has room.
    fn give(&self, records: &mut Records) {
        // Whoever has records in the backlog sees this, and queues behind them.
        if !self.is_backlogged.load(Ordering::Acquire) && !self.produce(records, usize::MAX) {
            return;
        }
        let mut backlog = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        backlog.append(records);
        self.is_backlogged.store(true, Ordering::Release);
        drop(backlog);
        // The thread may have seen the last acknowledgement, and wait for another one.
        self.native.wake();
    }

    /// Answers whether the queue was full.
    fn produce(&self, records: &mut Records, most: usize) -> bool {
        records.produce(most, |ticket, topic, partition, cause| {
            let failure = Failure::Record { topic: topic.name(), partition, cause };
            self.deliveries.settle(std::iter::once((ticket, Some(failure))));
        })
    }

    /// Gives on a part of the backlog; answers whether there may be more that can be given on.
    fn drain(&self) -> bool {
        if !self.is_backlogged.load(Ordering::Acquire) {
            return false;
        }
        let mut backlog = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        if self.produce(&mut backlog, AT_ONCE) {
            return false;
        }
        if backlog.len() > 0 {
            return true;
        }
        self.is_backlogged.store(false, Ordering::Release);
        drop(backlog);
        self.room.notify_waiters();
        false
    }

    fn has_room(&self) -> bool {
        !self.is_backlogged.load(Ordering::Acquire)
    }

    async fn room(&self) {
        loop {
            let room = self.room.notified();
            if self.has_room() {
                return;
            }
            room.await;
        }
    }
}

/// Syslog's level.
fn as_level(level: i32) -> RDKafkaLogLevel {
    match level {
        ..=3 => RDKafkaLogLevel::Error,
        4 => RDKafkaLogLevel::Warning,
        5 => RDKafkaLogLevel::Notice,
        6 => RDKafkaLogLevel::Info,
        7.. => RDKafkaLogLevel::Debug,
    }
}

fn outcome(report: Report<'_>) -> (Ticket, Option<Failure>) {
    let failure = report.error().map(|cause| Failure::Record {
        topic: report.topic(),
        partition: report.partition(),
        cause,
    });
    (Ticket::from_opaque(report.opaque()), failure)
}

impl Outbox for Producer {
    fn id(&self) -> u64 {
        self.shared.id
    }

    fn queue(self: Arc<Self>) -> Box<dyn OutQueue> {
        Box::new(Queue { records: Records::default(), producer: self })
    }

    fn has_room(&self) -> bool {
        self.shared.has_room()
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.shared.room())
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async {
            let flushed = self.shared.deliveries.flush(|| Hurried::begin(&self.shared)).await;
            Ok(flushed.map_err(TopicError::from)?)
        })
    }
}

/// While it lives, librdkafka sends without linger: it does so only while one of its own calls waits, which is why
/// this needs a thread.
struct Hurried {
    _task: tokio::task::JoinHandle<()>,
    is_over: Arc<AtomicBool>,
}

impl Hurried {
    fn begin(shared: &Arc<Shared>) -> Self {
        let (shared, is_over) = (Arc::clone(shared), Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&is_over);
        let task = tokio::task::spawn_blocking(move || {
            while !seen.load(Ordering::Acquire) && !shared.quits.load(Ordering::Acquire) {
                if shared.native.hurry(HURRY) {
                    // The thread has yet to hear of it, or has a backlog to give on.
                    thread::sleep(Duration::from_millis(1));
                }
            }
        });
        Hurried { _task: task, is_over }
    }
}

impl Drop for Hurried {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// The records of one message at a time.
pub(super) struct Queue {
    pub(super) records: Records,
    producer: Arc<Producer>,
}

impl OutQueue for Queue {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn drop_last(&mut self) {
        self.records.drop_last();
    }

    fn hand_over(&mut self) {
        let records = self.records.len();
        if records > 0 {
            let shared = &self.producer.shared;
            self.records.stamp(shared.deliveries.hand_over(records));
            shared.give(&mut self.records);
        }
    }
}
