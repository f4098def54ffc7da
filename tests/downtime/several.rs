//! Several dependencies, several checkpoints, several handlers.
use crate::{
    ends,
    log::Log,
    stage::{Seen, Stage, minute, minutes},
};
use slipstream::{Cache, Checkpoint, Dependency, DependencyState, Flow, Pulse, Result, is_replayed, source};

/// A second dependency beside the weather.
fn prices(
    stage: &Stage,
    checkpoint: &Checkpoint,
    prices: &Log,
) -> impl slipstream::builder::Attach<()> + use<> {
    let (checkpoint, events) = (checkpoint.clone(), stage.events.clone());
    source(prices).handle(move |(_, at): (i32, i64)| -> Result<()> {
        checkpoint.heartbeat(minute(at))?;
        events.add(format!("prices {at}"));
        Ok(())
    })
}

// D4, D5.
#[tokio::test]
async fn two_outages_have_a_notice_each_and_one_repair_when_the_last_is_over() -> Result<()> {
    let (stage, costs) = (Stage::new(), Log::new("prices"));
    let checkpoint = Checkpoint::builder("activity", &stage.activity)
        .dependency(stage.weather_within(minutes(5)))
        .dependency(Dependency::new("prices", &costs).threshold(minutes(20)));
    let checkpoint = stage.told(checkpoint).build()?;
    let run = tokio::spawn(ends(stage.flow(&checkpoint).with(prices(&stage, &checkpoint, &costs)).run(())));
    stage.weather([0]).await;
    costs.write(0);
    stage.events.until("prices 0").await;
    stage.activity.write_to(0, 1);
    stage.activity.write_to(1, 1);
    // Too far ahead of the weather, not of the prices; then of both, in the partition that was in hand.
    stage.activity.write_to(0, 10);
    stage.events.until("weather is down").await;
    let of = |state: DependencyState| {
        let status = checkpoint.status();
        status
            .dependencies
            .iter()
            .filter(|known| known.state == state)
            .map(|known| known.name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(of(DependencyState::Down), ["weather"]);
    let Pulse::Down(down) = checkpoint.check_pulse(minute(2))? else {
        panic!("while one is down all are told so")
    };
    assert_eq!(&*down.dependency, "weather");
    stage.weather([10]).await;
    stage.answers.until("again 10: 10").await;
    stage.activity.write_to(1, 40);
    stage.events.until("prices is down").await;
    let mut down = of(DependencyState::Down);
    down.sort();
    assert_eq!(down, ["prices", "weather"]);
    stage.events.take();
    stage.weather([40]).await;
    assert!(checkpoint.status().is_paused, "the prices are still away");
    assert_eq!(stage.events.take(), ["weather 40"]);
    costs.write(40);
    stage.answers.until("again 40: 40").await;
    let repairs: Vec<_> =
        stage.events.take().into_iter().filter(|event| event.starts_with("repair")).collect();
    assert_eq!(repairs, [r#"repair ["weather", "prices"] from {1: 1}"#]);
    costs.close();
    stage.close();
    run.await?
}

// D5.
#[tokio::test]
async fn several_pulses_during_one_outage_are_one_notice() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(5));
    let asks = checkpoint.clone();
    let answers = {
        let stage = stage.clone();
        source(&stage.activity.clone()).handle(move |(partition, at): (i32, i64)| -> Result<()> {
            for later in 0..3 {
                stage.answer(partition, at + later, asks.check_pulse(minute(at + later))?, false)?;
            }
            Ok(())
        })
    };
    let run = tokio::spawn(ends(stage.beats(&checkpoint).with(answers).checkpoint(&checkpoint).run(())));
    stage.weather([0]).await;
    stage.activities([30]);
    stage.answers.until("late 32: 0").await;
    stage.weather([32]).await;
    stage.answers.until("again 32: 32").await;
    stage.close();
    run.await??;
    let notices = stage.events.take().into_iter().filter(|event| event == "weather is down").count();
    assert_eq!(notices, 1);
    Ok(())
}

/// Adds to a sum, and leaves out what comes again.
fn sums(
    stage: &Stage,
    checkpoint: &Checkpoint,
    sum: &Cache<(), i64>,
) -> impl slipstream::builder::Attach<()> + use<> {
    let (checkpoint, sum, seen) = (checkpoint.clone(), sum.clone(), stage.answers.clone());
    source(&stage.activity)
        .handle(move |(_, at): (i32, i64)| -> Result<()> {
            if !is_replayed() {
                sum.update(&(), |old| Some(old.unwrap_or(0) + at))?;
            }
            checkpoint.check_pulse(minute(at))?.or_defer()?;
            seen.add(format!("summed {at}"));
            Ok(())
        })
        .named("sums")
}

// S22.
#[tokio::test]
async fn a_handler_that_does_not_check_is_called_once_for_each_message() -> Result<()> {
    let (stage, counted) = (Stage::new(), Seen::default());
    let checkpoint = stage.checkpoint(minutes(5));
    let counts = {
        let counted = counted.clone();
        source(&stage.activity).handle(move |(_, at): (i32, i64)| counted.add(at)).named("counts")
    };
    let run = tokio::spawn(ends(stage.flow(&checkpoint).with(counts).run(())));
    stage.weather([0]).await;
    stage.activities([1, 2, 3, 30, 31]);
    stage.events.until("weather is down").await;
    stage.weather([2, 31]).await;
    stage.answers.until("31: 31").await;
    stage.close();
    run.await??;
    assert_eq!(counted.take(), ["1", "2", "3", "30", "31"]);
    let again = ["1: 0", "2: 0", "3: 0", "late 30: 0", "again 2: 2", "again 3: 2", "again 30: 2", "31: 31"];
    assert_eq!(stage.answers.take(), again);
    Ok(())
}

// D18.
#[tokio::test]
async fn two_checkpoints_on_one_dependent_do_not_undo_each_other() -> Result<()> {
    let (stage, costs) = (Stage::new(), Log::new("prices"));
    let (counted, priced) = (Seen::default(), Seen::default());
    let weather = stage.checkpoint(minutes(5));
    let builder = Checkpoint::builder("priced", &stage.activity);
    let price =
        stage.told(builder.dependency(Dependency::new("prices", &costs).threshold(minutes(5)))).build()?;
    let asks = {
        let (price, priced) = (price.clone(), priced.clone());
        source(&stage.activity)
            .handle(move |(_, at): (i32, i64)| -> Result<()> {
                let how = if is_replayed() { "again " } else { "" };
                let _ = price.check_pulse(minute(at))?;
                priced.add(format!("{how}{at}"));
                Ok(())
            })
            .named("priced")
    };
    let counts = {
        let counted = counted.clone();
        source(&stage.activity).handle(move |(_, at): (i32, i64)| counted.add(at)).named("counts")
    };
    let flow =
        stage.flow(&weather).with(asks).with(counts).with(prices(&stage, &price, &costs)).checkpoint(&price);
    let run = tokio::spawn(ends(flow.run(())));
    stage.weather([0]).await;
    costs.write(0);
    stage.events.until("prices 0").await;
    stage.activities([1, 2, 3, 4, 20]);
    stage.events.until("weather is down").await;
    stage.events.until("prices is down").await;
    // The one is to go back to offset 3, the other to offset 1; whichever is first.
    stage.weather([4, 20]).await;
    costs.write(2);
    costs.write(20);
    priced.until("again 20").await;
    stage.answers.until("again 20: 20").await;
    costs.close();
    stage.close();
    run.await??;
    assert_eq!(counted.take(), ["1", "2", "3", "4", "20"]);
    let answers = ["1: 0", "2: 0", "3: 0", "4: 0", "late 20: 0", "again 4: 4", "again 20: 20"];
    assert_eq!(stage.answers.take(), answers);
    assert_eq!(priced.take(), ["1", "2", "3", "4", "20", "again 2", "again 3", "again 4", "again 20"]);
    Ok(())
}

// D19.
#[tokio::test]
async fn what_is_deferred_in_the_middle_of_a_replay_comes_again_and_counts_once() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(5));
    let sum: Cache<(), i64> = stage.store.cache("sum")?;
    let flow = stage.beats(&checkpoint).with(sums(&stage, &checkpoint, &sum)).checkpoint(&checkpoint);
    let run = tokio::spawn(ends(flow.run(())));
    stage.weather([0]).await;
    stage.activity.write_to(0, 1);
    stage.activity.write_to(0, 3);
    stage.activity.write_to(1, 30);
    stage.events.until("weather is down").await;
    assert_eq!(stage.answers.take(), ["summed 1"]);
    // The replay of partition 0, which is as far as 3, meets what is in partition 1, further ahead than the weather.
    stage.events.take();
    stage.activity.write_to(0, 60);
    stage.activity.write_to(1, 61);
    stage.weather([30]).await;
    stage.events.until("weather is down").await;
    stage.weather([61]).await;
    stage.answers.until("summed 61").await;
    stage.close();
    run.await??;
    assert_eq!(sum.get(&())?, Some(1 + 3 + 30 + 60 + 61));
    Ok(())
}

