//! Sources of which partitions come and go, and outputs that leave with their messages: what a flow does for
//! them, shown with a group and a broker of our own.
use super::super::*;
use crate::{
    AsyncIterable, Cache, Control, OnError, Position, Positions, Seeks, Sink, Store,
    error::Fault,
    given::unique_id,
    outgoing::{OutQueue, Outbox},
    source,
    source::{AnySeekable, Chunk, Feed, Joined, Joining, Judged, Mark, Opens, Standing},
    transaction,
};
use futures::{Stream, stream, task::AtomicWaker};
use std::{
    any::Any,
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
    time::Instant,
};
use tokio::sync::Notify;

/// A group of one member, whose partitions a test gives and takes. Each has ten messages: 0 to 9.
#[derive(Clone)]
struct Group {
    state: Arc<Mutex<State>>,
    waker: Arc<AtomicWaker>,
    control: Control,
    /// What its outputs go to, to compare with what it is told.
    broker: Arc<Broker>,
}

#[derive(Default)]
struct State {
    /// Where the assigned partitions go on.
    next: BTreeMap<i32, i64>,
    standing: Option<Arc<dyn Standing>>,
    has_ended: bool,
    marks: Vec<Mark>,
    has_left: bool,
    never_joins: bool,
    /// How many messages send nothing.
    unsent: i64,
}

const LENGTH: i64 = 10;

impl Group {
    fn new() -> Self {
        let (state, waker) = (Arc::default(), Arc::default());
        Group { state, waker, control: Control::default(), broker: Broker::new(usize::MAX) }
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
    /// As far as its store knows it, else from its beginning.
    fn assign(&self, partition: i32) {
        let standing = self.state().standing.clone();
        let next = standing.and_then(|standing| standing.known().unwrap().next(partition)).unwrap_or(0);
        self.state().next.insert(partition, next);
        self.waker.wake();
    }
    /// Answers what a revocation waits for.
    fn revoke(&self, partition: i32) -> u64 {
        let mut state = self.state();
        state.next.remove(&partition);
        self.control.revoke([partition])
    }
    /// It ends when all that is assigned is read.
    fn end(&self) {
        self.state().has_ended = true;
        self.waker.wake();
    }
    fn standing(&self) -> Arc<dyn Standing> {
        self.state().standing.clone().unwrap()
    }
}

impl AsyncIterable for Group {
    type Item = i64;
    fn open(&self) -> impl Stream<Item = i64> + Send + 'static {
        stream::empty()
    }
    fn identity(&self) -> Option<String> {
        Some("group".into())
    }
    fn seeks(&self) -> Option<Seeks<i64>> {
        Some(Seeks::of_member(Member(self.clone())))
    }
}

struct Member(Group);

impl AnySeekable for Member {
    fn start(&self) -> BoxFuture<'_, crate::Result<Positions>> {
        panic!("a member is not asked where it begins")
    }
    fn control(&self) -> Option<&Control> {
        Some(&self.0.control)
    }
    fn concurrency(&self) -> usize {
        1
    }
    fn committed<'a>(&'a self, mark: &'a Mark, _: &'a Joining) -> BoxFuture<'a, crate::Result<()>> {
        let acknowledged = self.0.broker.state().acknowledged as i64;
        let told: i64 = mark.positions.iter().map(|(_, next)| next).sum();
        let unsent = self.0.state().unsent;
        assert!(told <= acknowledged + unsent, "told of {told}, with {acknowledged} delivered");
        self.0.state().marks.push(mark.clone());
        Box::pin(std::future::ready(Ok(())))
    }
    fn last_committed(&self) -> BoxFuture<'_, crate::Result<Option<Mark>>> {
        panic!("a member is not asked what it was told")
    }
    fn is_member(&self) -> bool {
        true
    }
    fn join<'a>(&'a self, flow: &'a Joining) -> BoxFuture<'a, crate::Result<Option<String>>> {
        let never = self.0.state().never_joins;
        Box::pin(async move {
            if never {
                std::future::pending::<()>().await;
            }
            Ok(Some(format!("group of {}", flow.flow.as_deref().unwrap_or("nobody"))))
        })
    }
    fn leave<'a>(&'a self, _: &'a Joining) -> BoxFuture<'a, crate::Result<()>> {
        self.0.state().has_left = true;
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Opens<i64> for Member {
    fn open(&self, _: Positions, joined: Option<Joined>) -> Box<dyn Feed<i64>> {
        self.0.state().standing = joined.map(|joined| joined.standing);
        Box::new(Reading { group: self.0.clone(), last: Vec::new() })
    }
}

struct Reading {
    group: Group,
    last: Vec<i64>,
}

impl Feed<i64> for Reading {
    fn poll_chunk(&mut self, chunk: &mut Chunk<i64>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.group.waker.register(cx.waker());
        let mut state = self.group.state();
        chunk.as_of = self.group.control.state();
        for (partition, next) in &mut state.next {
            for offset in *next..LENGTH {
                chunk.items.push(offset);
                chunk.positions.push(Position::new(*partition, offset));
            }
            *next = LENGTH;
        }
        self.last.clone_from(&chunk.items);
        if chunk.items.is_empty() && !state.has_ended { Poll::Pending } else { Poll::Ready(Ok(())) }
    }
    fn keep(&mut self, _: bool) {}
    fn again(&mut self, at: usize) -> Option<Result<i64, Fault>> {
        self.last.get(at).copied().map(Ok)
    }
}

/// Where outputs go. It acknowledges what it has when it is flushed.
struct Broker {
    id: u64,
    room: usize,
    state: Mutex<Sent>,
    has_room: Notify,
}

#[derive(Default)]
struct Sent {
    records: Vec<i64>,
    acknowledged: usize,
    is_drained: bool,
}

impl Broker {
    fn new(room: usize) -> Arc<Self> {
        Arc::new(Broker { id: unique_id(), room, state: Mutex::default(), has_room: Notify::new() })
    }
    fn state(&self) -> MutexGuard<'_, Sent> {
        self.state.lock().unwrap()
    }
    fn records(&self) -> Vec<i64> {
        self.state().records.clone()
    }
}

