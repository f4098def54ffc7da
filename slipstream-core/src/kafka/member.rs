//! A member of a consumer group: the one consumer of a flow's topics of one cluster and group, and the thread
//! that polls it. Without a group, a consumer of all partitions.
//!
//! ```text
//! join ──▶ Member ──commands──▶ poll thread: consumer ──▶ assigned, revoked, commits, seeks
//! open ──▶ Slot ◀───────────────────┘ │
//! feed ──drains──▶ Slot's queue ◀─────┘ librdkafka's fetchers
//! drop ──▶ the thread closes the consumer and tells the group nothing
//! ```
//!
//! Invariants: the consumer is polled all the time, also while its topics are paused, and closed on the thread
//! that polls it, after its queues are gone; all topics have joined before the first is read; the first failure
//! ends all of its sources.
mod broker;
mod commits;
mod context;
mod instances;
mod plan;
mod poll;
mod rebalance;
mod slot;
mod telling;
mod trouble;

pub(super) use broker::{Described, Range};
pub(super) use context::Context;
pub(super) use slot::{Assigned, Phase, Places, Slot};

use super::{Kafka, Offset, Settings, TopicError};
use crate::{
    BoxError,
    source::{Control, Mark},
};
use commits::Note;
use futures::channel::oneshot;
use instances::Claim;
use rdkafka::config::FromClientConfigAndContext;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::Thread,
    time::{Duration, Instant},
};
use trouble::{Failure, Kind, Limit};

/// How an instance is called that has no name.
const DEFAULT_INSTANCE: &str = "default";
/// How long a revocation may wait for the messages in hand. Longer, and the group waits for one slow message;
/// shorter, and slow messages are handled twice.
const LONGEST_REVOCATION: Duration = Duration::from_secs(30);
/// How long a source that is to end waits for partitions when it got none: others may still let some go.
const EMPTY_FOR: Duration = Duration::from_secs(10);
/// How long a flow's end waits for the last commit to the group and for the consumer's closing.
const LEAVES_WITHIN: Duration = Duration::from_secs(20);
/// The group that a consumer without one is made with, which needs a name and commits nothing.
const NO_GROUP: &str = "slipstream-without-group";

/// A member of a group, as those have it who read its topics. The last one lets it go.
pub(super) struct Member {
    pub(super) shared: Arc<Shared>,
}

/// What tells a member from others of a flow.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) servers: String,
    /// `None` for all partitions without a group.
    pub(super) group: Option<Arc<str>>,
    /// Of its consumer.
    settings: Vec<(String, String)>,
}

/// What the poll thread and the others share.
pub(super) struct Shared {
    pub(super) key: Key,
    /// The flow that it is a member for.
    flow: Option<Arc<str>>,
    instance: Option<Arc<str>>,
    has_store: bool,
    revokes_within: Duration,
    /// Between two looks for new partitions, without a group.
    looks_every: Duration,
    slots: Mutex<Vec<Arc<Slot>>>,
    /// A few at a time, since each of them has somebody who waits for it; `None` once nobody takes them.
    commands: Mutex<Option<Vec<Command>>>,
    thread: OnceLock<Thread>,
    /// A source is read, so that its partitions are wanted.
    is_read: AtomicBool,
    /// Nobody has the member any more.
    quits: AtomicBool,
    /// The consumer is being closed.
    closes: AtomicBool,
    failure: Failure,
    limit: Limit,
    heard: Heard,
    /// How often librdkafka has called back.
    calls: AtomicU64,
    /// How many partitions the topics have.
    counts: Mutex<BTreeMap<Arc<str>, i32>>,
    /// Used by the poll thread alone.
    committing: Mutex<telling::Committing>,
}

/// What librdkafka said last of its brokers.
#[derive(Debug, Default)]
struct Heard(Mutex<String>);

