//! Pause, resume and seek, by the program and by a handler, with messages fetched ahead.
use crate::{
    broker,
    group::Group,
    log::{Log, SOON, unique},
    running::{Numbers, Running, Seen, becomes, comes, handling, seeing, topic, topic_with},
};
use futures::StreamExt;
use slipstream::{BoxError, Flow, Offset, Result, Store, kafka::Encoded, source};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Semaphore;

/// So long it is looked whether something happens that must not.
const A_WHILE: Duration = Duration::from_millis(400);

/// A flow that waits for a permit of the gate at each message of this offset, and sees it before.
fn gated(topic: &Numbers, at: i64, seen: &Seen, gate: &Arc<Semaphore>) -> Flow<()> {
    let (seen, gate) = (seen.clone(), Arc::clone(gate));
    handling(topic, move |message| {
        let (seen, gate) = (seen.clone(), Arc::clone(&gate));
        async move {
            seen.add(&message);
            if message.offset == at {
                gate.acquire().await?.forget();
            }
            Ok(())
        }
    })
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Pause,
    Resume,
    /// To some message.
    Astray,
    /// To the one that is to be next.
    Seek,
}

/// Each ends running, with a seek to where it is to go on as the last one.
const ORDERS: [&[Step]; 8] = {
    use Step::{Astray, Pause, Resume, Seek};
    [
        &[Seek],
        &[Pause, Seek, Resume],
        &[Seek, Pause, Resume],
        &[Pause, Resume, Seek],
        &[Pause, Astray, Seek, Resume],
        &[Astray, Pause, Seek, Resume],
        &[Pause, Pause, Seek, Resume],
        &[Pause, Resume, Pause, Seek, Resume, Resume],
    ]
};

/// Takes the steps while message 0 is in hand and `ahead` messages behind it are fetched; number `target` is next.
async fn goes_where_it_is_sought(
    servers: &str,
    ahead: i64,
    target: i64,
    from_the_handler: bool,
) -> Result<()> {
    for order in ORDERS {
        let log = Log::new(servers, "orders", 1).await;
        log.numbers(0, 0..1 + ahead);
        let (seen, gate) = (Seen::default(), Arc::new(Semaphore::new(0)));
        let topic = topic(&log).group(&log.name);
        let steps = {
            let topic = topic.clone();
            move || {
                let topic = topic.clone();
                async move {
                    for step in order {
                        match step {
                            Step::Pause => topic.pause(),
                            Step::Resume => topic.resume(),
                            Step::Astray => topic.seek([(0, ahead / 2)]).await?,
                            Step::Seek => topic.seek([(0, target)]).await?,
                        }
                    }
                    Ok::<_, BoxError>(())
                }
            }
        };
        let flow = if from_the_handler {
            let (seen, steps, is_first) = (seen.clone(), steps.clone(), Arc::new(AtomicBool::new(true)));
            handling(&topic, move |message| {
                seen.add(&message);
                let first = is_first.swap(false, Ordering::Relaxed).then(&steps);
                async move {
                    match first {
                        Some(steps) => steps.await,
                        None => Ok(()),
                    }
                }
            })
        } else {
            gated(&topic, 0, &seen, &gate)
        };
        let running = Running::new(flow);
        seen.has(1).await;
        if !from_the_handler {
            steps().await?;
            gate.add_permits(2); // it may come a second time
        }
        // Those that come later, so that it goes on whatever was fetched before.
        log.numbers(0, 1 + ahead..1 + ahead + 10);
        let last = ahead + 10;
        comes(SOON, || (seen.all().last() == Some(&(0, last))).then_some(())).await;
        let expected: Vec<i64> = [0].into_iter().chain(target..=last).collect();
        assert_eq!(seen.of(0), expected, "{order:?}, {ahead} ahead, to {target}");
        running.stops().await?;
    }
    Ok(())
}

/// K3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_any_order_of_pause_seek_and_resume_with_nothing_fetched_the_message_sought_is_next()
-> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    goes_where_it_is_sought(servers, 0, 0, false).await
}

/// K3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_any_order_of_pause_seek_and_resume_with_one_fetched_the_message_sought_is_next() -> Result<()>
{
    let Some(servers) = broker::one() else { return Ok(()) };
    goes_where_it_is_sought(servers, 1, 0, false).await?;
    goes_where_it_is_sought(servers, 1, 1, false).await
}

