//! What the stories of checkpoints over topics are told on: weather that is cached by the minute, activities that look it
//! up, and a checkpoint between them. Minutes are the event times. The tests on real Kafka have it too.
use slipstream::{
    Cache, Checkpoint, CheckpointBuilder, Dependency, Flow, FlowHandle, Message, Pulse, Result, Store,
    Timestamp, Topic, builder::Attach, is_replayed, kafka::Record, source,
};
use std::{
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{sync::Notify, task::JoinHandle};

/// Nothing that must come takes longer.
const BOUND: Duration = Duration::from_secs(60);

/// A topic of minutes.
pub(crate) type Minutes = Topic<(), i64>;

pub(crate) fn minute(minute: i64) -> Timestamp {
    Timestamp::from_secs(minute * 60).unwrap()
}

pub(crate) fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

/// Waits until it is so, of what nobody tells.
pub(crate) async fn becomes<T: PartialEq + Debug>(found: impl Fn() -> T, expected: T) {
    let is_so = async {
        while found() != expected {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    if tokio::time::timeout(BOUND, is_so).await.is_err() {
        assert_eq!(found(), expected);
    }
}

/// What has been seen, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    lines: Arc<Mutex<Vec<String>>>,
    added: Arc<Notify>,
}

impl Seen {
    pub(crate) fn add(&self, line: impl ToString) {
        self.lines().push(line.to_string());
        self.added.notify_waiters();
    }
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines())
    }
    pub(crate) fn all(&self) -> Vec<String> {
        self.lines().clone()
    }
    /// Waits until this has been seen, since it was last taken.
    pub(crate) async fn until(&self, line: &str) {
        self.have(|lines| lines.iter().any(|known| known == line), line).await;
    }
    /// Waits until so many have been.
    pub(crate) async fn count(&self, count: usize) {
        self.have(|lines| lines.len() >= count, &format!("{count} lines")).await;
    }
    async fn have(&self, have: impl Fn(&[String]) -> bool, what: &str) {
        let seen = async {
            loop {
                let added = self.added.notified();
                tokio::pin!(added);
                added.as_mut().enable();
                if have(&self.lines()) {
                    return;
                }
                added.await;
            }
        };
        let seen = tokio::time::timeout(BOUND, seen).await;
        assert!(seen.is_ok(), "`{what}` is not seen, but {:?}", self.lines());
    }
    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap()
    }
}

/// The topics, and what handlers and callbacks have seen.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub(crate) weather: Minutes,
    pub(crate) activity: Minutes,
    /// Of the flow, and so of its group.
    pub(crate) name: String,
    /// Answers: `7: 6`, the activity at minute 7 found the weather of minute 6; `again 7: 6`; `late 7: 0`, answered `Down`.
    pub(crate) answers: Seen,
    /// Heartbeats, notices and repairs.
    pub(crate) events: Seen,
    /// Of the flow that is running.
    sky: Arc<Mutex<Option<Cache<i64, i64>>>>,
}

impl Stage {
    pub(crate) fn new(weather: Minutes, activity: Minutes, name: &str) -> Self {
        let name = name.to_owned();
        Stage {
            weather,
            activity,
            name,
            answers: Seen::default(),
            events: Seen::default(),
            sky: Arc::default(),
        }
    }

    /// The same topics, for another flow.
    pub(crate) fn again(&self) -> Self {
        // Or its store stays open.
        *self.sky.lock().unwrap() = None;
        Stage::new(self.weather.clone(), self.activity.clone(), &self.name)
    }

    /// A checkpoint that tells its notices and repairs.
    pub(crate) fn builder(&self, threshold: Duration) -> CheckpointBuilder<Timestamp> {
        let (down, back) = (self.events.clone(), self.events.clone());
        Checkpoint::builder("activity", &self.activity)
            .dependency(Dependency::new("weather", &self.weather).threshold(threshold))
            .on_downtime(move |outage| down.add(format!("{} is down", outage.dependency)))
            .on_recovery(move |recovery| back.add(format!("repair from {:?}", recovery.offsets)))
    }

