//! One outage, from its notice to its repair.
use crate::{
    ends,
    stage::{Stage, minute, minutes},
};
use slipstream::{Checkpoint, DependencyState, Pulse, Result, source};

// D1.
#[tokio::test]
async fn what_was_answered_before_an_outage_was_noticed_is_answered_again_from_the_first_that_was_wrong()
-> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(10));
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather([0]).await;
    stage.activities([1, 3, 5, 7, 9, 30]);
    stage.events.until("weather is down").await;
    assert_eq!(stage.answers.take(), ["1: 0", "3: 0", "5: 0", "7: 0", "9: 0", "late 30: 0"]);
    assert!(checkpoint.status().is_paused);
    assert_eq!(checkpoint.status().dependencies[0].state, DependencyState::Down);
    // None of this is handled before the repair.
    stage.activities([31]);
    stage.weather([2, 4, 6, 8, 20]).await;
    assert_eq!(stage.answers.take(), [""; 0]);
    stage.weather([31]).await;
    stage.answers.until("31: 31").await;
    stage.close();
    run.await??;
    let again = ["again 3: 2", "again 5: 4", "again 7: 6", "again 9: 8", "again 30: 20", "31: 31"];
    assert_eq!(stage.answers.take(), again);
    assert!(stage.events.has(r#"repair ["weather"] from {0: 1}"#));
    Ok(())
}

// D2.
#[tokio::test]
async fn the_replay_begins_at_the_first_message_that_an_update_is_late_for_else_at_the_one_that_noticed()
-> Result<()> {
    for (back, from) in [(vec![6, 20], 1), (vec![20], 3)] {
        let stage = Stage::new();
        let checkpoint = stage.checkpoint(minutes(1));
        let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
        stage.weather([5]).await;
        stage.activities([5, 6, 6, 8]);
        stage.events.until("weather is down").await;
        stage.weather(back).await;
        stage.answers.until(if from == 1 { "again 8: 6" } else { "again 8: 5" }).await;
        stage.close();
        run.await??;
        assert!(
            stage.events.has(&format!(r#"repair ["weather"] from {{0: {from}}}"#)),
            "{:?}",
            stage.events.take()
        );
    }
    Ok(())
}

// D14.
#[tokio::test]
async fn an_update_at_the_time_of_what_was_handled_has_that_handled_again_and_nothing_before() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(0));
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather([9, 10]).await;
    stage.activities([9, 10, 10]);
    stage.answers.until("10: 10").await;
    // Equal is not behind: nothing was down.
    assert!(!checkpoint.status().is_paused);
    // Another station, at the same time.
    stage.weather.write_to(1, 10);
    stage.answers.until("again 10: 10").await;
    stage.close();
    run.await??;
    assert_eq!(stage.answers.take(), ["9: 9", "10: 10", "10: 10", "again 10: 10", "again 10: 10"]);
    assert!(stage.events.has("repair [] from {0: 1}"));
    Ok(())
}

// D15.
#[tokio::test]
async fn an_update_between_a_look_at_the_state_and_the_pulse_has_the_message_handled_again() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(0));
    let (looks, asks) = (stage.clone(), checkpoint.clone());
    let answers = source(&stage.activity).handle_async(move |(_, at): (i32, i64)| {
        let (stage, checkpoint) = (looks.clone(), asks.clone());
        async move {
            let found = stage.found(at)?;
            if !slipstream::is_replayed() {
                stage.weather([10]).await;
            }
            let pulse = checkpoint.check_pulse(minute(at))?;
            stage.answers.add(format!("{at}: {found:?} {}", pulse.is_down()));
            Ok::<_, slipstream::BoxError>(())
        }
    });
    let flow = stage.beats(&checkpoint).with(answers).checkpoint(&checkpoint);
    let run = tokio::spawn(ends(flow.run(())));
    stage.weather([8]).await;
    // It begins when the weather stands at 8, so it is answered by that.
    stage.activities([10]);
    stage.answers.until("10: Some(10) false").await;
    stage.close();
    run.await??;
    assert_eq!(stage.answers.take(), ["10: Some(8) true", "10: Some(10) false"]);
    Ok(())
}

// D16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_in_hand_when_a_repair_is_decided_is_finished_and_then_handled_again() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(1));
    let (looks, asks) = (stage.clone(), checkpoint.clone());
    let answers = source(&stage.activity).handle_async(move |(partition, at): (i32, i64)| {
        let (stage, checkpoint) = (looks.clone(), asks.clone());
        async move {
            let pulse = checkpoint.check_pulse(minute(at))?;
            stage.answer(partition, at, pulse, false)?;
            if at == 8 && !slipstream::is_replayed() {
                stage.events.until("released").await;
            }
            Ok::<_, slipstream::BoxError>(())
        }
    });
    let flow = stage.beats(&checkpoint).with(answers).checkpoint(&checkpoint);
    let run = tokio::spawn(ends(flow.run(())));
    stage.weather([7]).await;
    stage.activities([6, 7, 8, 8]);
    stage.answers.until("8: 7").await;
    stage.events.take();
    // Late for what is done: a repair is due, and waits for the one in hand.
    stage.weather([6]).await;
    assert_eq!(stage.events.take(), ["weather 6"]);
    assert_eq!(stage.answers.take(), ["6: ?", "7: 7", "8: 7"]);
    stage.events.add("released");
    stage.answers.until("again 8: 7").await;
    stage.answers.until("8: 7").await;
    stage.close();
    run.await??;
    assert_eq!(stage.activity.steer().positions().next(0), Some(4));
    let repairs = stage.events.take();
    assert!(repairs.contains(&"repair [] from {0: 1}".to_owned()), "{repairs:?}");
    assert_eq!(stage.answers.take(), ["again 7: 7", "again 8: 7", "8: 7"]);
    Ok(())
}