/// K3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_any_order_of_pause_seek_and_resume_with_a_thousand_fetched_the_message_sought_is_next()
-> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    goes_where_it_is_sought(servers, 1000, 7, false).await?;
    goes_where_it_is_sought(servers, 1000, 990, false).await
}

/// K3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_seeks_its_own_source_and_the_message_sought_is_next() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    goes_where_it_is_sought(servers, 1000, 7, true).await
}

/// K4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resumed_twice_at_once_it_handles_each_message_once() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "twice", 1000).await;
    let (seen, gate) = (Seen::default(), Arc::new(Semaphore::new(0)));
    let topic = topic(&log).group(&log.name);
    let running = Running::new(gated(&topic, 9, &seen, &gate));
    seen.has(10).await;
    for _ in 0..20 {
        topic.pause();
        topic.resume();
        topic.resume();
    }
    gate.add_permits(1);
    seen.has(1000).await;
    running.stops().await?;
    assert_eq!(seen.of(0), (0..1000).collect::<Vec<_>>());
    Ok(())
}

/// K4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_that_arrives_while_the_topic_is_paused_is_paused_too() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::new(servers, "arrives", 2).await;
    let group = Group::new(servers, &log.name);
    let rival = group.rival(&log, &crate::running::QUICK);
    rival.has(2).await;
    let seen = Seen::default();
    let topic = topic_with(&log, &crate::running::QUICK).group(&log.name);
    topic.pause();
    let running = Running::new(seeing(&topic, &seen));
    rival.has(1).await;
    (0..2).for_each(|partition| log.numbers(partition, 0..100));
    drop(rival);
    // Both are ours when the group has one member left.
    becomes(|| group.members().len(), 1).await;
    assert!(comes(A_WHILE, || (seen.len() > 0).then_some(())).await.is_none(), "{:?}", seen.all());
    topic.resume();
    topic.resume();
    seen.has(200).await;
    running.stops().await?;
    for partition in 0..2 {
        assert_eq!(seen.of(partition), (0..100).collect::<Vec<_>>());
    }
    Ok(())
}

/// K5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paused_at_the_tenth_of_a_thousand_it_goes_on_with_the_eleventh() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "tenth", 1000).await;
    let (seen, gate) = (Seen::default(), Arc::new(Semaphore::new(0)));
    let topic = topic(&log).group(&log.name);
    let running = Running::new(gated(&topic, 9, &seen, &gate));
    seen.has(10).await;
    topic.pause();
    gate.add_permits(1);
    // What is handled is committed, so nothing is in hand any more.
    let group = Group::new(servers, &log.name);
    becomes(|| group.offsets(&log).get(&0).copied(), Some(10)).await;
    assert!(comes(A_WHILE, || (seen.len() > 10).then_some(())).await.is_none(), "{:?}", seen.all());
    topic.resume();
    seen.has(1000).await;
    running.stops().await?;
    assert_eq!(seen.of(0), (0..1000).collect::<Vec<_>>());
    Ok(())
}

/// K6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_by_the_handler_of_a_message_holds_the_next_one() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "holds", 500).await;
    let seen = Seen::default();
    let topic = topic(&log).group(&log.name);
    let (pauses, sees) = (topic.clone(), seen.clone());
    let running = Running::new(handling(&topic, move |message| {
        sees.add(&message);
        if message.offset == 3 {
            pauses.pause();
        }
        async { Ok(()) }
    }));
    holds_at_three(&topic, &seen).await;
    running.stops().await
}

/// K6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_by_a_handler_behind_a_pipe_holds_the_next_message() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "pipe", 500).await;
    let seen = Seen::default();
    let topic = topic(&log).group(&log.name);
    let (pauses, sees) = (topic.clone(), seen.clone());
    let route =
        source(&topic).pipe(|items| items.map(|encoded| encoded.message().unwrap())).handle(move |message| {
            sees.add(&message);
            if message.offset == 3 {
                pauses.pause();
            }
        });
    let running = Running::new(Flow::new().with(route));
    holds_at_three(&topic, &seen).await;
    running.stops().await
}

