//! A topic as a source of a flow: it joins its group, is opened, hears of commits, and leaves.
//!
//! ```text
//! Topic ──seeks()──▶ TopicSource ──join──▶ Member, Slot ──open──▶ TopicFeed
//!                         │ committed ─▶ the slot's newest mark ─▶ the group
//!                         └ leave ─▶ last commit, closed
//! ```
//!
//! Invariants: a source joins once; what joins under one flow, cluster and group shares a member; `committed` waits
//! for nobody.
use super::{
    Encoded, Topic, TopicError,
    feed::TopicFeed,
    member::{For, Key, Member, Places, Slot},
    topic::TopicConfig,
};
use crate::{
    AsyncIterable, BoxError, Result,
    error::{Cause, Fault, FaultOf},
    position::Positions,
    source::{AnySeekable, Chunk, Control, Feed, Joined, Joining, Mark, Opens, Seeks, SourceName},
};
use futures::{
    FutureExt, Stream, StreamExt,
    future::{BoxFuture, ready},
};
use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};

/// How long a start waits for a broker that answers. Shorter, and a cluster that is just starting is missed;
/// longer, and a wrong port is told late.
pub(super) const JOINS_WITHIN: Duration = Duration::from_secs(30);

/// By what the clones of a topic find who reads it.
#[derive(Clone, Default)]
pub(super) struct Reading(Arc<Mutex<(Weak<Member>, Weak<Slot>)>>);

impl Reading {
    fn begins(&self, member: &Arc<Member>, slot: &Arc<Slot>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            (Arc::downgrade(member), Arc::downgrade(slot));
    }

    /// Whoever reads it now.
    pub(super) fn now(&self) -> Option<(Arc<Member>, Arc<Slot>)> {
        let reading = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some((reading.0.upgrade()?, reading.1.upgrade()?))
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> AsyncIterable for Topic<K, V> {
    type Item = Encoded<K, V>;

    /// A flow reads it through [`seeks`](AsyncIterable::seeks); read so, it is read as by
    /// [`stream`](Topic::stream), and ends with what cannot be read.
    fn open(&self) -> impl Stream<Item = Encoded<K, V>> + Send + 'static {
        self.encoded().scan((), |(), item| {
            ready(item.map_err(|error| tracing::error!("a topic read without a flow ends: {error}")).ok())
        })
    }

    fn identity(&self) -> Option<SourceName> {
        let TopicConfig { kafka, group, is_broadcast, name, .. } = &*self.config;
        let servers = kafka.bootstrap_servers();
        Some(match group {
            _ if *is_broadcast => format!("topic {name} at {servers}, all of it"),
            Some(group) => format!("topic {name} at {servers}, group {group}"),
            // The flow's own, whose name is not known here.
            None => format!("topic {name} at {servers}"),
        })
    }

    fn seeks(&self) -> Option<Seeks<Encoded<K, V>>> {
        // Another flow may read a clone of it, in another group.
        let topic = Topic { control: self.control.for_one_reader(), ..self.clone() };
        Some(Seeks::of_member(TopicSource { topic, joined: Mutex::default() }))
    }
}

/// A topic as a flow has it.
struct TopicSource<K, V> {
    topic: Topic<K, V>,
    /// The flow has the member, until it ends or is dropped: the member's slots have what leads here.
    joined: Mutex<Option<(Weak<Member>, Arc<Slot>)>>,
}

impl<K, V> TopicSource<K, V> {
    fn joined(&self) -> Option<(Arc<Member>, Arc<Slot>)> {
        let joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        let (member, slot) = joined.as_ref()?;
        Some((member.upgrade()?, Arc::clone(slot)))
    }
}

impl<K, V> TopicConfig<K, V> {
    /// Under which group it is read in a flow of this name.
    fn group_in(&self, flow: Option<&Arc<str>>) -> Result<Option<Arc<str>>, TopicError> {
        if self.is_broadcast {
            return Ok(None);
        }
        let group = self.group.as_ref().or(flow).filter(|group| !group.is_empty());
        group.cloned().map(Some).ok_or_else(|| TopicError::NoGroup { topic: self.name.to_string() })
    }

