//! Flows over topics of numbers: what their handlers have seen, and how they are run and ended.
use crate::log::{Log, SOON};
use slipstream::{BoxError, Flow, FlowHandle, Kafka, Message, Result, Topic, kafka::Encoded, source};
use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{task::JoinHandle, time::Instant};

/// A topic of numbers as text.
pub(crate) type Numbers = Topic<(), String>;

/// Members that hear soon of one another, and are missed soon.
pub(crate) const QUICK: [(&str, &str); 2] =
    [("heartbeat.interval.ms", "300"), ("session.timeout.ms", "6000")];

/// The ways in which a group shares its partitions: at once, one after the other, and by the broker.
pub(crate) const STRATEGIES: [&[(&str, &str)]; 3] = [
    &[
        ("partition.assignment.strategy", "range"),
        ("heartbeat.interval.ms", "300"),
        ("session.timeout.ms", "6000"),
    ],
    &[
        ("partition.assignment.strategy", "cooperative-sticky"),
        ("heartbeat.interval.ms", "300"),
        ("session.timeout.ms", "6000"),
    ],
    &[("group.protocol", "consumer")],
];

/// The topic, as the library sees it.
pub(crate) fn topic(log: &Log) -> Numbers {
    topic_with(log, &[])
}

/// The same, with settings.
pub(crate) fn topic_with(log: &Log, settings: &[(&str, &str)]) -> Numbers {
    let kafka = Kafka::new([("bootstrap.servers", log.servers.as_str())]).unwrap();
    kafka.topic(&log.name).text().settings(settings.iter().copied()).unwrap()
}

/// A flow of one handler, an async closure that takes the whole message.
pub(crate) fn handling<F, Fut>(topic: &Numbers, handler: F) -> Flow<()>
where
    F: Fn(Message<(), String>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    let handles = move |encoded: Encoded<(), String>| {
        let handled = encoded.message().map(&handler);
        async move {
            handled?.await?;
            Ok::<_, BoxError>(None::<()>)
        }
    };
    Flow::new().with(source(topic).handle_async(handles)).commit_every(Duration::from_millis(20))
}

/// A flow that only sees what comes.
pub(crate) fn seeing(topic: &Numbers, seen: &Seen) -> Flow<()> {
    let seen = seen.clone();
    handling(topic, move |message| {
        seen.add(&message);
        async { Ok(()) }
    })
}

/// The partitions and offsets of the messages that a handler was called with, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<(i32, i64)>>>);

impl Seen {
    pub(crate) fn add<K, V>(&self, message: &Message<K, V>) {
        self.0.lock().unwrap().push((message.partition, message.offset));
    }
    pub(crate) fn all(&self) -> Vec<(i32, i64)> {
        self.0.lock().unwrap().clone()
    }
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
    /// The offsets of one partition.
    pub(crate) fn of(&self, partition: i32) -> Vec<i64> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|(of, _)| *of == partition).map(|(_, offset)| *offset).collect()
    }
    /// Each once, in order of partition and offset.
    pub(crate) fn once(&self) -> Vec<(i32, i64)> {
        let mut all = self.all();
        all.sort_unstable();
        all.dedup();
        all
    }
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
    /// Waits until so many have come.
    pub(crate) async fn has(&self, count: usize) {
        let found = comes(SOON, || (self.len() >= count).then_some(())).await;
        let tail = |all: Vec<(i32, i64)>| all[all.len().saturating_sub(20)..].to_vec();
        found.unwrap_or_else(|| panic!("{} of {count}, the last {:?}", self.len(), tail(self.all())));
    }
}

/// Waits until `find` gives something, at most so long.
pub(crate) async fn comes<T>(within: Duration, mut find: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = find() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until two things are equal, and says which they are where they do not become so.
pub(crate) async fn becomes<T: PartialEq + Debug>(mut found: impl FnMut() -> T, expected: T) {
    if comes(SOON, || (found() == expected).then_some(())).await.is_none() {
        assert_eq!(found(), expected);
    }
}

/// Waits until the flow that reads a topic has so many of its partitions.
pub(crate) async fn has_partitions(topic: &Numbers, count: usize) {
    has_partitions_of(topic, count).await;
}

/// The same of a topic of whatever.
pub(crate) async fn has_partitions_of<K, V>(topic: &Topic<K, V>, count: usize) {
    let deadline = Instant::now() + SOON;
    loop {
        let has = topic.lag().await.unwrap();
        if has.len() == count {
            return;
        }
        assert!(Instant::now() < deadline, "{has:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A flow that runs in a task of its own. Dropped, it ends as in a crash.
pub(crate) struct Running {
    pub(crate) handle: FlowHandle,
    task: Option<JoinHandle<Result<()>>>,
}

impl Running {
    pub(crate) fn new(flow: Flow<()>) -> Self {
        crate::lines::keep();
        let handle = flow.handle();
        Running { handle, task: Some(tokio::spawn(flow.run(()))) }
    }
    /// How it comes to its end by itself.
    pub(crate) async fn ends(mut self) -> Result<()> {
        self.ended().await
    }
    async fn ended(&mut self) -> Result<()> {
        let task = self.task.as_mut().unwrap();
        let ended = tokio::time::timeout(2 * SOON, task).await;
        let ended = ended.expect("the flow does not end");
        self.task = None;
        ended.unwrap()
    }
    /// Stops it in good order.
    pub(crate) async fn stops(self) -> Result<()> {
        self.handle.stop();
        self.ends().await
    }
    /// Ends it as a crash would, and waits until the task is gone.
    pub(crate) async fn crashes(mut self) {
        let task = self.task.take().unwrap();
        task.abort();
        let _ = tokio::time::timeout(SOON, task).await.expect("a dropped flow does not end");
    }
    pub(crate) fn is_running(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_finished())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Runs a flow to its end.
pub(crate) async fn ends(flow: Flow<()>) -> Result<()> {
    Running::new(flow).ends().await
}

/// An error with all its causes.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text += &format!(": {cause}");
        next = cause.source();
    }
    text
}

/// What a flow ended with, as text; it has to be an error.
pub(crate) async fn fails(flow: Flow<()>) -> String {
    let error = ends(flow).await.expect_err("the flow ended well");
    chain(&*error)
}
