//! Groups: slow handlers, rebalances, new partitions, names of instances.
use crate::{
    broker,
    child::{Child, say, told},
    group::Group,
    lines,
    log::{Log, SOON},
    running::{
        QUICK, Running, STRATEGIES, Seen, becomes, chain, comes, ends, fails, handling, has_partitions,
        seeing, topic, topic_with,
    },
};
use slipstream::{Kafka, Offset, Result, Store};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Semaphore;

/// A member that does not ask for messages for so long is taken for dead.
const SLOW: [(&str, &str); 2] = [("max.poll.interval.ms", "6000"), ("session.timeout.ms", "6000")];

/// K1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_slower_than_the_longest_poll_interval_keeps_its_place() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "slow", 5).await;
    let group = Group::new(servers, &log.name);
    let seen = Seen::default();
    let sees = seen.clone();
    let topic = topic_with(&log, &SLOW).until(Offset::End);
    let flow = handling(&topic, move |message| {
        sees.add(&message);
        async move {
            if message.offset == 1 {
                tokio::time::sleep(Duration::from_secs(9)).await;
            }
            Ok(())
        }
    });
    ends(flow.named(&log.name).store(&Store::in_memory()?)).await?;
    assert_eq!(seen.of(0), (0..5).collect::<Vec<_>>());
    assert_eq!(group.offsets(&log), BTreeMap::from([(0, 5)]));
    Ok(())
}

/// K2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paused_for_three_poll_intervals_it_is_the_same_member_of_the_same_generation() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "paused", 20).await;
    let group = Group::new(servers, &log.name);
    let seen = Seen::default();
    let topic = topic_with(&log, &SLOW).group(&log.name);
    let (sees, pauses) = (seen.clone(), topic.clone());
    let running = Running::new(handling(&topic, move |message| {
        sees.add(&message);
        if message.offset == 9 && sees.len() == 10 {
            pauses.pause();
        }
        async { Ok(()) }
    }));
    becomes(|| group.offsets(&log).get(&0).copied(), Some(10)).await;
    let before = (group.members(), group.generations());
    tokio::time::sleep(3 * Duration::from_secs(6)).await;
    assert_eq!((group.members(), group.generations()), before);
    assert!(before.0.len() == 1 && !before.1.is_empty(), "{before:?}");
    assert_eq!(seen.len(), 10);
    topic.seek([(0, 5)]).await?;
    topic.resume();
    seen.has(25).await;
    assert_eq!(seen.of(0), (0..10).chain(5..20).collect::<Vec<_>>());
    becomes(|| group.offsets(&log).get(&0).copied(), Some(20)).await;
    assert_eq!((group.members(), group.generations()), before);
    running.stops().await
}