impl Outbox for Broker {
    fn id(&self) -> u64 {
        self.id
    }
    fn queue(self: Arc<Self>) -> Box<dyn OutQueue> {
        Box::new(Queue { broker: self, records: Vec::new() })
    }
    fn has_room(&self) -> bool {
        let state = self.state();
        state.is_drained || state.records.len() < self.room
    }
    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.has_room.notified())
    }
    fn flush(&self) -> BoxFuture<'_, Result<(), BoxError>> {
        let before = self.state().records.len();
        Box::pin(async move {
            tokio::task::yield_now().await;
            let mut state = self.state();
            state.acknowledged = state.acknowledged.max(before);
            Ok(())
        })
    }
}

struct Queue {
    broker: Arc<Broker>,
    records: Vec<i64>,
}

impl OutQueue for Queue {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
    fn drop_last(&mut self) {
        self.records.pop();
    }
    fn hand_over(&mut self) {
        self.broker.state().records.append(&mut self.records);
    }
}

/// Its outputs leave with their message.
#[derive(Clone)]
struct Out(Arc<Broker>);

impl Sink<i64> for Out {
    const WAITS: bool = false;
    fn stage(&self, output: &i64) -> Result<(), BoxError> {
        transaction::with(|current| {
            current.unwrap().outgoing.put(&self.0, |queue: &mut Queue| {
                queue.records.push(*output);
                Ok(())
            })
        })
    }
}

fn flow() -> Flow<()> {
    Flow::new().named("test").commit_every(Duration::from_millis(1))
}

/// Waits until `is` so.
async fn until(is: impl Fn() -> bool) {
    while !is() {
        tokio::task::yield_now().await;
    }
}

/// On a thread, as a member's own is.
async fn aside<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(run).await.unwrap()
}

#[tokio::test]
async fn without_a_store_a_source_is_told_how_far_it_is_when_its_outputs_are_delivered() {
    let group = Group::new();
    group.assign(0);
    group.assign(1);
    group.end();
    let broker = Arc::clone(&group.broker);
    flow().with(source(&group).handle(Some).sink(&Out(broker))).run(()).await.unwrap();
    let mark = group.state().marks.last().cloned().unwrap();
    assert_eq!(mark.positions, Positions::from_iter([(0, LENGTH), (1, LENGTH)]));
    assert_eq!((mark.flow.as_deref(), &*mark.store), (Some("test"), ""));
    assert_eq!(group.broker.records().len(), 20);
    assert!(group.state().has_left);
    assert_eq!(group.control.positions(), mark.positions, "also when the flow has ended");
}

