//! What a restart finds: an outage that is not over, a repair that was not done.
use crate::{
    ends,
    stage::{Seen, Stage, minutes},
};
use slipstream::{Checkpoint, Result, Store, source};
use std::time::Duration;
use tokio::task::JoinHandle;

/// As a crash: what was not committed is lost.
async fn crash(run: JoinHandle<Result<()>>) {
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
}

// D3.
#[tokio::test]
async fn a_dependent_that_was_paused_begins_paused_and_is_repaired_from_before_the_restart() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(10));
    let flow = stage.flow(&checkpoint).commit_every(Duration::from_secs(3600));
    let handle = flow.handle();
    let run = tokio::spawn(flow.run(()));
    stage.weather([0]).await;
    stage.activities([1, 3, 30]);
    stage.events.until("weather is down").await;
    handle.commit_now().await?;
    crash(run).await;

    let stage = stage.again();
    let checkpoint = stage.checkpoint(minutes(10));
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    // Told of once more, since this process does not know that it was.
    stage.events.until("weather is down").await;
    assert!(checkpoint.status().is_paused);
    stage.activities([31]);
    stage.weather([2]).await;
    assert!(checkpoint.status().is_repair_due && checkpoint.status().is_paused);
    stage.weather([40]).await;
    stage.answers.until("31: 2").await;
    stage.close();
    run.await??;
    assert_eq!(stage.answers.take(), ["again 3: 2", "again 30: 2", "31: 2"]);
    Ok(())
}

#[tokio::test]
async fn an_outage_that_was_not_committed_is_noticed_once_more_by_the_same_message() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(10));
    let flow = stage.flow(&checkpoint).commit_every(Duration::from_secs(3600));
    let handle = flow.handle();
    let run = tokio::spawn(flow.run(()));
    stage.weather([0]).await;
    handle.commit_now().await?;
    stage.activities([30]);
    stage.events.until("weather is down").await;
    crash(run).await;

    let stage = stage.again();
    let checkpoint = stage.checkpoint(minutes(10));
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.answers.until("late 30: 0").await;
    stage.events.until("weather is down").await;
    stage.weather([30]).await;
    stage.answers.until("again 30: 30").await;
    stage.close();
    run.await?
}

#[tokio::test]
async fn a_crash_before_a_repair_is_committed_repairs_again_and_calls_back_again() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(10));
    let flow = stage.flow(&checkpoint).commit_every(Duration::from_secs(3600));
    let handle = flow.handle();
    let run = tokio::spawn(flow.run(()));
    stage.weather([0]).await;
    stage.activities([1, 30]);
    stage.events.until("weather is down").await;
    handle.commit_now().await?;
    stage.weather([30]).await;
    stage.answers.until("again 30: 30").await;
    crash(run).await;

    let stage = stage.again();
    let checkpoint = stage.checkpoint(minutes(10));
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.answers.until("again 30: 30").await;
    stage.close();
    run.await??;
    assert_eq!(stage.answers.take(), ["again 30: 30"]);
    assert!(stage.events.has(r#"repair ["weather"] from {0: 1}"#));
    Ok(())
}

#[tokio::test]
async fn after_a_repair_is_committed_a_crash_in_the_middle_of_the_replay_goes_on_in_it() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(1));
    let flow = stage.flow(&checkpoint).commit_every(Duration::from_secs(3600));
    let handle = flow.handle();
    let run = tokio::spawn(flow.run(()));
    stage.weather([5]).await;
    stage.activities([5, 6, 6, 8]);
    stage.events.until("weather is down").await;
    stage.weather([6, 20]).await;
    stage.answers.until("again 8: 6").await;
    stage.activities([20]);
    stage.answers.until("20: 20").await;
    handle.commit_now().await?;
    crash(run).await;

    let stage = stage.again();
    let checkpoint = stage.checkpoint(minutes(1));
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.activities([20]);
    stage.answers.until("20: 20").await;
    stage.close();
    run.await??;
    // Nothing of before comes again.
    assert_eq!(stage.answers.take(), ["20: 20"]);
    Ok(())
}