/// K10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_waits_for_twenty_messages_in_work_and_commits_them() -> Result<()> {
    const PARTITIONS: i32 = 20;
    let Some(servers) = broker::one() else { return Ok(()) };
    for strategy in STRATEGIES {
        let log = Log::new(servers, "twenty", PARTITIONS).await;
        for partition in 0..PARTITIONS {
            log.numbers(partition, 0..50);
        }
        let group = Group::new(servers, &log.name);
        let (seen, gate) = (Seen::default(), Arc::new(Semaphore::new(0)));
        let in_work = Arc::new(AtomicUsize::new(0));
        let topic = topic_with(&log, strategy).group(&log.name).concurrency(20);
        let (sees, waits, begins) = (seen.clone(), Arc::clone(&gate), Arc::clone(&in_work));
        let running = Running::new(handling(&topic, move |message| {
            let (seen, gate, in_work) = (sees.clone(), Arc::clone(&waits), Arc::clone(&begins));
            async move {
                if message.offset == 5 {
                    in_work.fetch_add(1, Ordering::Relaxed);
                    gate.acquire().await?.forget();
                }
                seen.add(&message);
                Ok(())
            }
        }));
        becomes(|| in_work.load(Ordering::Relaxed), 20).await;
        let rival = group.rival(&log, strategy);
        let waits = comes(Duration::from_millis(1500), || {
            rival.poll();
            (!rival.assigned().is_empty()).then_some(())
        });
        assert!(waits.await.is_none(), "{strategy:?}: it let go of {:?} in work", rival.assigned());
        gate.add_permits(20);
        let mut theirs = rival.has(10).await;
        let assigned = rival.assigned();
        let begun = |theirs: &[(i32, i64)]| {
            let first = |of: &i32| theirs.iter().find(|(partition, _)| partition == of).map(|(_, at)| *at);
            assigned.iter().filter_map(|of| first(of).map(|at| (*of, at))).collect::<Vec<_>>()
        };
        // Where ours has handled a partition to its end, nothing comes.
        let left = assigned.iter().filter(|of| group.offsets(&log).get(of) != Some(&50)).count();
        theirs.extend(rival.sees(|more| begun(&[&theirs, more].concat()).len() >= left).await);
        for (partition, first) in begun(&theirs) {
            let handled = seen.of(partition);
            let next = handled.last().map_or(0, |last| last + 1);
            assert_eq!(handled, (0..next).collect::<Vec<_>>(), "{strategy:?}");
            assert!(next > 5, "{strategy:?}: {partition} had a message in work");
            let again = next - first;
            assert!((0..=1).contains(&again), "{strategy:?}: {partition} is at {next}, theirs at {first}");
        }
        drop(rival);
        running.stops().await?;
    }
    Ok(())
}

/// K12.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_fetched_before_a_partition_moved_away_and_came_back_is_not_handled() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let strategies = STRATEGIES.into_iter().filter(|strategy| strategy.len() > 1);
    for strategy in strategies {
        let log = Log::new(servers, "away", 2).await;
        (0..2).for_each(|partition| log.numbers(partition, 0..1000));
        let group = Group::new(servers, &log.name);
        let (seen, gate) = (Seen::default(), Arc::new(Semaphore::new(0)));
        let topic = topic_with(&log, strategy).group(&log.name).concurrency(2);
        let (sees, waits) = (seen.clone(), Arc::clone(&gate));
        let running = Running::new(handling(&topic, move |message| {
            let (seen, gate) = (sees.clone(), Arc::clone(&waits));
            async move {
                seen.add(&message);
                if message.offset >= 10 {
                    gate.acquire().await?.forget();
                }
                Ok(())
            }
        }));
        // A thousand each are fetched, and of one at least a message is in hand.
        seen.has(11).await;
        let rival = group.rival(&log, strategy);
        comes(Duration::from_millis(700), || rival.poll()).await;
        gate.add_permits(2);
        rival.has(1).await;
        let theirs = rival.assigned()[0];
        let before = seen.of(theirs);
        rival.commit(theirs, 500);
        drop(rival);
        gate.add_permits(5000);
        comes(SOON, || (seen.of(theirs).last() == Some(&999)).then_some(())).await;
        comes(SOON, || (seen.of(1 - theirs).last() == Some(&999)).then_some(())).await;
        let after = seen.of(theirs).split_off(before.len());
        assert_eq!(after, (500..1000).collect::<Vec<_>>(), "{strategy:?}, before it went: {before:?}");
        let mut kept = seen.of(1 - theirs);
        kept.dedup();
        assert_eq!(kept, (0..1000).collect::<Vec<_>>(), "{strategy:?}");
        running.stops().await?;
    }
    Ok(())
}

