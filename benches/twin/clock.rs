//! What something took: the time that passed, that of the processors, and of the latter what an
//! in-process Kafka cluster took, which has one thread.
use std::{
    fs,
    time::{Duration, Instant},
};

/// How long something took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took {
    pub(crate) wall: Duration,
    /// Of all threads of the process, those of RocksDB and librdkafka included.
    pub(crate) processor: Duration,
    /// Of `processor` that of librdkafka's mock clusters: nothing where there is none, or no Linux.
    pub(crate) cluster: Duration,
}

/// A moment, from which on something is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    wall: Instant,
    processor: Duration,
    cluster: Duration,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Clock { cluster: clusters(), processor: processor(), wall: Instant::now() }
    }

    pub(crate) fn took(self) -> Took {
        let now = Clock::start();
        Took {
            wall: now.wall - self.wall,
            processor: now.processor.saturating_sub(self.processor),
            cluster: now.cluster.saturating_sub(self.cluster),
        }
    }
}

/// Runs and measures.
pub(crate) fn took<E>(run: impl FnOnce() -> Result<(), E>) -> Result<Took, E> {
    let clock = Clock::start();
    run()?;
    Ok(clock.took())
}

/// What the process has had of the processors.
#[allow(unsafe_code, reason = "the standard library has no clock of a process")]
fn processor() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is there for the call, which keeps nothing.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(answer, 0, "the system tells a process its time");
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// What the threads of mock clusters have had of them.
fn clusters() -> Duration {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten().map(|thread| thread.path());
    let of_clusters = threads
        .filter(|thread| fs::read_to_string(thread.join("comm")).is_ok_and(|name| name == "rdk:mock\n"));
    let nanos = of_clusters.filter_map(|thread| {
        let times = fs::read_to_string(thread.join("schedstat")).ok()?;
        times.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}
