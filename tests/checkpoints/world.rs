//! The flow of a schedule, and all that outlives a run of it.
use crate::{
    handlers::Run,
    log::{Line, Log},
    rng::Rng,
    schedule::Schedule,
};
use slipstream::{
    Cache, Checkpoint, Dependency, DependencyState, DependencyStatus, Flow, OnError, Result, Store,
    Timestamp, source,
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    task::yield_now,
    time::sleep,
};

/// After so long without a message a partition that may idle does.
pub(crate) const IDLE: Duration = Duration::from_millis(20);

/// Partition and offset.
pub(crate) type At = (i32, i64);

/// For each dependency the time and the number of the update that held.
pub(crate) type Answer = Vec<Option<(i64, u32)>>;

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) rng: Rng,
    pub(crate) store: Store,
    pub(crate) dependencies: Vec<Log>,
    pub(crate) dependent: Log,
    /// By dependency: the numbers of the updates by key and time.
    pub(crate) states: Vec<Cache<(i64, i64), u32>>,
    /// Whether anything was down when an update was published, by its number.
    pub(crate) came_down: Cache<u32, bool>,
    pub(crate) answers: Cache<At, Answer>,
    pub(crate) counts: Cache<At, u64>,
    pub(crate) sums: Cache<At, u64>,
    /// What was seen that must not be.
    pub(crate) faults: Arc<Mutex<Vec<String>>>,
    pub(crate) handlings: Arc<AtomicUsize>,
    pub(crate) seen: Arc<Seen>,
    /// Rises with each step.
    pub(crate) progress: watch::Sender<u64>,
    /// It runs on several threads, by the clock: what one sees, another may change before it goes on.
    pub(crate) is_threaded: bool,
    /// Whether callbacks of recoveries go on.
    pub(crate) lets_repair: watch::Sender<bool>,
    /// Of the run that is on.
    checkpoint: Arc<Mutex<Option<Checkpoint>>>,
    crash: Arc<Mutex<Option<Arc<Crash>>>>,
}

/// How often it came to what the schedules are there for.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) outages: AtomicUsize,
    pub(crate) repairs: AtomicUsize,
    pub(crate) replayed: AtomicUsize,
    pub(crate) deferred: AtomicUsize,
    pub(crate) crashes: AtomicUsize,
    pub(crate) down_at_crash: AtomicUsize,
    pub(crate) lacking: AtomicUsize,
    pub(crate) quiet: AtomicUsize,
}

pub(crate) fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// When a run is dropped.
#[derive(Debug)]
pub(crate) struct Crash {
    left: AtomicI64,
    pub(crate) waits: bool,
    pub(crate) now: Notify,
}

impl Crash {
    pub(crate) fn after(steps: i64, waits: bool) -> Arc<Self> {
        Arc::new(Crash { left: AtomicI64::new(steps), waits, now: Notify::new() })
    }

    pub(crate) fn never() -> Arc<Self> {
        Crash::after(i64::MAX, false)
    }

    /// A step is done: whether it was the last one.
    pub(crate) fn is_now(&self) -> bool {
        self.left.fetch_sub(1, Ordering::Relaxed) == 0
    }

    /// Sooner than it was to be, if at all.
    fn soon(&self) {
        if self.left.load(Ordering::Relaxed) < i64::MAX / 2 {
            self.now.notify_one();
        }
    }
}

pub(crate) fn time(seconds: i64) -> Timestamp {
    Timestamp::from_secs(seconds).unwrap()
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.unsigned_abs())
}

impl World {
    pub(crate) fn new(schedule: Schedule, rng: Rng, seen: &Arc<Seen>) -> Result<Self> {
        let store = Store::in_memory()?;
        let all = 0..schedule.dependencies.len();
        let log = |name: String, partitions: usize, is_concurrent: bool| {
            Log::new(name, partitions as i32, if is_concurrent { partitions } else { 1 })
        };
        let dependencies = schedule
            .dependencies
            .iter()
            .enumerate()
            .map(|(number, dep)| log(format!("dependency {number}"), dep.rows.len(), dep.is_concurrent));
        let states = all.map(|number| store.cache(&format!("state {number}")));
        Ok(World {
            dependencies: dependencies.collect(),
            dependent: log("dependent".to_owned(), schedule.messages.len(), schedule.is_concurrent),
            states: states.collect::<Result<_, _>>()?,
            came_down: store.cache("came down")?,
            answers: store.cache("answers")?,
            counts: store.cache("counts")?,
            sums: store.cache("sums")?,
            store,
            rng,
            schedule: Arc::new(schedule),
            faults: Arc::default(),
            handlings: Arc::default(),
            seen: Arc::clone(seen),
            progress: watch::Sender::new(0),
            is_threaded: false,
            lets_repair: watch::Sender::new(true),
            checkpoint: Arc::default(),
            crash: Arc::default(),
        })
    }