/// Members come and go while messages are written: none is lost, whatever the way to share partitions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_members_come_and_go_no_message_is_lost() -> Result<()> {
    const PARTITIONS: i32 = 4;
    const EACH: i64 = 300;
    let Some(servers) = broker::one() else { return Ok(()) };
    for strategy in STRATEGIES {
        let log = Log::new(servers, "come-and-go", PARTITIONS).await;
        let group = Group::new(servers, &log.name);
        let seen = Seen::default();
        let start = || {
            let topic = topic_with(&log, strategy).group(&log.name).concurrency(4);
            Running::new(seeing(&topic, &seen))
        };
        let put = |from: i64| (0..PARTITIONS).for_each(|partition| log.numbers(partition, from..from + EACH));
        let first = start();
        put(0);
        seen.has(50).await;
        let second = start();
        put(EACH);
        becomes(|| group.members().len(), 2).await;
        let third = start();
        put(2 * EACH);
        becomes(|| group.members().len(), 3).await;
        first.stops().await?;
        put(3 * EACH);
        becomes(|| group.members().len(), 2).await;
        second.crashes().await;
        put(4 * EACH);
        let all: Vec<_> = (0..PARTITIONS).flat_map(|part| (0..5 * EACH).map(move |at| (part, at))).collect();
        comes(2 * SOON, || (seen.once().len() >= all.len()).then_some(())).await;
        assert!(seen.once() == all, "{strategy:?}: {} of {} came", seen.once().len(), all.len());
        becomes(|| group.offsets(&log), (0..PARTITIONS).map(|part| (part, 5 * EACH)).collect()).await;
        third.stops().await?;
        println!("{strategy:?}: {} of {} came again", seen.len() - all.len(), all.len());
    }
    Ok(())
}

/// K15.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_partitions_are_added_while_it_runs_nothing_of_them_is_lost() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    for (start, with_store) in [(Offset::Beginning, true), (Offset::End, true), (Offset::Beginning, false)] {
        let log = Log::new(servers, "grow", 2).await;
        let seen = Seen::default();
        let settings = [QUICK[0], QUICK[1], ("topic.metadata.refresh.interval.ms", "300")];
        let topic = topic_with(&log, &settings).start(start);
        let mut flow = seeing(&topic, &seen).named(&log.name);
        if with_store {
            flow = flow.store(&Store::in_memory()?);
        }
        let running = Running::new(flow);
        // Where the partitions begin is known before their first messages.
        if start == Offset::End {
            becomes(|| topic.position().iter().count(), 2).await;
        }
        (0..2).for_each(|partition| log.numbers(partition, 0..10));
        seen.has(20).await;
        log.grow(4).await;
        (2..4).for_each(|partition| log.numbers(partition, 0..10));
        seen.has(40).await;
        running.stops().await?;
        let all: Vec<_> = (0..4).flat_map(|partition| (0..10).map(move |at| (partition, at))).collect();
        assert_eq!(seen.once(), all, "{start:?}, a store: {with_store}");
        assert_eq!(seen.len(), 40);
    }
    Ok(())
}

/// K14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_name_that_is_taken_in_this_process_is_refused() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "taken", 10).await;
    let seen = Seen::default();
    let flow = || seeing(&topic_with(&log, &QUICK), &seen).named(&log.name).instance("a");
    let running = Running::new(flow());
    seen.has(10).await;
    let error = fails(flow()).await;
    assert!(error.contains('a') && error.contains(&log.name) && error.contains("instance"), "{error}");
    assert!(running.is_running());
    running.stops().await?;
    // It is free again.
    log.numbers(0, 10..20);
    let running = Running::new(flow());
    seen.has(20).await;
    running.stops().await
}

/// K14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_processes_with_one_instance_name_one_ends_with_an_error() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "both", 10).await;
    let told = [("SERVERS", servers), ("TOPIC", log.name.as_str())];
    let mut first = Child::start("instance", &told);
    first.says(|line| line == "seen 9");
    let second = Child::start("instance", &told);
    // The broker lets the later one in, and the earlier one out.
    let ended = first.ends(2 * SOON);
    assert!(!ended.success(), "{}", first.output());
    let output = first.output();
    assert!(output.contains("instance"), "{output}");
    log.numbers(0, 10..20);
    second.says(|line| line == "seen 19");
    second.end();
    second.ends_well(SOON);
    Ok(())
}

/// Reads as instance `a`, and says what it sees.
pub(crate) async fn instance() -> Result<()> {
    let log = Log::there(&told("SERVERS"), &told("TOPIC"));
    let flow = handling(&topic_with(&log, &QUICK), |message| async move {
        say(format!("seen {}", message.offset));
        Ok(())
    });
    crate::child::until_told_to_end(flow.named(&log.name).instance("a")).await
}