// D17.
#[tokio::test]
async fn the_last_heartbeat_between_a_message_s_beginning_and_its_pulse_leaves_nothing_paused() -> Result<()>
{
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(1));
    let (looks, asks) = (stage.clone(), checkpoint.clone());
    let answers = source(&stage.activity).handle_async(move |(_, at): (i32, i64)| {
        let (stage, checkpoint) = (looks.clone(), asks.clone());
        async move {
            if !slipstream::is_replayed() {
                stage.weather([60]).await;
            }
            let pulse = checkpoint.check_pulse(minute(at))?;
            stage.answer(0, at, pulse, false)
        }
    });
    let run = stage.beats(&checkpoint).with(answers).checkpoint(&checkpoint);
    let run = tokio::spawn(ends(run.run(())));
    stage.weather([0]).await;
    stage.activities([60]);
    stage.answers.until("again 60: 60").await;
    assert!(!checkpoint.status().is_paused);
    stage.close();
    run.await??;
    assert_eq!(stage.answers.take(), ["late 60: 60", "again 60: 60"]);
    Ok(())
}

// D10.
#[tokio::test]
async fn a_source_that_is_paused_before_its_first_message_begins_paused() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(1));
    stage.activity.steer().pause();
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.activities([0]);
    stage.weather([0]).await;
    assert_eq!(stage.answers.take(), [""; 0]);
    stage.activity.steer().resume();
    stage.answers.until("0: 0").await;
    stage.close();
    run.await?
}

// D6.
#[tokio::test]
async fn an_older_heartbeat_and_an_older_pulse_move_nothing_back() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(5));
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather([20, 12]).await;
    stage.activities([22, 3]);
    stage.answers.until("3: ?").await;
    let status = checkpoint.status();
    assert_eq!((status.marker, status.dependencies[0].marker), (Some(minute(22)), Some(minute(20))));
    assert_eq!(status.dependencies[0].lag, Some(minutes(2)));
    stage.close();
    run.await?
}

// D7.
#[tokio::test]
async fn a_dependency_has_recovered_when_it_has_reached_the_furthest_partition_of_the_dependent() -> Result<()>
{
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(1));
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather([540]).await;
    stage.activity.write_to(1, 540);
    stage.answers.until("540: 540").await;
    stage.activity.write_to(0, 720);
    stage.events.until("weather is down").await;
    stage.weather([651]).await;
    assert!(checkpoint.status().is_paused);
    assert!(checkpoint.check_pulse(minute(720))?.is_down());
    stage.weather([720]).await;
    stage.answers.until("again 720: 720").await;
    stage.close();
    run.await?
}

#[tokio::test]
async fn outside_of_any_message_a_pulse_is_answered_and_nothing_is_remembered() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(1));
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather([10]).await;
    let Pulse::Down(down) = checkpoint.check_pulse(minute(20))? else { panic!("it is far ahead") };
    assert_eq!(
        (&*down.dependency, down.downtime, down.marker),
        ("weather", Some(minutes(10)), Some(minute(10)))
    );
    assert_eq!((checkpoint.status().marker, checkpoint.status().is_paused), (None, false));
    // A heartbeat from there counts, if it says of whom.
    checkpoint.heartbeat_of("weather", minute(20))?;
    assert_eq!(checkpoint.check_pulse(minute(20))?, Pulse::Up);
    assert!(checkpoint.heartbeat(minute(21)).unwrap_err().to_string().contains("heartbeat_of"));
    stage.close();
    run.await??;
    let not_mounted = checkpoint.heartbeat_of("weather", minute(22)).unwrap_err();
    assert!(not_mounted.to_string().contains("flow.checkpoint"), "{not_mounted}");
    Ok(())
}

#[tokio::test]
async fn what_a_dependent_remembers_is_told_as_of_the_last_heartbeat() -> Result<()> {
    let stage = Stage::new();
    let events = stage.events.clone();
    let checkpoint = Checkpoint::builder("activity", &stage.activity)
        .dependency(stage.weather_within(minutes(1)))
        .on_downtime(move |outage| events.add(format!("{:?}", outage.state::<(String, i64)>())))
        .build()?;
    let (stage_of, asks) = (stage.clone(), checkpoint.clone());
    let answers = source(&stage.activity).handle(move |(_, at): (i32, i64)| -> Result<()> {
        let _ = asks.check_pulse_with(minute(at), &("offset", at))?;
        stage_of.answers.add(at);
        Ok(())
    });
    let flow = stage.beats(&checkpoint).with(answers).checkpoint(&checkpoint);
    let run = tokio::spawn(ends(flow.run(())));
    stage.weather([5]).await;
    stage.activities([5, 6]);
    stage.answers.until("6").await;
    stage.weather([7]).await;
    stage.activities([8, 30]);
    stage.events.until(r#"Ok(Some(("offset", 6)))"#).await;
    stage.close();
    run.await?
}

#[tokio::test]
async fn what_the_program_has_sought_back_comes_as_replayed_too() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(5));
    let run = tokio::spawn(ends(stage.flow(&checkpoint).run(())));
    stage.weather([9]).await;
    stage.activities([1, 2, 3]);
    stage.answers.until("3: ?").await;
    stage.answers.take();
    stage.activity.steer().seek(0, 1);
    stage.answers.until("again 3: ?").await;
    stage.activities([4]);
    stage.answers.until("4: ?").await;
    stage.close();
    run.await??;
    assert_eq!(stage.answers.take(), ["again 2: ?", "again 3: ?", "4: ?"]);
    Ok(())
}