    pub(crate) fn checkpoint(&self) -> Option<Checkpoint> {
        self.checkpoint.lock().unwrap().clone()
    }

    /// Whether any dependency is.
    pub(crate) fn is_down(&self) -> bool {
        let is_down = |dep: &DependencyStatus| dep.state == DependencyState::Down;
        self.checkpoint().is_some_and(|checkpoint| checkpoint.status().dependencies.iter().any(is_down))
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.checkpoint().is_some_and(|checkpoint| checkpoint.status().is_paused)
    }

    pub(crate) fn moves(&self) {
        self.progress.send_modify(|progress| *progress += 1);
    }

    pub(crate) fn fault(&self, said: String) {
        self.faults.lock().unwrap().push(said);
    }

    /// The checkpoint of the next run, whose callback of a recovery fails now and then.
    fn new_checkpoint(&self) -> Result<Checkpoint> {
        let schedule = &self.schedule;
        let mut builder = Checkpoint::builder("join", &self.dependent)
            .window(schedule.window)
            .allowed_lateness(seconds(schedule.lateness))
            .gather(Duration::from_millis(schedule.gather_ms))
            .on_error(OnError::retry(50, Duration::from_millis(1)));
        for (log, dep) in self.dependencies.iter().zip(&schedule.dependencies) {
            let dependency = Dependency::new(log.name(), log).threshold(seconds(dep.threshold));
            builder = builder.dependency(if dep.may_idle { dependency.idle(IDLE) } else { dependency });
        }
        let (down, back) = (self.clone(), self.clone());
        let builder = builder
            .on_downtime(move |_| {
                count(&down.seen.outages);
                down.moves();
                down.may_crash();
            })
            .on_recovery_async(move |_| {
                let world = back.clone();
                async move {
                    let _ = world.lets_repair.subscribe().wait_for(|lets| *lets).await;
                    world.may_crash();
                    world.wait().await;
                    if world.rng.percent(20) {
                        return Err("as it was told");
                    }
                    count(&world.seen.repairs);
                    Ok(())
                }
            });
        Ok(builder.build()?)
    }

    fn may_crash(&self) {
        if self.rng.percent(35)
            && let Some(crash) = &*self.crash.lock().unwrap()
        {
            crash.soon();
        }
    }

    /// Between two steps of a handler: nothing, a turn of the others, or all that they can do.
    pub(crate) async fn wait(&self) {
        match self.rng.below(6) {
            0..3 => {}
            3 => yield_now().await,
            4 => {
                for _ in 0..self.rng.below(8) {
                    yield_now().await;
                }
            }
            _ => sleep(Duration::from_millis(1)).await,
        }
    }

    pub(crate) fn flow(&self, crash: &Arc<Crash>) -> Result<Flow<()>> {
        let known = self.checkpoint().filter(|_| !self.schedule.is_new_each_run);
        let checkpoint = known.map_or_else(|| self.new_checkpoint(), Ok)?;
        *self.checkpoint.lock().unwrap() = Some(checkpoint.clone());
        *self.crash.lock().unwrap() = Some(Arc::clone(crash));
        let run = Run { world: self.clone(), crash: Arc::clone(crash), checkpoint };
        let mut flow = Flow::new().store(&self.store).commit_every(Duration::from_secs(1_000_000));
        flow = flow.commit_after(self.schedule.commit_after).checkpoint(&run.checkpoint);
        for (number, log) in self.dependencies.iter().enumerate() {
            let run = run.clone();
            flow = flow.with(source(log).handle_async(move |line: Line| {
                let run = run.clone();
                async move { run.update(number, line).await.map(|()| None::<()>) }
            }));
        }
        let counts = self.counts.clone();
        let count = source(&self.dependent).handle(move |line: Line| {
            counts.update(&line.at, |count| count.unwrap_or(0) + 1).map(|_| None::<()>)
        });
        let join = source(&self.dependent).handle_async(move |line: Line| {
            let run = run.clone();
            async move { run.join(line).await.map(|()| None::<()>) }
        });
        Ok(if self.schedule.counts_first { flow.with(count).with(join) } else { flow.with(join).with(count) })
    }
}