/// A restart under the same instance name is no rebalance.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_under_the_same_instance_name_moves_no_partition() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::new(servers, "static", 2).await;
    (0..2).for_each(|partition| log.numbers(partition, 0..10));
    let group = Group::new(servers, &log.name);
    let (mine, theirs) = (Seen::default(), Seen::default());
    let settings = [QUICK[0], ("session.timeout.ms", "30000")];
    let start = async |seen: &Seen, instance: &str, partitions: usize| -> Result<Running> {
        let topic = topic_with(&log, &settings);
        let flow = seeing(&topic, seen).named(&log.name).instance(instance);
        let running = Running::new(flow.store(&Store::in_memory()?));
        has_partitions(&topic, partitions).await;
        Ok(running)
    };
    let other = start(&theirs, "b", 2).await?;
    theirs.has(20).await;
    let running = start(&mine, "a", 1).await?;
    // It goes on where the first has committed.
    (0..2).for_each(|partition| log.numbers(partition, 10..20));
    mine.has(10).await;
    theirs.has(30).await;
    let before = group.generations();
    assert!(!before.is_empty());
    running.stops().await?;
    let running = start(&mine, "a", 1).await?;
    (0..2).for_each(|partition| log.numbers(partition, 20..30));
    mine.has(20).await;
    theirs.has(40).await;
    assert_eq!(group.generations(), before);
    running.stops().await?;
    other.stops().await
}

/// A topic has to have a group, and an unnamed flow has none to give.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_name_and_without_a_group_it_is_an_error_that_names_both_remedies() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "unnamed", 1).await;
    let error = fails(seeing(&topic(&log), &Seen::default())).await;
    for part in [log.name.as_str(), "group", "named"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    Ok(())
}

/// Each group commit says which flow, which instance, which store and which commit of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_the_offset_the_group_has_the_flow_the_instance_the_store_and_the_epoch() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    for instance in [None, Some("east")] {
        let log = Log::of_numbers(servers, "beside", 10).await;
        let folder = tempfile::tempdir()?;
        let store = Store::open(folder.path())?;
        let seen = Seen::default();
        let mut flow = seeing(&topic(&log).until(Offset::End), &seen).named(&log.name).store(&store);
        if let Some(instance) = instance {
            flow = flow.instance(instance);
        }
        ends(flow).await?;
        let committed = Group::new(servers, &log.name).committed(&log);
        let (offset, text) = &committed[&0];
        assert_eq!(*offset, 10);
        for part in [
            format!("\"flow\":\"{}\"", log.name),
            format!("\"instance\":\"{}\"", instance.unwrap_or("default")),
            format!("\"store\":\"{}\"", store.id()),
            format!("\"epoch\":{}", store.epoch()),
            "\"v\":1".to_owned(),
        ] {
            assert!(text.contains(&part), "{part}: {text}");
        }
    }
    Ok(())
}

/// Two topics that are joined by partition have to have as many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_of_one_flow_with_unequal_partition_counts_are_warned_of() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let (two, three) = (Log::new(servers, "of-two", 2).await, Log::new(servers, "of-three", 3).await);
    let kafka = Kafka::new([("bootstrap.servers", servers)])?;
    let read = |log: &Log| kafka.topic::<(), String>(&log.name).text().until(Offset::End);
    let flow = slipstream::Flow::new()
        .with(slipstream::source(&read(&two)).and(&read(&three)).handle(|_| None::<()>))
        .named(&two.name);
    ends(flow).await?;
    let warned = lines::with(&two.name);
    let is_it = |line: &&String| line.starts_with("WARN") && line.contains(&three.name);
    assert!(warned.iter().any(|line| is_it(&line)), "{warned:#?}");
    Ok(())
}

