//! Callbacks: what the program does itself about an outage, and what becomes of it where that fails.
use crate::{
    ends,
    stage::{Stage, minute, minutes},
};
use slipstream::{Checkpoint, OnError, Result};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

const SOON: Duration = Duration::from_millis(1);

// D8.
#[tokio::test]
async fn callbacks_that_fail_are_called_again_and_nothing_is_resumed_before() -> Result<()> {
    let (stage, calls) = (Stage::new(), Arc::new(AtomicUsize::new(0)));
    let (events, seen, downs, backs) =
        (stage.events.clone(), stage.answers.clone(), calls.clone(), calls.clone());
    let checkpoint = Checkpoint::builder("activity", &stage.activity)
        .dependency(stage.weather_within(minutes(5)))
        .on_error(OnError::retry(5, SOON))
        .on_downtime(move |_| match downs.fetch_add(1, Ordering::Relaxed) {
            0 => Err("the pager is out of battery"),
            _ => Ok(()),
        })
        .on_recovery_async(move |_| {
            let (call, events, seen) = (backs.fetch_add(1, Ordering::Relaxed), events.clone(), seen.clone());
            async move {
                assert!(!seen.has("again 30: 30"), "nothing is handled before");
                events.add(format!("call {call}"));
                match call {
                    2 => Err("the other side does not listen"),
                    3 => panic!("nor now"),
                    _ => Ok(()),
                }
            }
        })
        .build()?;
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather([0]).await;
    stage.activities([30]);
    stage.answers.until("late 30: 0").await;
    stage.weather([30]).await;
    stage.answers.until("again 30: 30").await;
    stage.close();
    run.await??;
    let calls: Vec<_> = stage.events.take().into_iter().filter(|event| event.starts_with("call")).collect();
    assert_eq!(calls, ["call 2", "call 3", "call 4"]);
    Ok(())
}

// D8.
#[tokio::test]
async fn a_callback_that_never_succeeds_ends_the_flow_by_name_and_the_next_one_calls_it_again() -> Result<()>
{
    let stage = Stage::new();
    let fails = |stage: &Stage, fails: bool| {
        let events = stage.events.clone();
        Checkpoint::builder("activity", &stage.activity)
            .dependency(stage.weather_within(minutes(5)))
            .on_error(OnError::retry(1, SOON))
            .on_recovery(move |_| {
                events.add("called back");
                if fails { Err("no way") } else { Ok(()) }
            })
            .build()
            .unwrap()
    };
    let checkpoint = fails(&stage, true);
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather([0]).await;
    stage.activities([30]);
    stage.answers.until("late 30: 0").await;
    stage.weather([30]).await;
    let error = format!("{:?}", run.await?.unwrap_err());
    assert_eq!(
        error,
        "checkpoint `activity` ended the flow: the recovery callback of checkpoint `activity` failed: no way"
    );
    assert!(!stage.answers.has("again 30: 30"));

    let stage = stage.again();
    let checkpoint = fails(&stage, false);
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.answers.until("again 30: 30").await;
    assert!(stage.events.has("called back"));
    stage.close();
    run.await?
}

// D9.
#[tokio::test]
async fn nothing_of_the_dependent_is_handled_while_a_callback_takes_its_time() -> Result<()> {
    let (stage, released) = (Stage::new(), Arc::new(Notify::new()));
    let (events, waits) = (stage.events.clone(), released.clone());
    let checkpoint = Checkpoint::builder("activity", &stage.activity)
        .dependency(stage.weather_within(minutes(5)))
        .on_recovery_async(move |_| {
            let (events, waits) = (events.clone(), waits.clone());
            async move {
                events.add("called back");
                waits.notified().await;
            }
        })
        .build()?;
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather([0]).await;
    stage.activities([1, 30, 31]);
    stage.answers.until("late 30: 0").await;
    stage.answers.take();
    stage.weather([31]).await;
    stage.events.until("called back").await;
    // What comes meanwhile is part of the same repair.
    stage.weather([1]).await;
    assert_eq!(stage.answers.take(), [""; 0]);
    released.notify_one();
    stage.answers.until("31: 31").await;
    stage.close();
    run.await??;
    assert_eq!(stage.answers.take(), ["again 1: 1", "again 30: 1", "31: 31"]);
    assert_eq!(checkpoint.status().repairs, 1);
    Ok(())
}

#[tokio::test]
async fn a_callback_may_seek_further_back_and_not_less_far() -> Result<()> {
    for (sought, from) in [(0, 0), (3, 2)] {
        let stage = Stage::new();
        let control = stage.activity.steer().clone();
        let checkpoint = Checkpoint::builder("activity", &stage.activity)
            .dependency(stage.weather_within(minutes(5)))
            .on_recovery(move |_| control.seek(0, sought))
            .build()?;
        let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
        stage.weather([0]).await;
        stage.activities([1, 2, 30, 31]);
        stage.answers.until("late 30: 0").await;
        stage.answers.take();
        stage.weather([31]).await;
        stage.answers.until("31: 31").await;
        stage.close();
        run.await??;
        let again = ["again 1: 0", "again 2: 0", "again 30: 0", "31: 31"];
        assert_eq!(stage.answers.take(), again[from..]);
    }
    Ok(())
}

#[tokio::test]
async fn what_can_only_be_resumed_goes_on_after_what_it_has_answered() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = Checkpoint::builder("activity", &stage.activity);
    let checkpoint =
        stage.told(checkpoint.dependency(stage.weather_within(minutes(5))).resume_only()).build()?;
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather([0]).await;
    stage.activities([1, 30, 31]);
    stage.events.until("weather is down").await;
    stage.weather([31]).await;
    stage.answers.until("31: 31").await;
    stage.close();
    run.await??;
    assert_eq!(stage.answers.take(), ["1: 0", "late 30: 0", "31: 31"]);
    assert!(stage.events.has(r#"repair ["weather"] from {}"#));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn checks_of_a_dependency_s_own_decide_and_are_asked_each_second() -> Result<()> {
    let stage = Stage::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = asked.clone();
    let dependency = stage
        .weather_within(minutes(1000))
        .downtime_check(|check| *check.pulse >= minute(30) && check.marker.is_some_and(|at| *at < minute(20)))
        .recovery_check(move |check| {
            assert_eq!(check.dependency, "weather");
            counts.fetch_add(1, Ordering::Relaxed) >= 5
        });
    let checkpoint = Checkpoint::builder("activity", &stage.activity);
    let checkpoint = stage.told(checkpoint.dependency(dependency)).build()?;
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather([0]).await;
    stage.activities([29, 30]);
    stage.events.until("weather is down").await;
    // No heartbeat comes.
    stage.events.until(r#"repair ["weather"] from {0: 1}"#).await;
    assert!(asked.load(Ordering::Relaxed) >= 6);
    stage.weather([25]).await;
    stage.answers.until("again 30: 25").await;
    stage.close();
    run.await?
}