impl Heard {
    fn keep(&self, said: &str) {
        said.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
    fn last(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What the poll thread is asked for.
enum Command {
    Describe { topic: Arc<str>, since: Instant, within: Duration, reply: Reply<Described> },
    Resolve { slot: Arc<Slot>, places: Vec<(i32, Offset)>, reply: Reply<Resolved> },
    Ends { slot: Arc<Slot>, reply: Reply<Vec<(Assigned, i64)>> },
    Leave { reply: Reply<()> },
}

/// The numbers that places in a topic have, and what is to be known before one seeks there.
pub(super) struct Resolved {
    pub(super) offsets: BTreeMap<i32, i64>,
    pub(super) ranges: BTreeMap<i32, Range>,
    pub(super) phase: Phase,
    /// Of those asked for, the partitions that are this process's.
    pub(super) ours: Vec<i32>,
}

type Reply<T> = oneshot::Sender<Result<T, TopicError>>;

/// For whom a member is made.
pub(super) struct For<'a> {
    pub(super) kafka: &'a Kafka,
    pub(super) settings: &'a Settings,
    pub(super) topic: &'a Arc<str>,
    pub(super) group: Option<Arc<str>>,
    pub(super) flow: Option<Arc<str>>,
    pub(super) instance: Option<Arc<str>>,
    pub(super) has_store: bool,
}

impl Key {
    pub(super) fn new(settings: &Settings, group: Option<Arc<str>>) -> Self {
        let servers = settings.get("bootstrap.servers").unwrap_or_default().to_owned();
        let settings = settings.consumer().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Key { servers, group, settings: settings.collect() }
    }

    /// Whether it is a member of the same group of the same cluster.
    pub(super) fn is_same(&self, other: &Key) -> bool {
        self.servers == other.servers && self.group == other.group
    }
}

impl Member {
    /// Makes the consumer, and begins to poll it.
    pub(super) fn new(made_for: For<'_>) -> Result<Self, TopicError> {
        let For { kafka, settings, topic, group, flow, instance, has_store } = made_for;
        let key = Key::new(settings, group);
        let named = settings.get("group.instance.id").or(instance.as_deref());
        let claim = match (&key.group, named) {
            (Some(group), Some(named)) => {
                let twice = || TopicError::InstanceTwice {
                    topic: topic.to_string(),
                    group: group.to_string(),
                    instance: named.to_owned(),
                };
                Some(Claim::of(&key.servers, group, named).ok_or_else(twice)?)
            }
            _ => None,
        };
        let millis = |name, default| {
            let given = settings.get(name).and_then(|millis| millis.parse().ok());
            Duration::from_millis(given.unwrap_or(default))
        };
        let config = kafka.consumer_config(
            settings,
            Some(key.group.as_deref().unwrap_or(NO_GROUP)),
            instance.as_deref().filter(|_| key.group.is_some()),
        );
        let shared = Arc::new(Shared {
            key,
            flow,
            instance,
            has_store,
            revokes_within: LONGEST_REVOCATION.min(millis("max.poll.interval.ms", 300_000) / 2),
            looks_every: millis("topic.metadata.refresh.interval.ms", 300_000).max(Duration::from_millis(10)),
            slots: Mutex::default(),
            commands: Mutex::new(Some(Vec::new())),
            thread: OnceLock::new(),
            is_read: AtomicBool::new(false),
            quits: AtomicBool::new(false),
            closes: AtomicBool::new(false),
            failure: Failure::default(),
            limit: Limit::default(),
            heard: Heard::default(),
            calls: AtomicU64::new(0),
            counts: Mutex::default(),
            committing: Mutex::default(),
        });
        let context = Context { shared: Arc::clone(&shared) };
        let consumer =
            context::Consumer::from_config_and_context(&config, context).map_err(TopicError::client)?;
        poll::start(Arc::clone(&shared), consumer, kafka.clone(), claim)?;
        Ok(Member { shared })
    }

    /// Adds a topic, before the first is read.
    pub(super) fn add(
        &self,
        topic: &Arc<str>,
        places: Places,
        control: &Control,
        settings: &Settings,
    ) -> Result<Arc<Slot>, TopicError> {
        let key = Key::new(settings, self.shared.key.group.clone());
        let group = key.group.as_deref().unwrap_or_default().to_owned();
        let mut slots = self.shared.slots_mut();
        if slots.iter().any(|slot| slot.topic == *topic) {
            return Err(TopicError::TopicTwice { topic: topic.to_string(), group });
        }
        if let Some(other) = slots.first().filter(|_| key.settings != self.shared.key.settings) {
            let other = other.topic.to_string();
            return Err(TopicError::TwoSettings { topic: topic.to_string(), other, group });
        }
        let slot = Arc::new(Slot::new(Arc::clone(topic), places, control.clone()));
        slots.push(Arc::clone(&slot));
        Ok(slot)
    }

    /// Asks the brokers for a topic that was added.
    pub(super) async fn describe(&self, topic: &Arc<str>, within: Duration) -> Result<Described, TopicError> {
        let (topic, since) = (Arc::clone(topic), Instant::now());
        let described = self
            .shared
            .ask(Arc::clone(&topic), |reply| Command::Describe { topic, since, within, reply })
            .await?;
        Ok(described)
    }

    /// A topic is read, and so all of them are wanted.
    #[inline]
    pub(super) fn is_read(&self) {
        if !self.shared.is_read.load(Ordering::Relaxed) {
            self.shared.is_read.store(true, Ordering::Release);
            self.shared.unpark();
        }
    }

    /// The flow has committed.
    pub(super) fn committed(&self, slot: &Slot, mark: &Mark) {
        slot.commits().tell(mark);
        self.shared.unpark();
    }

    /// Commits what the group does not have, leaves it, and closes the consumer. Whoever comes second finds it
    /// closed, or waits until it is. A broker that does not answer is waited for no longer than a bound.
    pub(super) async fn leave(&self) {
        let left = self.shared.ask(Arc::from(""), |reply| Command::Leave { reply });
        if tokio::time::timeout(LEAVES_WITHIN, left).await.is_err() {
            tracing::warn!("the group is not left within {LEAVES_WITHIN:?}: its session will end it");
        }
    }

    /// Whether the consumer is not closed.
    pub(super) fn is_open(&self) -> bool {
        !self.shared.closes.load(Ordering::Acquire)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.shared.quits.store(true, Ordering::Release);
        self.shared.unpark();
    }
}

impl Shared {
    /// Asks the poll thread.
    async fn ask<T>(
        &self,
        topic: Arc<str>,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, TopicError> {
        let (reply, answer) = oneshot::channel();
        match &mut *self.commands() {
            Some(commands) => commands.push(command(reply)),
            // Now, and not when this ends, which waits for it.
            None => drop(reply),
        }
        self.unpark();
        match answer.await {
            Ok(answer) => answer,
            Err(_) => {
                Err(TopicError::Read { topic: topic.to_string(), said: "its consumer is closed".into() })
            }
        }
    }

    fn commands(&self) -> MutexGuard<'_, Option<Vec<Command>>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The numbers that these places of a topic have.
    pub(super) async fn resolve(
        &self,
        slot: &Arc<Slot>,
        places: Vec<(i32, Offset)>,
    ) -> Result<Resolved, TopicError> {
        let (topic, slot) = (Arc::clone(&slot.topic), Arc::clone(slot));
        self.ask(topic, |reply| Command::Resolve { slot, places, reply }).await
    }

    /// This process's partitions of a topic, and where each ends now.
    pub(super) async fn ends(&self, slot: &Arc<Slot>) -> Result<Vec<(Assigned, i64)>, TopicError> {
        let (topic, slot) = (Arc::clone(&slot.topic), Arc::clone(slot));
        self.ask(topic, |reply| Command::Ends { slot, reply }).await
    }

    pub(super) fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn slots_mut(&self) -> MutexGuard<'_, Vec<Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its topics, without the lock, which a loop over them would keep.
    fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots_mut().clone()
    }

    fn partitions(&self, topic: &str) -> i32 {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).get(topic).copied().unwrap_or(0)
    }

    fn quits(&self) -> bool {
        self.quits.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is()
    }

    /// Why the source of this topic has ended.
    pub(super) fn failure_of(&self, topic: &str) -> BoxError {
        self.failure.tell(topic)
    }

    /// All of its sources end with this.
    fn fail(&self, cause: BoxError) {
        self.failure.set(cause);
        for slot in self.slots() {
            slot.waker.wake();
        }
    }

    /// No broker has answered for so long.
    fn unreachable(&self, topic: &str, waited: Duration) -> TopicError {
        let said = self.heard.last();
        let said = if said.is_empty() { "there was no answer".into() } else { said };
        TopicError::Unreachable { topic: topic.to_owned(), brokers: self.key.servers.clone(), waited, said }
    }

    /// An error of the brokers' that concerns a topic.
    fn error(&self, topic: &str, kind: Kind, said: String) -> TopicError {
        let (topic, brokers) = (topic.to_owned(), self.key.servers.clone());
        match kind {
            Kind::Unknown => TopicError::Unknown { topic, brokers },
            Kind::Login => TopicError::Login { brokers, reason: said },
            Kind::Refused => TopicError::Refused { topic, brokers, said },
            Kind::Passing | Kind::Ends => TopicError::Read { topic, said },
        }
    }

    /// The text beside an offset that is committed before a flow has committed anything.
    fn first_note(&self, known: Option<i32>) -> Note {
        Note::without_store(self.flow.as_deref(), self.instance(), known)
    }
}