    pub(super) fn places(&self) -> Places {
        Places { start: self.start, starts: self.starts.clone(), until: self.until }
    }
}

/// Makes a topic part of the member that the flow has for its group, and answers its name in the store.
pub(super) async fn join<K, V>(
    topic: &Topic<K, V>,
    flow: &Joining,
    within: Duration,
) -> Result<(Arc<Member>, Arc<Slot>, SourceName), TopicError> {
    let config = &topic.config;
    let group = config.group_in(flow.flow.as_ref())?;
    let key = Key::new(&config.settings, group.clone());
    let make = || {
        Member::new(For {
            kafka: &config.kafka,
            settings: &config.settings,
            topic: &config.name,
            group: group.clone(),
            flow: flow.flow.clone(),
            instance: flow.instance.clone(),
            has_store: flow.has_store,
        })
    };
    let member = flow.share(|member: &Member| member.shared.key.is_same(&key), make)?;
    let slot = member.add(&config.name, config.places(), &topic.control, &config.settings)?;
    let described = member.describe(&config.name, within).await?;
    let (cluster, group) = (described.cluster, group.as_deref().unwrap_or_default().to_owned());
    Ok((member, slot, format!("kafka:{cluster}/{group}/{}", config.name)))
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> AnySeekable for TopicSource<K, V> {
    fn start(&self) -> BoxFuture<'_, Result<Positions>> {
        ready(Ok(Positions::default())).boxed()
    }

    fn control(&self) -> Option<&Control> {
        Some(&self.topic.control)
    }

    fn concurrency(&self) -> usize {
        self.topic.config.concurrency
    }

    fn committed<'a>(&'a self, mark: &'a Mark, _: &'a Joining) -> BoxFuture<'a, Result<()>> {
        if let Some((member, slot)) = self.joined() {
            member.committed(&slot, mark);
        }
        ready(Ok(())).boxed()
    }

    fn last_committed(&self) -> BoxFuture<'_, Result<Option<Mark>>> {
        ready(Ok(None)).boxed()
    }

    fn is_member(&self) -> bool {
        true
    }

    fn join<'a>(&'a self, flow: &'a Joining) -> BoxFuture<'a, Result<Option<SourceName>>> {
        async move {
            let (member, slot, name) = join(&self.topic, flow, JOINS_WITHIN).await?;
            self.topic.reading.begins(&member, &slot);
            *self.joined.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((Arc::downgrade(&member), slot));
            Ok(Some(name))
        }
        .boxed()
    }

    fn called(&self) -> Option<&str> {
        Some(&self.topic.config.name)
    }

    fn leave<'a>(&'a self, _: &'a Joining) -> BoxFuture<'a, Result<()>> {
        async move {
            if let Some((member, _)) = self.joined() {
                // Whoever comes second finds it closed.
                member.leave().await;
            }
            Ok(())
        }
        .boxed()
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Opens<Encoded<K, V>> for TopicSource<K, V> {
    fn open(&self, _: Positions, joined: Option<Joined>) -> Box<dyn Feed<Encoded<K, V>>> {
        match (self.joined(), joined) {
            (Some((member, slot)), Some(Joined { standing })) => {
                slot.stands(Some(standing));
                Box::new(TopicFeed::new(member, slot, Arc::clone(&self.topic.config.codecs)))
            }
            _ => Box::new(NotJoined { topic: Arc::clone(&self.topic.config.name), is_told: false }),
        }
    }
}

/// In place of a topic that was opened before it had joined a flow.
struct NotJoined {
    topic: Arc<str>,
    is_told: bool,
}

impl<I> Feed<I> for NotJoined {
    fn poll_chunk(&mut self, _: &mut Chunk<I>, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if std::mem::replace(&mut self.is_told, true) {
            return Poll::Pending;
        }
        let said = "it has not joined its group".to_owned();
        let cause: BoxError = TopicError::Read { topic: self.topic.to_string(), said }.into();
        Poll::Ready(Err(FaultOf::new("", Cause::Source(cause))))
    }
    fn keep(&mut self, _: bool) {}
    fn again(&mut self, _: usize) -> Option<Result<I, Fault>> {
        None
    }
}