/// S1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_messages_handled_are_three_committed_and_none_comes_again() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    for with_store in [false, true] {
        let log = Log::of_numbers(servers, "three", 3).await;
        let (seen, store) = (Seen::default(), Store::in_memory()?);
        let start = |topic: &crate::running::Numbers| {
            let flow = seeing(topic, &seen).named(&log.name);
            Running::new(if with_store { flow.store(&store) } else { flow })
        };
        let running = start(&topic(&log));
        seen.has(3).await;
        running.stops().await?;
        assert_eq!(Group::new(servers, &log.name).offsets(&log), BTreeMap::from([(0, 3)]));
        let again = topic(&log);
        let running = start(&again);
        log.numbers(0, 3..4);
        seen.has(4).await;
        becomes(|| Group::new(servers, &log.name).offsets(&log), BTreeMap::from([(0, 4)])).await;
        assert_eq!(again.lag().await?, BTreeMap::from([(0, 0)]));
        running.stops().await?;
        assert_eq!(seen.of(0), [0, 1, 2, 3]);
    }
    Ok(())
}

/// Whatever it fails by, it says with all causes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_fails_leaves_the_offset_before_its_message() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "leaves", 5).await;
    let flow = handling(&topic(&log), |message| async move {
        if message.offset == 3 { Err("not this one".into()) } else { Ok(()) }
    });
    let error = ends(flow.named(&log.name)).await.unwrap_err();
    assert!(
        chain(&*error).contains("not this one") && chain(&*error).contains(&log.name),
        "{}",
        chain(&*error)
    );
    becomes(|| Group::new(servers, &log.name).offsets(&log), BTreeMap::from([(0, 3)])).await;
    Ok(())
}

/// A flow that is dropped, as in a crash, is no member any more, and its store is free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_that_is_dropped_leaves_its_group_and_frees_its_store() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "dropped", 10).await;
    let (group, seen, folder) = (Group::new(servers, &log.name), Seen::default(), tempfile::tempdir()?);
    // Whoever keeps a clone of the topic keeps neither.
    let topic = topic(&log);
    for runs in 1..=2 {
        let store = Store::open(folder.path())?;
        let running = Running::new(seeing(&topic, &seen).named(&log.name).store(&store));
        drop(store);
        seen.has(10).await;
        becomes(|| group.members().len(), 1).await;
        running.crashes().await;
        let freed = comes(SOON, || Store::open(folder.path()).ok()).await;
        assert!(freed.is_some(), "run {runs}: the store is not free");
        becomes(|| group.members().len(), 0).await;
    }
    Ok(())
}

/// A rebalance that leaves a partition where it is leaves it at its message. librdkafka took the end of a partition for
/// a message, and went on behind the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_that_stays_through_a_rebalance_misses_no_message() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    for strategy in &STRATEGIES[1..] {
        let log = Log::new(servers, "stays", 2).await;
        (0..2).for_each(|partition| log.numbers(partition, 0..6));
        let group = Group::new(servers, &log.name);
        let (seen, gate) = (Seen::default(), Arc::new(Semaphore::new(0)));
        let topic = topic_with(&log, strategy).group(&log.name).concurrency(2);
        let (sees, waits) = (seen.clone(), Arc::clone(&gate));
        let running = Running::new(handling(&topic, move |message| {
            let (seen, gate) = (sees.clone(), Arc::clone(&waits));
            async move {
                seen.add(&message);
                if message.offset == 5 {
                    gate.acquire().await?.forget();
                }
                Ok(())
            }
        }));
        // The last message of both is in hand, so that the rebalance waits at the ends of the partitions.
        seen.has(12).await;
        let rival = group.rival(&log, strategy);
        comes(Duration::from_millis(1500), || rival.poll()).await;
        (0..2).for_each(|partition| log.numbers(partition, 6..7));
        gate.add_permits(4);
        rival.has(1).await;
        let stays = 1 - rival.assigned()[0];
        comes(SOON, || (seen.of(stays).last() == Some(&6)).then_some(())).await;
        assert_eq!(seen.of(stays), (0..7).collect::<Vec<_>>(), "{strategy:?}");
        drop(rival);
        running.stops().await?;
    }
    Ok(())
}