async fn holds_at_three(topic: &Numbers, seen: &Seen) {
    seen.has(4).await;
    assert!(topic.is_paused());
    assert!(comes(A_WHILE, || (seen.len() > 4).then_some(())).await.is_none(), "{:?}", seen.all());
    topic.resume();
    seen.has(500).await;
    assert_eq!(seen.of(0), (0..500).collect::<Vec<_>>());
}

/// K7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seek_before_the_flow_runs_and_one_right_at_its_start_are_applied_with_the_assignment() -> Result<()>
{
    let Some(servers) = broker::one() else { return Ok(()) };
    for before in [true, false] {
        let log = Log::of_numbers(servers, "early", 100).await;
        let seen = Seen::default();
        let topic = topic(&log).group(&log.name);
        let flow = seeing(&topic, &seen);
        let running = if before {
            topic.seek([(0, 30)]).await?;
            Running::new(flow)
        } else {
            let running = Running::new(flow);
            topic.seek([(0, 30)]).await?;
            running
        };
        seen.has(70).await;
        running.stops().await?;
        assert_eq!(seen.of(0), (30..100).collect::<Vec<_>>(), "before: {before}");
    }
    Ok(())
}

/// K7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seek_to_the_beginning_before_the_flow_runs_is_resolved() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "resolved", 100).await;
    log.cut(0, 40).await;
    let seen = Seen::default();
    let topic = topic(&log).group(&log.name).start(Offset::End);
    topic.seek([(0, Offset::Beginning)]).await?;
    let running = Running::new(seeing(&topic, &seen));
    seen.has(60).await;
    running.stops().await?;
    assert_eq!(seen.of(0), (40..100).collect::<Vec<_>>());
    Ok(())
}

/// K7, K8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seek_during_a_rebalance_is_kept_for_what_stays() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    for strategy in crate::running::STRATEGIES {
        let log = Log::new(servers, "while", 2).await;
        (0..2).for_each(|partition| log.numbers(partition, 0..100));
        let seen = Seen::default();
        let topic = topic_with(&log, strategy).group(&log.name);
        let running = Running::new(seeing(&topic, &seen));
        seen.has(200).await;
        let rival = Group::new(servers, &log.name).rival(&log, strategy);
        let (mut tried, mut named) = (0, Vec::new());
        // From the first moment of the rebalance to its end.
        while rival.assigned().len() != 1 {
            rival.poll();
            tried += 1;
            if let Err(error) = topic.seek([(0, 50), (1, 50)]).await {
                named.push(error.to_string());
            }
            tokio::task::yield_now().await;
        }
        let theirs = rival.assigned()[0];
        let ours = 1 - theirs;
        seen.clear();
        topic.seek([(ours, 60)]).await?;
        comes(SOON, || (seen.all().last() == Some(&(ours, 99))).then_some(())).await;
        let end: Vec<_> = seen.of(ours).into_iter().rev().take(40).rev().collect();
        assert_eq!(end, (60..100).collect::<Vec<_>>(), "{strategy:?}, sought {tried} times");
        let both = topic.seek([(ours, 70), (theirs, 70)]).await.unwrap_err().to_string();
        assert!(both.contains(&theirs.to_string()) && both.contains(&log.name), "{both}");
        drop(rival);
        running.stops().await?;
    }
    Ok(())
}

/// K8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_partitions_sought_the_one_that_is_ours_is_sought_and_the_other_is_named() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "seven", 10).await;
    let seen = Seen::default();
    let topic = topic(&log).group(&log.name);
    let running = Running::new(seeing(&topic, &seen));
    seen.has(10).await;
    let error = topic.seek([(0, Offset::At(3)), (7, Offset::Beginning)]).await.unwrap_err().to_string();
    assert!(error.contains('7') && error.contains(&log.name), "{error}");
    seen.has(17).await;
    running.stops().await?;
    assert_eq!(seen.of(0), (0..10).chain(3..10).collect::<Vec<_>>());
    Ok(())
}