#[tokio::test]
async fn what_was_deferred_before_a_restart_comes_after_it_for_the_first_time() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(10));
    let flow = stage.deferring(&checkpoint);
    let handle = flow.handle();
    let run = tokio::spawn(flow.run(()));
    stage.weather([0]).await;
    stage.activities([1, 30]);
    stage.events.until("weather is down").await;
    handle.commit_now().await?;
    crash(run).await;

    let stage = stage.again();
    let checkpoint = stage.checkpoint(minutes(10));
    let run = tokio::spawn(ends(stage.deferring(&checkpoint).run(())));
    stage.weather([30]).await;
    stage.answers.until("30: 30").await;
    stage.close();
    run.await??;
    assert_eq!(stage.answers.take(), ["30: 30"], "no earlier handling of it was published");
    Ok(())
}

#[tokio::test]
async fn a_stopped_flow_keeps_its_outage_and_lets_go_of_the_source() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let stage = Stage::over(&Store::open(directory.path())?);
    let checkpoint = stage.checkpoint(minutes(10));
    let flow = stage.flow(&checkpoint);
    let handle = flow.handle();
    let run = tokio::spawn(ends(flow.run(())));
    stage.weather([0]).await;
    stage.activities([30]);
    stage.events.until("weather is down").await;
    handle.stop();
    run.await??;
    assert!(!stage.activity.steer().is_paused());
    let (weather, activity) = (stage.weather.clone(), stage.activity.clone());
    drop((stage, checkpoint));

    let mut stage = Stage::over(&Store::open(directory.path())?);
    (stage.weather, stage.activity) = (weather, activity);
    let checkpoint = stage.checkpoint(minutes(10));
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.events.until("weather is down").await;
    assert!(stage.activity.steer().is_paused());
    stage.weather([30]).await;
    stage.answers.until("again 30: 30").await;
    stage.close();
    run.await?
}

#[tokio::test]
async fn where_the_program_seeks_before_a_start_all_handlers_go_in_the_middle_of_a_replay_too() -> Result<()>
{
    let (stage, counted) = (Stage::new(), Seen::default());
    let flow = |stage: &Stage, checkpoint: &Checkpoint, waits: bool| {
        let (counted, released) = (counted.clone(), stage.events.clone());
        let counts = source(&stage.activity).handle_async(move |(_, at): (i32, i64)| {
            let (counted, released) = (counted.clone(), released.clone());
            async move {
                counted.add(at);
                // The second of the replay: nobody but the one that answers is called before it.
                if waits && at == 31 {
                    released.until("released").await;
                }
            }
        });
        let flow = stage.flow(checkpoint).with(counts.named("counts"));
        flow.commit_every(Duration::from_secs(3600))
    };
    let checkpoint = stage.checkpoint(minutes(5));
    let first = flow(&stage, &checkpoint, true);
    let handle = first.handle();
    let run = tokio::spawn(first.run(()));
    stage.weather([0]).await;
    stage.activities([1, 2, 30]);
    stage.events.until("weather is down").await;
    stage.activities([31]);
    stage.weather([31]).await;
    // The replay is over, and message 31 is in hand.
    counted.until("31").await;
    handle.commit_now().await?;
    crash(run).await;
    assert_eq!(counted.take(), ["1", "2", "30", "31"]);

    let stage = stage.again();
    let checkpoint = stage.checkpoint(minutes(5));
    stage.activity.steer().seek(0, 1);
    let run = tokio::spawn(ends(flow(&stage, &checkpoint, false).run(())));
    counted.until("31").await;
    stage.close();
    run.await??;
    assert_eq!(counted.take(), ["2", "30", "31"]);
    Ok(())
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_named_before_anything_is_read() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(10));
    stage.close();
    stage.activities([1]);
    ends(stage.flow(&checkpoint).run(())).await?;
    // The same name, and markers of another kind.
    let stage = stage.again();
    let by_text = Checkpoint::<String>::by("activity", &stage.activity)
        .dependency(slipstream::Dependency::new("weather", &stage.weather))
        .build()?;
    let flow = stage.beats(&checkpoint).with(source(&stage.activity).handle(|_| ())).checkpoint(&by_text);
    let error = ends(flow.run(())).await.unwrap_err();
    let error = format!("{error:?}");
    assert!(error.contains("checkpoint `activity`") && error.contains("cannot be read"), "{error}");
    Ok(())
}