#[tokio::test]
async fn two_dependents_that_depend_on_each_other_both_end() -> Result<()> {
    let (stage, seen) = (Stage::new(), Seen::default());
    let there =
        Checkpoint::builder("there", &stage.activity).dependency(stage.weather_within(minutes(1))).build()?;
    let back = Checkpoint::builder("back", &stage.weather)
        .dependency(Dependency::new("activity", &stage.activity).threshold(minutes(1)))
        .build()?;
    let both = |seen: &Seen, own: &Checkpoint, other: &Checkpoint| {
        let (seen, own, other) = (seen.clone(), own.clone(), other.clone());
        move |(_, at): (i32, i64)| -> Result<()> {
            other.heartbeat(minute(at))?;
            let _ = own.check_pulse(minute(at))?;
            seen.add(at);
            Ok(())
        }
    };
    let flow = Flow::<()>::new()
        .with(source(&stage.activity).handle(both(&seen, &there, &back)))
        .with(source(&stage.weather).handle(both(&seen, &back, &there)))
        .checkpoint(&there)
        .checkpoint(&back)
        .store(&stage.store);
    stage.activities([1, 2, 3]);
    [1, 2, 3].into_iter().for_each(|at| stage.weather.write(at));
    stage.close();
    ends(flow.run(())).await?;
    let seen = seen.take();
    assert!(
        (1..=3).all(|at: i64| seen.iter().filter(|known| **known == at.to_string()).count() >= 2),
        "{seen:?}"
    );
    Ok(())
}