/// S6: the position that is stored follows a seek with the first message handled after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sought_back_and_crashed_it_goes_on_behind_the_last_message_handled() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "back", 100).await;
    let (store, seen, gate) = (Store::in_memory()?, Seen::default(), Arc::new(Semaphore::new(0)));
    let topic = topic(&log);
    let is_second = Arc::new(AtomicBool::new(false));
    let (sees, waits, second) = (seen.clone(), Arc::clone(&gate), Arc::clone(&is_second));
    let flow = handling(&topic, move |message| {
        let (seen, gate) = (sees.clone(), Arc::clone(&waits));
        let holds = second.load(Ordering::Relaxed) && message.offset == 60;
        async move {
            if holds {
                gate.acquire().await?.forget();
            }
            seen.add(&message);
            Ok(())
        }
    });
    let running = Running::new(flow.named(&log.name).store(&store));
    seen.has(100).await;
    is_second.store(true, Ordering::Relaxed);
    topic.seek([(0, 50)]).await?;
    let group = Group::new(servers, &log.name);
    becomes(|| group.offsets(&log).get(&0).copied(), Some(60)).await;
    running.crashes().await;
    seen.clear();
    let again = crate::running::topic(&log).until(Offset::End);
    crate::running::ends(seeing(&again, &seen).named(&log.name).store(&store)).await?;
    assert_eq!(seen.of(0), (60..100).collect::<Vec<_>>());
    Ok(())
}

/// S7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sought_forward_and_crashed_before_the_message_it_goes_on_where_it_was() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "forward", 200).await;
    let (store, seen, gate) = (Store::in_memory()?, Seen::default(), Arc::new(Semaphore::new(0)));
    let topic = topic(&log);
    let seeks = topic.clone();
    let (sees, waits) = (seen.clone(), Arc::clone(&gate));
    let flow = handling(&topic, move |message| {
        let (topic, seen, gate) = (seeks.clone(), sees.clone(), Arc::clone(&waits));
        async move {
            seen.add(&message);
            if message.offset == 10 {
                topic.seek([(0, 100)]).await?;
            }
            if message.offset == 100 {
                gate.acquire().await?.forget();
            }
            Ok(())
        }
    });
    let running = Running::new(flow.named(&log.name).store(&store));
    seen.has(12).await;
    let group = Group::new(servers, &log.name);
    becomes(|| group.offsets(&log).get(&0).copied(), Some(11)).await;
    running.crashes().await;
    assert_eq!(seen.of(0), (0..=10).chain([100]).collect::<Vec<_>>());
    seen.clear();
    let again = crate::running::topic(&log).until(Offset::At(20));
    crate::running::ends(seeing(&again, &seen).named(&log.name).store(&store)).await?;
    assert_eq!(seen.of(0), (11..20).collect::<Vec<_>>());
    Ok(())
}

/// What `position` and `lag` say while it runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn position_and_lag_tell_how_far_it_is() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "lag", 100).await;
    let (seen, gate) = (Seen::default(), Arc::new(Semaphore::new(0)));
    let store = Store::in_memory()?;
    let topic = topic(&log);
    let running = Running::new(gated(&topic, 40, &seen, &gate).named(unique("lag")).store(&store));
    seen.has(41).await;
    // Message 40 is in hand.
    becomes(|| topic.position().next(0), Some(40)).await;
    assert_eq!(topic.lag().await?.into_iter().collect::<Vec<_>>(), [(0, 60)]);
    gate.add_permits(1);
    becomes(|| topic.position().next(0), Some(100)).await;
    assert_eq!(topic.lag().await?.into_iter().collect::<Vec<_>>(), [(0, 0)]);
    running.stops().await
}

/// A handler may take what it is given as it was encoded, and see the place without decoding.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_decoded_only_where_it_is_asked_for() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "encoded", 3).await;
    let found = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&found);
    let topic = topic(&log).group(&log.name).until(Offset::End);
    let route = source(&topic).handle(move |encoded: Encoded<(), String>| {
        let bytes = encoded.value_bytes().map(<[u8]>::to_vec);
        sees.lock().unwrap().push((encoded.partition(), encoded.offset(), bytes));
    });
    crate::running::ends(Flow::new().with(route)).await?;
    let expected: Vec<_> = (0..3).map(|n: i64| (0, n, Some(n.to_string().into_bytes()))).collect();
    assert_eq!(*found.lock().unwrap(), expected);
    Ok(())
}