#[tokio::test]
async fn with_a_store_the_positions_are_there_under_the_name_that_the_member_gives() {
    let (group, store) = (Group::new(), Store::in_memory().unwrap());
    group.state().unsent = LENGTH;
    group.assign(0);
    group.end();
    flow().store(&store).with(source(&group).handle(|_| ())).run(()).await.unwrap();
    assert_eq!(store.positions("group of test").unwrap().next(0), Some(LENGTH));
    let mark = group.state().marks.last().cloned().unwrap();
    assert_eq!((mark.store, mark.epoch), (store.id().to_string(), store.epoch()));
}

#[tokio::test]
async fn a_store_that_only_a_handler_knows_of_is_an_error_where_a_group_keeps_the_positions() {
    let (group, cache) = (Group::new(), Cache::<i64, i64>::in_memory().unwrap());
    group.assign(0);
    let write = cache.clone();
    let error = flow().with(source(&group).handle(move |n| write.insert(&n, n))).run(()).await.unwrap_err();
    assert!(format!("{error:?}").contains("say `.store(&store)`"), "{error:?}");
    assert_eq!(cache.iter().count(), 0);
}

/// A flow whose handler waits at message 3 until it is let go.
struct Waiting {
    group: Group,
    store: Store,
    cache: Cache<i64, i64>,
    arrived: Arc<Notify>,
    go_on: Arc<Notify>,
    handle: FlowHandle,
    running: tokio::task::JoinHandle<Result<(), BoxError>>,
}

