//! A dependency that ends, is idle, or never sends anything.
use crate::{
    ends,
    stage::{Stage, minutes},
};
use slipstream::{Checkpoint, DependencyState, OnEnd, Result, Unknown};
use std::time::Duration;

// D11.
#[tokio::test]
async fn a_dependency_that_ends_while_it_is_waited_for_counts_as_caught_up_or_is_an_error() -> Result<()> {
    for on_end in [OnEnd::CaughtUp, OnEnd::Fail] {
        let stage = Stage::new();
        let checkpoint = Checkpoint::builder("activity", &stage.activity)
            .dependency(stage.weather_within(minutes(5)).on_end(on_end));
        let checkpoint = stage.told(checkpoint).build()?;
        let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
        stage.weather([0]).await;
        stage.activities([30, 31]);
        stage.events.until("weather is down").await;
        stage.weather.write(9);
        stage.close();
        let ended = run.await?;
        if on_end == OnEnd::Fail {
            let error = format!("{:?}", ended.unwrap_err());
            assert!(error.contains("`weather` has ended while its dependent waits for it"), "{error}");
            continue;
        }
        ended?;
        assert_eq!(stage.answers.take(), ["late 30: 0", "again 30: 9", "31: 9"]);
        assert_eq!(checkpoint.status().dependencies[0].state, DependencyState::Quiet);
    }
    Ok(())
}

// D12.
#[tokio::test]
async fn before_its_first_heartbeat_a_dependency_is_unknown_by_policy() -> Result<()> {
    for unknown in [Unknown::FirstPulse, Unknown::Ignore, Unknown::Fail] {
        let stage = Stage::new();
        let checkpoint = Checkpoint::builder("activity", &stage.activity)
            .dependency(stage.weather_within(minutes(5)).unknown(unknown));
        let checkpoint = stage.told(checkpoint).build()?;
        let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
        stage.activities([100, 105, 106]);
        match unknown {
            Unknown::Fail => {
                let error = format!("{:?}", run.await?.unwrap_err());
                assert!(error.contains("nothing has come of `weather` yet"), "{error}");
                continue;
            }
            Unknown::Ignore => stage.answers.until("106: ?").await,
            _ => {
                // The first pulse stands in for it.
                stage.answers.until("late 106: ?").await;
                assert_eq!(stage.answers.take(), ["100: ?", "105: ?", "late 106: ?"]);
            }
        }
        stage.weather([101]).await;
        stage.close();
        run.await??;
        assert!(stage.answers.has("again 106: 101"), "{:?}", stage.answers.take());
    }
    Ok(())
}

// D12.
#[tokio::test]
async fn a_partition_without_a_heartbeat_does_not_hold_the_others_up() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(5));
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather.write_to(1, 30);
    stage.events.until("weather 30").await;
    stage.activities([30]);
    stage.answers.until("30: 30").await;
    assert!(!checkpoint.status().is_paused);
    stage.close();
    run.await?
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_is_idle_at_its_end_counts_as_ahead_until_it_is_heard_of() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = Checkpoint::builder("activity", &stage.activity)
        .dependency(stage.weather_within(minutes(5)).idle(Duration::from_secs(5)));
    let checkpoint = stage.told(checkpoint).build()?;
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather.write_to(1, 0);
    stage.weather([0]).await;
    stage.activities([30]);
    stage.events.until("weather is down").await;
    // Five seconds without anything.
    stage.events.until(r#"repair ["weather"] from {0: 0}"#).await;
    stage.answers.until("again 30: 0").await;
    assert_eq!(checkpoint.status().dependencies[0].state, DependencyState::Quiet);
    // It still finds what is late.
    stage.weather([10]).await;
    stage.answers.until("again 30: 10").await;
    stage.close();
    run.await?
}

#[tokio::test]
async fn a_finite_dependent_waits_at_its_end_for_what_its_dependencies_still_send() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(0));
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather([30]).await;
    stage.activities([10, 30]);
    stage.activity.close();
    stage.answers.until("30: 30").await;
    stage.weather.write_to(1, 30);
    stage.answers.until("again 30: 30").await;
    stage.weather.close();
    run.await?
}
