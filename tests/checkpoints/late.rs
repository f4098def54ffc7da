//! A dependency that is always a little late: each of its updates comes when the message that needs it is answered. The work
//! must grow with the messages, and neither with their square nor with the repairs.
use crate::log::{Line, Log, Row};
use crate::world::time;
use slipstream::{BoxError, Cache, Checkpoint, Dependency, Flow, Store, source};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// The least time between two repairs without an outage, unless told otherwise.
const GATHER: Duration = Duration::from_millis(50);

/// The time from one message to the next, in seconds.
const STEP: i64 = 10;

/// What a run has come to.
#[derive(Debug, Default)]
struct Counts {
    handled: AtomicUsize,
    outages: AtomicUsize,
    widest: AtomicUsize,
}

struct Late {
    weather: Log,
    activity: Log,
    checkpoint: Checkpoint,
    handled: Handled,
    counts: Arc<Counts>,
}

/// After the last offset of weather and activity that was handled, which on one thread is published when another task looks.
type Handled = [watch::Sender<i64>; 2];

fn handled(handled: &watch::Sender<i64>, offset: i64) {
    handled.send_if_modified(|next| {
        let is_new = *next <= offset;
        *next = (*next).max(offset + 1);
        is_new
    });
}

impl Late {
    async fn update(&self, time: i64, number: i64) {
        self.weather.write(0, row(time, number));
        self.until_handled(0).await;
    }

    async fn message(&self, time: i64) {
        self.activity.write(0, row(time, 0));
        self.until_handled(1).await;
    }

    async fn until_handled(&self, log: usize) {
        let written = [&self.weather, &self.activity][log].end(0);
        let _ = self.handled[log].subscribe().wait_for(|next| *next >= written).await;
        let window = self.checkpoint.status().window;
        self.counts.widest.fetch_max(window, Ordering::Relaxed);
    }

    fn close(&self) {
        self.weather.close();
        self.activity.close();
    }
}

fn row(time: i64, number: i64) -> Row {
    Row { time, key: 0, number: number as u32 }
}

/// Runs a flow over what `write` writes, and compares the answers: each message has the update of its own number.
async fn runs<W>(
    messages: i64,
    threshold: i64,
    write: impl FnOnce(Late) -> W,
) -> Result<(u64, Duration, Arc<Counts>), BoxError>
where
    W: Future<Output = ()> + Send + 'static,
{
    let (weather, activity) = (Log::new("weather", 1, 1), Log::new("activity", 1, 1));
    let store = Store::in_memory()?;
    let state: Cache<(i64, i64), u32> = store.cache("state")?;
    let answers: Cache<i64, u32> = store.cache("answers")?;
    let (next, counts) = ([0; 2].map(watch::Sender::new), Arc::<Counts>::default());
    let threshold = Duration::from_secs(threshold.unsigned_abs());
    let told = Arc::clone(&counts);
    let checkpoint = Checkpoint::builder("join", &activity)
        .dependency(Dependency::new("weather", &weather).threshold(threshold))
        .on_downtime(move |_| {
            told.outages.fetch_add(1, Ordering::Relaxed);
        })
        .build()?;
    let (beats, updates, states) = (checkpoint.clone(), next[0].clone(), state.clone());
    let update = source(&weather).handle(move |Line { row, at }: Line| {
        beats.heartbeat(time(row.time))?;
        handled(&updates, at.1);
        states.insert(&(row.key, row.time), row.number)?;
        Ok::<_, BoxError>(None::<()>)
    });
    let (asks, messages_of, told) = (checkpoint.clone(), next[1].clone(), Arc::clone(&counts));
    let join = source(&activity).handle(move |Line { row, at }: Line| {
        told.handled.fetch_add(1, Ordering::Relaxed);
        let found = state.as_of(&(row.key, row.time))?;
        let _ = asks.check_pulse(time(row.time))?;
        handled(&messages_of, at.1);
        Ok::<_, BoxError>(found.map(|(_, number)| (at.1, number)))
    });
    let flow = Flow::new().with(update).with(join.sink(&answers)).checkpoint(&checkpoint);
    let late = Late {
        weather,
        activity,
        checkpoint: checkpoint.clone(),
        handled: next,
        counts: Arc::clone(&counts),
    };
    let (began, writing) = (Instant::now(), tokio::spawn(write(late)));
    flow.run(()).await?;
    writing.await?;
    for answered in &answers {
        let (offset, number) = answered?;
        assert_eq!(i64::from(number), offset, "the update of the message");
    }
    assert_eq!(answers.keys().count() as i64, messages);
    Ok((checkpoint.status().repairs, began.elapsed(), counts))
}

/// Each update comes twice: before its message, and once more, at the same time and with what counts, when that is
/// answered. Nothing is down, and each second one is as late as the threshold.
async fn each_is_late(messages: i64, threshold: i64) -> Result<(), BoxError> {
    let write = |late: Late| async move {
        for number in 0..messages {
            late.update(number * STEP, -1).await;
            late.message(number * STEP + threshold).await;
            late.update(number * STEP, number).await;
        }
        late.close();
    };
    let (repairs, took, counts) = runs(messages, threshold, write).await?;
    let Counts { handled, outages, widest } = &*counts;
    let (handled, widest) = (handled.load(Ordering::Relaxed) as i64, widest.load(Ordering::Relaxed));
    assert_eq!(outages.load(Ordering::Relaxed), 0);
    // The first at once, the last when all has ended.
    assert!(u128::from(repairs) <= took.as_millis() / GATHER.as_millis() + 2, "{repairs} in {took:?}");
    assert!(handled <= 3 * messages, "{handled} handled for {messages}");
    assert!(widest <= 1024, "the window grew to {widest}");
    assert!(repairs as i64 <= messages / 10 + 2, "{repairs} repairs of {messages} in {took:?}");
    Ok(())
}

/// So many, unless the environment asks for another number: in a debug build 10,000 take some seconds.
fn messages(usual: i64) -> i64 {
    let asked = std::env::var("SLIPSTREAM_LATE_MESSAGES").ok();
    asked.map_or(usual, |asked| asked.parse().expect("SLIPSTREAM_LATE_MESSAGES is a number"))
}

#[tokio::test]
async fn repairs_of_a_dependency_that_is_always_a_little_late_are_gathered() -> Result<(), BoxError> {
    each_is_late(messages(10_000), STEP / 2).await
}

#[tokio::test]
async fn so_they_are_where_no_update_may_be_late() -> Result<(), BoxError> {
    each_is_late(messages(10_000) / 4, 0).await
}

#[tokio::test]
async fn where_each_update_waits_for_its_message_each_message_comes_twice() -> Result<(), BoxError> {
    let messages = messages(10_000) / 10;
    let write = |late: Late| async move {
        for number in 0..messages {
            late.message(number * STEP).await;
            late.update(number * STEP, number).await;
        }
        late.close();
    };
    let (repairs, _, counts) = runs(messages, 0, write).await?;
    let Counts { handled, outages, widest } = &*counts;
    // All but the first, which nothing is known to be ahead of.
    assert_eq!(outages.load(Ordering::Relaxed) as i64, messages - 1);
    assert!(repairs as i64 <= messages);
    assert_eq!(handled.load(Ordering::Relaxed) as i64, 2 * messages);
    assert!(widest.load(Ordering::Relaxed) <= 2, "each outage closes the window");
    Ok(())
}
