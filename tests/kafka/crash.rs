//! Killed at random times, a flow from a topic to a topic has counted each message once, and has lost no output.
//!
//! ```text
//! topic ══4 at a time══▶ counts: of each partition, of all ──▶ outputs
//! ```
//!
//! The flow runs in a process of its own, under one instance name, so that it need not wait for the member that was
//! killed. `SLIPSTREAM_CRASHES=500` kills it so often; a seed that failed is printed, and given again as
//! `SLIPSTREAM_SEED`. `SLIPSTREAM_MESSAGES` is how many the long test has.
use crate::{
    broker,
    child::{Child, say, told},
    group::Group,
    log::Log,
    running::{topic, topic_with},
};
use slipstream::{BoxError, Cache, Flow, Offset, Result, Store, kafka::Encoded, source};
use std::{
    collections::BTreeMap,
    env,
    path::Path,
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const PARTITIONS: i32 = 4;
const EACH: i64 = 3000;

/// So many microseconds a run has at the most until it is killed.
const LONGEST: u64 = 900_000;

/// A run that is not killed comes to its end within this.
const A_RUN: Duration = Duration::from_secs(120);

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap())
}

/// A small generator, so that a failure can be run again by its seed.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// Counts to the end of the topic; says each thousand, and that it is done.
pub(crate) async fn counts() -> Result<()> {
    crate::lines::show();
    let servers = told("SERVERS");
    let store = Store::open(told("STATE"))?;
    let (parts, all): (Cache<i32, i64>, Cache<(), i64>) = (store.cache("parts")?, store.cache("all")?);
    let settings = [("session.timeout.ms", "6000"), ("heartbeat.interval.ms", "300")];
    let from = topic_with(&Log::there(&servers, &told("TOPIC")), &settings).until(Offset::End);
    let handled = AtomicI64::new(0);
    let count = move |message: &Encoded<(), String>| {
        let message = message.message()?;
        parts.update(&message.partition, |count: Option<i64>| count.unwrap_or(0) + 1)?;
        let value = message.value.parse::<i64>()?;
        all.update(&(), |sum: Option<i64>| sum.unwrap_or(0) + value)?;
        let handled = handled.fetch_add(1, Ordering::Relaxed) + 1;
        if handled % 1000 == 0 {
            say(handled);
        }
        Ok::<_, BoxError>(format!("{}/{}", message.partition, message.offset))
    };
    let flow = match env::var("OUT") {
        Ok(out) => {
            let out = topic(&Log::there(&servers, &out));
            // Two may want the sum at once: then one of them runs again.
            let from = from.concurrency(4);
            let route = source(&from).handle(move |message| count(&message).map(|at| Some(((), at))));
            Flow::new().with(route.sink(&out)).commit_every(Duration::from_millis(3)).commit_after(50)
        }
        Err(_) => Flow::new().with(source(&from).handle(move |message| count(&message).map(|_| None::<()>))),
    };
    flow.store(&store).named(told("TOPIC")).instance("one").run(()).await?;
    say("done");
    Ok(())
}

fn start(log: &Log, out: Option<&Log>, state: &Path) -> Child {
    let mut told =
        vec![("SERVERS", log.servers.as_str()), ("TOPIC", &log.name), ("STATE", state.to_str().unwrap())];
    told.extend(out.map(|out| ("OUT", out.name.as_str())));
    Child::start("counts", &told)
}

/// What is in a store that no flow runs over.
fn state(folder: &Path) -> (BTreeMap<i32, i64>, Option<i64>) {
    let store = Store::open(folder).unwrap();
    let parts: Cache<i32, i64> = store.cache("parts").unwrap();
    let all: Cache<(), i64> = store.cache("all").unwrap();
    (parts.iter().map(|row| row.unwrap()).collect(), all.get(&()).unwrap())
}

/// S2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_random_times_each_message_is_counted_once_and_no_output_is_lost() {
    let Some(servers) = broker::one() else { return };
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let mut seed = number("SLIPSTREAM_SEED").unwrap_or(u64::try_from(clock % u128::from(u64::MAX)).unwrap());
    println!("SLIPSTREAM_SEED={seed}");
    let mut left = number("SLIPSTREAM_CRASHES").unwrap_or(15);
    while left > 0 {
        let (log, out) =
            (Log::new(servers, "crash", PARTITIONS).await, Log::new(servers, "crash-out", PARTITIONS).await);
        (0..PARTITIONS).for_each(|partition| log.numbers(partition, 0..EACH));
        let folder = tempfile::tempdir().unwrap();
        let (began, mut kills, mut is_done) = (seed, 0, false);
        while left > 0 && !is_done {
            let after = Duration::from_micros(next(&mut seed) % LONGEST);
            is_done = start(&log, Some(&out), folder.path()).ends_or_is_killed(after);
            left -= u64::from(!is_done);
            kills += u32::from(!is_done);
        }
        if !is_done {
            start(&log, Some(&out), folder.path()).ends_well(A_RUN);
        }
        let what = format!("seed {began}, killed {kills} times");
        let parts: BTreeMap<_, _> = (0..PARTITIONS).map(|partition| (partition, EACH)).collect();
        let sum = i64::from(PARTITIONS) * EACH * (EACH - 1) / 2;
        assert_eq!(state(folder.path()), (parts.clone(), Some(sum)), "{what}");
        assert_eq!(Group::new(servers, &log.name).offsets(&log), parts, "{what}");
        let mut texts = out.texts();
        let count = texts.len();
        texts.dedup();
        let mut all: Vec<_> =
            (0..PARTITIONS).flat_map(|part| (0..EACH).map(move |at| format!("{part}/{at}"))).collect();
        all.sort();
        assert!(texts == all, "{what}: of {} outputs {} are there", all.len(), texts.len());
        println!("{what}: {} of {} outputs came again", count - all.len(), all.len());
    }
}

/// S3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_thousand_messages_with_one_kill_in_the_middle_are_three_hundred_thousand() {
    let Some(servers) = broker::one() else { return };
    let count = i64::try_from(number("SLIPSTREAM_MESSAGES").unwrap_or(300_000)).unwrap();
    let log = Log::new(servers, "many", 1).await;
    log.numbers(0, 0..count);
    let folder = tempfile::tempdir().unwrap();
    let child = start(&log, None, folder.path());
    child.says(|line| line.parse().is_ok_and(|handled: i64| handled >= count / 2));
    child.kill();
    let (parts, _) = state(folder.path());
    let counted = parts.get(&0).copied().unwrap_or(0);
    assert!((1..count).contains(&counted), "{counted}: it was not killed in the middle");
    start(&log, None, folder.path()).ends_well(A_RUN);
    assert_eq!(state(folder.path()), (BTreeMap::from([(0, count)]), Some(count * (count - 1) / 2)));
}