    pub(crate) fn checkpoint(&self, threshold: Duration) -> Checkpoint {
        self.builder(threshold).build().unwrap()
    }

    /// A flow of both handlers.
    pub(crate) fn flow(&self, checkpoint: &Checkpoint, store: &Store) -> Flow<()> {
        self.beats(checkpoint, store).with(self.answering(checkpoint, store))
    }

    /// A flow of the weather's handler alone.
    pub(crate) fn beats(&self, checkpoint: &Checkpoint, store: &Store) -> Flow<()> {
        let sky: Cache<i64, i64> = store.cache("sky").unwrap();
        *self.sky.lock().unwrap() = Some(sky.clone());
        let (beats, events) = (checkpoint.clone(), self.events.clone());
        let beats = source(&self.weather).takes().handle(move |at: i64| -> Result<_> {
            beats.heartbeat(minute(at))?;
            events.add(format!("weather {at}"));
            Ok((at, at))
        });
        let flow = Flow::new().with(beats.named("beats").sink(&sky)).checkpoint(checkpoint);
        flow.named(&self.name).store(store).commit_every(Duration::from_millis(5))
    }

    /// The activities' handler, which answers with the latest weather at or before.
    pub(crate) fn answering(&self, checkpoint: &Checkpoint, store: &Store) -> impl Attach<()> + use<> {
        let (stage, checkpoint, store) = (self.clone(), checkpoint.clone(), store.clone());
        let answers = move |message: Message<(), i64>| -> Result<()> {
            let pulse = checkpoint.check_pulse(minute(message.value))?;
            stage.answer(&message, &pulse, &store)
        };
        source(&self.activity).takes().handle(answers).named("answers")
    }

    pub(crate) fn answer(&self, message: &Message<(), i64>, pulse: &Pulse, store: &Store) -> Result<()> {
        let sky: Cache<i64, i64> = store.cache("sky")?;
        let found = sky.as_of(&message.value)?.map_or_else(|| "?".to_owned(), |(_, found)| found.to_string());
        assert_eq!(message.replayed, is_replayed());
        let how = match (pulse, message.replayed) {
            (Pulse::Down(_), _) => "late ",
            (Pulse::Up, true) => "again ",
            (Pulse::Up, false) => "",
        };
        self.answers.add(format!("{how}{}: {found}", message.value));
        Ok(())
    }

    /// Writes weather, one after the other: each when the one before is handled.
    pub(crate) async fn weather(&self, lines: impl IntoIterator<Item = i64>) {
        for line in lines {
            self.weather.send((), line).await.unwrap();
            self.came(line).await;
        }
    }

    /// Waits until this weather is handled, and all see it.
    pub(crate) async fn came(&self, line: i64) {
        self.events.until(&format!("weather {line}")).await;
        let sky = self.sky.lock().unwrap().clone().unwrap();
        let seen = async {
            // The handler tells before its message is published.
            while !sky.contains_key(&line).unwrap() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(BOUND, seen).await.expect("it is published");
    }

    /// Writes activities, to partition 0.
    pub(crate) async fn activities(&self, lines: impl IntoIterator<Item = i64>) {
        for line in lines {
            self.activity_in(0, line).await;
        }
    }

    pub(crate) async fn activity_in(&self, partition: i32, line: i64) {
        self.activity.send_record(Record::new((), line).partition(partition)).await.unwrap();
    }
}

/// A flow that runs in a task of its own.
pub(crate) struct Run {
    handle: FlowHandle,
    task: JoinHandle<Result<()>>,
}

pub(crate) fn run(flow: Flow<()>) -> Run {
    let handle = flow.handle();
    Run { handle, task: tokio::spawn(flow.run(())) }
}

impl Run {
    /// Stops it in good order.
    pub(crate) async fn stops(self) -> Result<()> {
        self.handle.stop();
        tokio::time::timeout(BOUND, self.task).await.expect("the flow does not end").unwrap()
    }
}
