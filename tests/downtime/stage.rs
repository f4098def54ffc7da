//! What most stories are told on: weather that is cached by the minute, activities that look it up, and a checkpoint
//! between them. Minutes are the event times.
use crate::log::Log;
use slipstream::{
    Cache, Checkpoint, CheckpointBuilder, Dependency, Flow, Pulse, Result, Store, Timestamp, is_replayed,
    source,
};
use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::sync::Notify;

pub(crate) fn minute(minute: i64) -> Timestamp {
    Timestamp::from_secs(minute * 60).unwrap()
}

pub(crate) fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
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
    pub(crate) fn has(&self, line: &str) -> bool {
        self.lines().iter().any(|known| known == line)
    }
    /// Waits until this has been seen, since it was last taken.
    pub(crate) async fn until(&self, line: &str) {
        let seen = async {
            loop {
                let added = self.added.notified();
                tokio::pin!(added);
                added.as_mut().enable();
                if self.has(line) {
                    return;
                }
                added.await;
            }
        };
        let seen = tokio::time::timeout(Duration::from_secs(20), seen).await;
        assert!(seen.is_ok(), "`{line}` is not seen, but {:?}", self.lines());
    }
    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap()
    }
}

/// The sources, the state, and what the handlers and callbacks have seen.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub(crate) weather: Log,
    pub(crate) activity: Log,
    pub(crate) store: Store,
    pub(crate) sky: Cache<(i32, i64), i64>,
    /// Answers: `7: 6`, the activity at minute 7 found the weather of minute 6; `again 7: 6`; `late 7: 0`, answered `Down`.
    pub(crate) answers: Seen,
    /// Heartbeats, notices and repairs.
    pub(crate) events: Seen,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::over(&Store::in_memory().unwrap())
    }

    pub(crate) fn over(store: &Store) -> Self {
        let (weather, activity) = (Log::new("weather"), Log::new("activity"));
        let sky = store.cache("sky").unwrap();
        Stage {
            weather,
            activity,
            store: store.clone(),
            sky,
            answers: Seen::default(),
            events: Seen::default(),
        }
    }

    /// The same sources and the same store, for a flow after another.
    pub(crate) fn again(&self) -> Self {
        Stage { answers: Seen::default(), events: Seen::default(), ..self.clone() }
    }

    pub(crate) fn weather_within(&self, threshold: Duration) -> Dependency {
        Dependency::new("weather", &self.weather).threshold(threshold)
    }

    /// Tells its notices and repairs.
    pub(crate) fn told<M: slipstream::Marker>(
        &self,
        checkpoint: CheckpointBuilder<M>,
    ) -> CheckpointBuilder<M> {
        let (down, back) = (self.events.clone(), self.events.clone());
        checkpoint.on_downtime(move |outage| down.add(format!("{} is down", outage.dependency))).on_recovery(
            move |recovery| {
                let over: Vec<_> = recovery.outages.iter().map(|outage| &*outage.dependency).collect();
                back.add(format!("repair {over:?} from {:?}", recovery.offsets));
            },
        )
    }

    pub(crate) fn checkpoint(&self, threshold: Duration) -> Checkpoint {
        let checkpoint = Checkpoint::builder("activity", &self.activity);
        self.told(checkpoint.dependency(self.weather_within(threshold))).build().unwrap()
    }

    /// A flow of both handlers, which answers what it knows.
    pub(crate) fn flow(&self, checkpoint: &Checkpoint) -> Flow<()> {
        self.flow_that(checkpoint, false)
    }

    /// One that defers what it cannot know.
    pub(crate) fn deferring(&self, checkpoint: &Checkpoint) -> Flow<()> {
        self.flow_that(checkpoint, true)
    }

    fn flow_that(&self, checkpoint: &Checkpoint, defers: bool) -> Flow<()> {
        let stage = self.clone();
        let answers = {
            let checkpoint = checkpoint.clone();
            move |(partition, at): (i32, i64)| -> Result<()> {
                let pulse = checkpoint.check_pulse(minute(at))?;
                stage.answer(partition, at, pulse, defers)
            }
        };
        self.beats(checkpoint)
            .with(source(&self.activity).handle(answers).named("answers"))
            .checkpoint(checkpoint)
            .store(&self.store)
    }

    /// A flow of the weather's handler alone.
    pub(crate) fn beats(&self, checkpoint: &Checkpoint) -> Flow<()> {
        let (checkpoint, events) = (checkpoint.clone(), self.events.clone());
        let beats = source(&self.weather).handle(move |(partition, at): (i32, i64)| -> Result<_> {
            checkpoint.heartbeat(minute(at))?;
            events.add(format!("weather {at}"));
            Ok(((partition, at), at))
        });
        Flow::new().with(beats.named("beats").sink(&self.sky))
    }

    /// Answers with the latest weather at or before.
    pub(crate) fn answer(&self, _: i32, at: i64, pulse: Pulse, defers: bool) -> Result<()> {
        let found = self.found(at)?;
        let found = found.map_or_else(|| "?".to_owned(), |found| found.to_string());
        let how = match (&pulse, is_replayed()) {
            (Pulse::Down(_), _) => "late ",
            (Pulse::Up, true) => "again ",
            (Pulse::Up, false) => "",
        };
        self.answers.add(format!("{how}{at}: {found}"));
        match defers {
            true => Ok(pulse.or_defer()?),
            false => Ok(()),
        }
    }

    pub(crate) fn found(&self, at: i64) -> Result<Option<i64>> {
        let mut latest = None;
        for partition in 0..2 {
            latest = latest.max(self.sky.as_of(&(partition, at))?.map(|(_, found)| found));
        }
        Ok(latest)
    }

    /// Writes weather, one after the other: each when the one before is handled.
    pub(crate) async fn weather(&self, lines: impl IntoIterator<Item = i64>) {
        for line in lines {
            self.weather.write(line);
            self.events.until(&format!("weather {line}")).await;
            let seen = async {
                // The handler tells before its message is published.
                while !self.sky.contains_key(&(0, line)).unwrap() {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), seen).await.expect("it is published");
        }
    }

    pub(crate) fn activities(&self, lines: impl IntoIterator<Item = i64>) {
        lines.into_iter().for_each(|line| self.activity.write(line));
    }

    pub(crate) fn close(&self) {
        self.weather.close();
        self.activity.close();
    }
}
