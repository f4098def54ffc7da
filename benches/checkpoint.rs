//! What a checkpoint costs for each message: a flow whose handlers call `heartbeat`, `check_pulse` or both, against the
//! same flow without. The column "by hand" is the flow without it; the difference of both is the price of the call, with
//! all that comes of it: the savepoint of a handler that may defer, and the record in each commit.
//!
//! `cargo bench --bench checkpoint`; see `twin` for its arguments.
mod twin;

use futures::{Stream, StreamExt, stream};
use slipstream::{
    AsyncIterable, Checkpoint, Dependency, Flow, Position, Positions, Pulse, Seekable, Seeks, Store,
    Timestamp, source,
};
use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
};
use twin::Twins;

/// Numbers with positions. One that waits ends when it is told that the other has.
#[derive(Clone)]
struct Numbers {
    name: &'static str,
    numbers: std::ops::Range<i64>,
    until: Option<Arc<Notify>>,
    control: slipstream::Control,
}

impl Numbers {
    fn new(name: &'static str, numbers: std::ops::Range<i64>) -> Self {
        Numbers { name, numbers, until: None, control: slipstream::Control::default() }
    }
}

impl AsyncIterable for Numbers {
    type Item = i64;
    fn open(&self) -> impl Stream<Item = i64> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, n)| n)
    }
    fn identity(&self) -> Option<String> {
        Some(self.name.to_owned())
    }
    fn seeks(&self) -> Option<Seeks<i64>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Numbers {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, i64)> + Send + 'static {
        let (first, until) = (self.numbers.start, self.until.clone());
        let from = first + start.next(0).unwrap_or(0);
        let numbers = stream::iter((from..self.numbers.end).map(move |n| (Position::new(0, n - first), n)));
        let wait = async move {
            if let Some(until) = until {
                until.notified().await;
            }
        };
        numbers.chain(stream::once(wait).filter_map(|()| async { None }).boxed())
    }
    fn control(&self) -> Option<&slipstream::Control> {
        Some(&self.control)
    }
}

/// What the handlers call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    Nothing,
    Heartbeats,
    Pulses,
}

/// A flow of `count` messages whose handler calls, and of one message of the other source.
fn run(runtime: &Runtime, count: u64, measured: Calls, calls: Calls) -> Duration {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let done = Arc::new(Notify::new());
    // The dependency stands further on than any pulse, and stays so until the dependent is done.
    let (beats, pulses) = match measured {
        Calls::Pulses => {
            let mut ahead = Numbers::new("dependency", i64::MAX / 2..i64::MAX / 2 + 1);
            ahead.until = Some(Arc::clone(&done));
            (ahead, Numbers::new("dependent", 0..count))
        }
        _ => (Numbers::new("dependency", 0..count), Numbers::new("dependent", 0..1)),
    };
    let store = Store::in_memory().expect("there is memory");
    let checkpoint = Checkpoint::builder("dependent", &pulses)
        .dependency(Dependency::new("dependency", &beats).threshold(Duration::from_hours(1)))
        .build()
        .expect("both have names");
    let (beat, pulse) = (checkpoint.clone(), checkpoint.clone());
    let seen = Arc::new(AtomicU64::new(0));
    let heartbeats = source(&beats).handle({
        let seen = Arc::clone(&seen);
        move |n: i64| -> slipstream::Result<()> {
            seen.fetch_add(1, Ordering::Relaxed);
            if calls != Calls::Nothing {
                beat.heartbeat(Timestamp::from_micros(n))?;
            }
            Ok(())
        }
    });
    let asks = source(&pulses).handle(move |n: i64| -> slipstream::Result<()> {
        seen.fetch_add(1, Ordering::Relaxed);
        if calls != Calls::Nothing {
            let answer = black_box(pulse.check_pulse(Timestamp::from_micros(n))?);
            debug_assert!(answer == Pulse::Up || n > 0);
        }
        if n + 1 == count {
            done.notify_one();
        }
        Ok(())
    });
    let flow = Flow::<()>::new().with(heartbeats).with(asks).store(&store);
    let flow = if calls == Calls::Nothing { flow } else { flow.checkpoint(&checkpoint) };
    runtime.block_on(async {
        let begun = Instant::now();
        flow.run(()).await.expect("no handler fails");
        begun.elapsed()
    })
}

fn main() {
    let mut twins = Twins::from_args();
    let runtime =
        Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("the system has a thread");
    let count = twins.size(500_000, 200_000, 1_000);
    for (name, measured) in [("heartbeat", Calls::Heartbeats), ("check_pulse", Calls::Pulses)] {
        let case = |_| run(&runtime, count, measured, measured);
        let twin = |_| run(&runtime, count, measured, Calls::Nothing);
        twins.compare(name, count, case, twin);
    }
}
