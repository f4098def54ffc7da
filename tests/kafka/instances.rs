//! Several instances of one flow, each with a store of its own, between which partitions move.
//!
//! ```text
//! topic ══▶ instance a: counts per partition ──▶ outputs
//!      ╚══▶ instance b: counts per partition ──▶ outputs
//! ```
//!
//! Whatever happens, in each store the count of a partition is the position in it.
use crate::{
    broker,
    child::{Child, say, told, until_told_to_end},
    group::Group,
    log::{Log, SOON},
    running::{Numbers, Running, becomes, comes, topic, topic_with},
};
use slipstream::{BoxError, Cache, Flow, Result, kafka::Encoded, source};
use std::{collections::BTreeMap, time::Duration};

/// A member that was killed is missed soon.
const SOON_MISSED: [(&str, &str); 2] = [("heartbeat.interval.ms", "300"), ("session.timeout.ms", "2000")];

/// Counts the messages of each partition, and gives out the place of each.
fn counting(from: &Numbers, counts: &Cache<i32, i64>, to: &Numbers) -> Flow<()> {
    let counted = counts.clone();
    let route = source(from).handle(move |message: Encoded<(), String>| {
        let message = message.message()?;
        counted.update(&message.partition, |count: Option<i64>| count.unwrap_or(0) + 1)?;
        Ok::<_, BoxError>(Some(((), format!("{}/{}", message.partition, message.offset))))
    });
    Flow::new().with(route.sink(to)).store(counts.store()).commit_every(Duration::from_millis(20))
}

/// What the outputs are when each was sent once.
fn each(partitions: i32, count: i64) -> Vec<String> {
    let mut all: Vec<_> =
        (0..partitions).flat_map(|of| (0..count).map(move |at| format!("{of}/{at}"))).collect();
    all.sort();
    all
}

/// S20.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_that_comes_back_is_read_from_this_store_and_no_output_is_repeated() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let (log, out) = (Log::new(servers, "instances", 1).await, Log::new(servers, "out", 1).await);
    let folder = tempfile::tempdir()?;
    let group = Group::new(servers, &log.name);
    let run = async |instance: &str, until: i64| -> Result<()> {
        let counts: Cache<i32, i64> = Cache::open(folder.path().join(instance))?;
        let from = topic_with(&log, &SOON_MISSED);
        let flow = counting(&from, &counts, &topic(&out)).named(&log.name).instance(instance);
        let running = Running::new(flow);
        becomes(
            || (counts.get(&0).unwrap(), group.offsets(&log).get(&0).copied()),
            (Some(until), Some(until)),
        )
        .await;
        running.stops().await?;
        assert!(group.committed(&log)[&0].1.contains(&format!("\"instance\":\"{instance}\"")));
        Ok(())
    };
    log.numbers(0, 0..100);
    run("a", 100).await?;
    assert_eq!(out.ends(0).1, 100);
    log.numbers(0, 100..500);
    run("b", 500).await?; // which handles the first hundred too, for its state
    assert_eq!(out.ends(0).1, 500);
    log.numbers(0, 500..600);
    run("a", 600).await?; // from 100
    run("b", 600).await?; // from 500
    assert_eq!(out.texts(), each(1, 600));
    Ok(())
}

/// K11, K13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_instance_is_replaced_and_when_it_goes_on_it_disturbs_nothing() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let (log, out) = (Log::new(servers, "frozen", 2).await, Log::new(servers, "frozen-out", 2).await);
    let folder = tempfile::tempdir()?;
    let group = Group::new(servers, &log.name);
    let state = |instance: &str| folder.path().join(instance).to_str().unwrap().to_owned();
    let start = |instance: &str| {
        let state = state(instance);
        let told = [
            ("SERVERS", servers),
            ("TOPIC", &log.name),
            ("OUT", &out.name),
            ("STATE", &state),
            ("INSTANCE", instance),
        ];
        Child::start("counting", &told)
    };
    let put = |from: i64| (0..2).for_each(|partition| log.numbers(partition, from..from + 100));
    let sent = |count: i64| {
        let (log, out) = (log.clone(), out.clone());
        async move {
            let all = || {
                let mut texts = out.texts();
                texts.dedup();
                texts
            };
            let found = comes(2 * SOON, || (all().len() >= each(2, count).len()).then_some(())).await;
            assert!(found.is_some(), "{}: {} of {}", log.name, all().len(), each(2, count).len());
        }
    };
    put(0);
    let a = start("a");
    sent(100).await;
    let b = start("b");
    // It has one of the partitions, and builds its state from the beginning.
    b.says(|line| line.ends_with(" 99"));
    let theirs = if b.said().iter().any(|line| line.starts_with("0 ")) { 0 } else { 1 };
    let ours = 1 - theirs;
    put(100);
    sent(200).await;
    put(200);
    // In the middle of it.
    a.says(|line| line == format!("{ours} 205"));
    a.stop();
    put(300);
    sent(400).await;
    let before = group.offsets(&log);
    assert_eq!(before, BTreeMap::from([(0, 400), (1, 400)]));
    a.go_on();
    put(400);
    let mut last = before;
    let goes_back = comes(Duration::from_secs(8), || {
        let now = group.offsets(&log);
        let is_back = last.iter().any(|(partition, next)| now[partition] < *next);
        let was = std::mem::replace(&mut last, now);
        is_back.then(|| (was, last.clone()))
    });
    assert_eq!(goes_back.await, None, "a late commit was taken");
    sent(500).await;
    becomes(|| group.offsets(&log), BTreeMap::from([(0, 500), (1, 500)])).await;
    a.end();
    b.end();
    let (a, b) = (a.ends_well(SOON), b.ends_well(SOON));
    for (instance, said) in [("a", a), ("b", b)] {
        let stands: Vec<_> = said.iter().filter_map(|line| line.strip_prefix("stands ")).collect();
        assert!(!stands.is_empty(), "{instance}: {said:?}");
        for line in stands {
            let numbers: Vec<i64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
            assert_eq!(numbers[1], numbers[2], "{instance}: partition {}: (count, position)", numbers[0]);
        }
    }
    println!("{} outputs came again", out.texts().len() - 1000);
    Ok(())
}

/// Counts as an instance, says what it handles, and in the end where it stands.
pub(crate) async fn instance() -> Result<()> {
    let servers = told("SERVERS");
    let counts: Cache<i32, i64> = Cache::open(told("STATE"))?;
    let settings = [("heartbeat.interval.ms", "300"), ("session.timeout.ms", "6000")];
    let from = topic_with(&Log::there(&servers, &told("TOPIC")), &settings).concurrency(2);
    let to = topic(&Log::there(&servers, &told("OUT")));
    let route = source(&from).handle_async(|message: Encoded<(), String>| async move {
        say(format!("{} {}", message.partition(), message.offset()));
        // So that it is in the middle of its messages for a while.
        tokio::time::sleep(Duration::from_millis(2)).await;
        None::<()>
    });
    let flow = counting(&from, &counts, &to).with(route).named(told("TOPIC")).instance(told("INSTANCE"));
    until_told_to_end(flow).await?;
    let positions = from.position();
    for row in &counts {
        let (partition, count) = row?;
        say(format!("stands {partition} {count} {}", positions.next(partition).unwrap_or(-1)));
    }
    Ok(())
}