async fn waiting() -> Waiting {
    let (group, store) = (Group::new(), Store::in_memory().unwrap());
    group.state().unsent = LENGTH;
    let cache: Cache<i64, i64> = store.cache("handled").unwrap();
    let (arrived, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (there, wait) = (Arc::clone(&arrived), Arc::clone(&go_on));
    let handler = move |n: i64| {
        let (there, wait) = (Arc::clone(&there), Arc::clone(&wait));
        async move {
            if n == 3 {
                there.notify_one();
                wait.notified().await;
            }
            Some((n, n))
        }
    };
    let flow = flow().with(source(&group).handle_async(handler).sink(&cache));
    let handle = flow.handle();
    let running = tokio::spawn(flow.run(()));
    until(|| group.state().standing.is_some()).await;
    group.assign(0);
    arrived.notified().await;
    Waiting { group, store, cache, arrived, go_on, handle, running }
}

#[tokio::test]
async fn a_revocation_waits_for_the_message_in_hand_and_commits_it() {
    let Waiting { group, store, go_on, handle, running, .. } = waiting().await;
    let state = group.revoke(0);
    assert!(!group.control.settled(state, Instant::now(), || ()), "message 3 is in hand");
    go_on.notify_one();
    let (control, standing) = (group.control.clone(), group.standing());
    let committed = aside(move || {
        let far = Instant::now() + Duration::from_secs(60);
        assert!(control.settled(state, far, || ()));
        standing.commit(Duration::from_secs(60))
    });
    committed.await.unwrap();
    assert_eq!(store.positions("group of test").unwrap().next(0), Some(4), "and nothing after it began");
    assert_eq!(group.state().marks.last().unwrap().positions.next(0), Some(4));
    group.assign(0);
    group.end();
    running.await.unwrap().unwrap();
    assert_eq!(store.positions("group of test").unwrap().next(0), Some(LENGTH));
    drop(handle);
}

#[tokio::test]
async fn a_revocation_waits_for_no_message_that_has_not_begun_since_the_source_is_paused() {
    let Waiting { group, store, go_on, running, .. } = waiting().await;
    group.control.pause();
    go_on.notify_one();
    until(|| group.control.settled(group.control.state(), Instant::now(), || ())).await;
    let state = group.revoke(0);
    assert!(group.control.settled(state, Instant::now(), || ()), "message 4 was fetched, and waits");
    group.assign(0);
    group.control.resume();
    group.end();
    running.await.unwrap().unwrap();
    assert_eq!(store.positions("group of test").unwrap().next(0), Some(LENGTH));
}

#[tokio::test]
async fn a_message_whose_partition_is_gone_is_dropped_when_it_is_to_be_published() {
    let Waiting { group, cache, arrived, go_on, running, .. } = waiting().await;
    group.revoke(0);
    group.control.lose([0]);
    go_on.notify_one();
    until(|| group.control.settled(group.control.state(), Instant::now(), || ())).await;
    assert_eq!(cache.get(&3).unwrap(), None);
    assert_eq!(group.standing().known().unwrap().next(0), Some(3));
    // It comes back, and begins with that message.
    group.assign(0);
    arrived.notified().await;
    go_on.notify_one();
    group.end();
    running.await.unwrap().unwrap();
    assert_eq!(cache.iter().count(), 10);
}

#[tokio::test]
async fn outputs_that_another_has_sent_are_kept_back_and_the_state_is_not() {
    let (group, store) = (Group::new(), Store::in_memory().unwrap());
    let cache: Cache<i64, i64> = store.cache("handled").unwrap();
    group.control.withhold(0, 6);
    group.state().unsent = 6;
    group.assign(0);
    group.assign(1);
    group.end();
    let (out, write) = (Out(Arc::clone(&group.broker)), cache.clone());
    let handler = move |n: i64| -> crate::Result<_> {
        write.update(&n, |seen| seen.unwrap_or(0) + 1)?;
        Ok(Some(n))
    };
    flow().store(&store).with(source(&group).handle(handler).sink(&out)).run(()).await.unwrap();
    let expected: Vec<_> = (6..10).chain(0..10).collect();
    assert_eq!(group.broker.records(), expected);
    assert!(cache.iter().all(|row| row.unwrap().1 == 2), "both partitions count");
}

#[tokio::test]
async fn what_a_pipe_has_of_a_partition_is_sent_also_after_a_message_whose_outputs_are_kept_back() {
    use futures::StreamExt;
    let group = Group::new();
    group.control.withhold(1, LENGTH);
    group.state().unsent = LENGTH * 2;
    group.assign(0);
    group.assign(1);
    group.end();
    let out = Out(Arc::clone(&group.broker));
    let threes =
        source(&group).pipe(|items| items.chunks(3)).handle(|some: Vec<i64>| Some(some.len() as i64));
    flow().with(threes.sink(&out)).run(()).await.unwrap();
    let records = group.broker.records();
    assert_eq!(records[..4], [3, 3, 3, 1], "{records:?}");
}

#[tokio::test]
async fn outputs_of_a_handling_that_is_given_up_are_never_sent() {
    let group = Group::new();
    group.assign(0);
    group.end();
    let out = Out(Arc::clone(&group.broker));
    let send = out.clone();
    let handler = move |n: i64| -> crate::Result<_> {
        // As `topic.send` in a handler does.
        send.stage(&(100 + n))?;
        if n % 2 == 1 { Err("odd".into()) } else { Ok(Some(n)) }
    };
    let odd = source(&group).handle(handler).on_error(OnError::skip()).sink(&out);
    flow().with(odd).run(()).await.unwrap();
    assert_eq!(group.broker.records(), [100, 0, 102, 2, 104, 4, 106, 6, 108, 8]);
}

#[tokio::test]
async fn no_message_begins_while_outputs_do_not_get_away() {
    let group = Group { broker: Broker::new(4), ..Group::new() };
    group.assign(0);
    group.end();
    let out = Out(Arc::clone(&group.broker));
    let running = tokio::spawn(flow().with(source(&group).handle(Some).sink(&out)).run(()));
    until(|| group.broker.records().len() == 4).await;
    // Each commit in the meantime would let more through if it did not look.
    let commits = group.state().marks.len();
    until(|| group.state().marks.len() > commits).await;
    assert_eq!(group.broker.records().len(), 4);
    group.broker.state().is_drained = true;
    until(|| {
        group.broker.has_room.notify_waiters();
        running.is_finished()
    })
    .await;
    running.await.unwrap().unwrap();
    assert_eq!(group.broker.records().len(), 10);
}

#[tokio::test]
async fn a_flow_can_be_stopped_while_a_source_cannot_be_reached() {
    let group = Group::new();
    group.state().never_joins = true;
    let flow = flow().with(source(&group).handle(|_| ()));
    let handle = flow.handle();
    let running = tokio::spawn(flow.run(()));
    tokio::task::yield_now().await;
    handle.stop();
    running.await.unwrap().unwrap();
    assert!(!group.state().has_left, "it had not joined");
}

#[tokio::test]
async fn a_flow_judges_what_a_member_heard_of_its_store() {
    let Waiting { group, store, go_on, running, .. } = waiting().await;
    let mark = |store: String, epoch| Mark::new(Some("test".into()), store, epoch, Positions::default());
    let standing = group.standing();
    assert_eq!(standing.judge(&mark(store.id().to_string(), 0)).unwrap(), Judged::Same);
    assert!(standing.is_in_memory());
    // A store in memory ends with its process, so another one is accepted.
    assert_eq!(standing.judge(&mark("another".into(), 7)).unwrap(), Judged::Accept);
    go_on.notify_one();
    group.end();
    running.await.unwrap().unwrap();
    assert!(standing.commit(Duration::ZERO).is_err(), "the flow is gone");
}
