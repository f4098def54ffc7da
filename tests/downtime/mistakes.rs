//! What is refused, and how it is told.
use crate::{
    ends,
    log::Log,
    stage::{Stage, minute, minutes},
};
use slipstream::{Checkpoint, Dependency, Flow, Marker, Result, Store, iter, named, source};
use std::time::Duration;

/// The whole chain of what a flow ends with.
async fn told(flow: Flow<()>) -> String {
    format!("{:?}", ends(flow.run(())).await.unwrap_err())
}

#[test]
fn a_checkpoint_that_cannot_be_is_not_built() {
    let (weather, activity) = (Log::new("weather"), Log::new("activity"));
    let dependency = || Dependency::new("weather", &weather);
    let builder = || Checkpoint::builder("activity", &activity);
    let error = |built: Result<Checkpoint, slipstream::CheckpointError>| built.unwrap_err().to_string();
    assert!(error(builder().build()).ends_with("and has none"));
    assert!(
        error(builder().dependency(dependency()).dependency(dependency()).build())
            .ends_with("and has `weather` twice")
    );
    let itself = Dependency::new("self", &activity);
    assert!(error(builder().dependency(itself).build()).contains("`self` is the dependent itself"));
    let unnamed = iter([1]);
    let error_of_unnamed = error(builder().dependency(Dependency::new("list", &unnamed)).build());
    assert!(error_of_unnamed.contains(r#"give it one: `named("…", source)`"#), "{error_of_unnamed}");
    assert!(builder().dependency(Dependency::new("list", &named("list", iter([1])))).build().is_ok());
    let by_number = Checkpoint::<u64>::by("activity", &activity);
    let threshold = Dependency::new("weather", &weather).threshold(Duration::from_secs(1));
    let error = by_number.dependency(threshold).build().unwrap_err().to_string();
    assert!(error.contains("no times") && error.contains("downtime_check"), "{error}");
}

// D13.
#[tokio::test]
async fn a_dependent_or_a_dependency_that_is_not_part_of_the_flow_is_an_error_at_start() {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(1));
    let error = told(stage.beats(&checkpoint).checkpoint(&checkpoint)).await;
    assert!(error.contains("checkpoint `activity` has a dependent that is not part of the flow"), "{error}");
    let answers = source(&stage.activity).handle(|_| ());
    let error = told(Flow::new().with(answers).checkpoint(&checkpoint).store(&stage.store)).await;
    assert!(error.contains("depends on `weather`, whose source is not part of the flow"), "{error}");
}

#[tokio::test]
async fn what_a_checkpoint_needs_of_a_flow_is_named_at_start() {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(1));
    let twice = stage.flow(&checkpoint).checkpoint(&checkpoint);
    assert!(told(twice).await.contains("is mounted twice, or has the name of another"));
    let (weather, activity) = (named("weather", iter([1])), named("activity", iter([1])));
    let plain = |resume_only: bool| {
        let builder =
            Checkpoint::builder("plain", &activity).dependency(Dependency::new("weather", &weather));
        let checkpoint = if resume_only { builder.resume_only() } else { builder }.build().unwrap();
        Flow::<()>::new()
            .with(source(&weather).handle(|_| ()))
            .with(source(&activity).handle(|_| ()))
            .checkpoint(&checkpoint)
    };
    let store = Store::in_memory().unwrap();
    let error = told(plain(true)).await;
    assert!(error.contains("needs a store for its record") && error.contains(".store(&store)"), "{error}");
    let error = told(plain(false).store(&store)).await;
    assert!(error.contains("cannot be read again") && error.contains("resume_only"), "{error}");
    ends(plain(true).store(&store).run(())).await.unwrap();
}

#[tokio::test]
async fn a_call_in_a_message_of_another_source_is_an_error_of_the_handler() {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(1));
    let other = iter([1]);
    for call in ["heartbeat", "check_pulse", "pulse of a dependency", "heartbeat of the dependent"] {
        let stage = stage.again();
        let calls = {
            let checkpoint = checkpoint.clone();
            move || -> Result<()> {
                match call {
                    "heartbeat" | "heartbeat of the dependent" => checkpoint.heartbeat(minute(1))?,
                    _ => drop(checkpoint.check_pulse(minute(1))?),
                }
                Ok(())
            }
        };
        let quiet = || Flow::<()>::new().store(&stage.store).checkpoint(&checkpoint);
        let in_weather = calls.clone();
        let flow = match call {
            "heartbeat" | "check_pulse" => quiet()
                .with(source(&other).handle(move |_| calls()))
                .with(source(&stage.weather).handle(|_| ()))
                .with(source(&stage.activity).handle(|_| ())),
            "pulse of a dependency" => quiet()
                .with(source(&stage.weather).handle(move |_| in_weather()))
                .with(source(&stage.activity).handle(|_| ())),
            _ => quiet()
                .with(source(&stage.weather).handle(|_| ()))
                .with(source(&stage.activity).handle(move |_| calls())),
        };
        stage.weather.write(1);
        stage.activity.write(1);
        let error = told(flow).await;
        let known = match call {
            "heartbeat" => {
                "in a message of a source that it does not know; call it in a handler of one of its dependencies"
            }
            "check_pulse" => {
                "in a message of a source that it does not know; call it in a handler of its dependent, `activity`"
            }
            "pulse of a dependency" => "in a message of one of its dependencies, and not its dependent",
            _ => "in a message of its dependent, and not one of its dependencies",
        };
        assert!(error.contains(known), "{call}: {error}");
    }
}

#[tokio::test]
async fn to_defer_where_that_cannot_be_is_an_error_of_the_handler() {
    // What can only be resumed.
    let stage = Stage::new();
    let checkpoint = Checkpoint::builder("activity", &stage.activity)
        .dependency(stage.weather_within(minutes(1)))
        .resume_only()
        .build()
        .unwrap();
    stage.activities([10]);
    let run = tokio::spawn(ends(stage.deferring(&checkpoint).run(())));
    stage.weather([1]).await;
    stage.activities([20, 30]);
    let error = format!("{:?}", run.await.unwrap().unwrap_err());
    assert!(error.contains("only resumes its dependent"), "{error}");
    // An old answer.
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(1));
    let asks = checkpoint.clone();
    let old = std::sync::Mutex::new(None);
    let answers = source(&stage.activity).handle(move |(_, at): (i32, i64)| -> Result<()> {
        if let Some(deferred) = old.lock().unwrap().take() {
            return Err(slipstream::Deferred::into(deferred));
        }
        *old.lock().unwrap() = asks.check_pulse(minute(at))?.down().map(|down| down.defer());
        Ok(())
    });
    let run = tokio::spawn(ends(stage.beats(&checkpoint).with(answers).checkpoint(&checkpoint).run(())));
    stage.weather([1]).await;
    stage.activities([20]);
    stage.events.until("weather is down").await;
    stage.weather([20]).await;
    let error = format!("{:?}", run.await.unwrap().unwrap_err());
    assert!(error.contains("after a pulse of this message that was `Down`"), "{error}");
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
struct Batch(u64);
impl Marker for Batch {}

#[tokio::test]
async fn any_ordered_value_is_a_marker() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = Checkpoint::<Batch>::by("activity", &stage.activity)
        .dependency(Dependency::new("weather", &stage.weather))
        .build()?;
    let (beats, asks, seen) = (checkpoint.clone(), checkpoint.clone(), stage.answers.clone());
    let batch = |at: i64| Batch(at.unsigned_abs());
    let events = stage.events.clone();
    let flow = Flow::<()>::new()
        .with({
            let beats = source(&stage.weather).handle(move |(partition, at): (i32, i64)| -> Result<_> {
                beats.heartbeat(batch(at))?;
                events.add(format!("weather {at}"));
                Ok(((partition, at), at))
            });
            beats.sink(&stage.sky)
        })
        .with(source(&stage.activity).handle(move |(_, at): (i32, i64)| -> Result<()> {
            seen.add(format!("{at} {}", asks.check_pulse(batch(at))?.is_down()));
            Ok(())
        }))
        .checkpoint(&checkpoint)
        .store(&stage.store);
    let run = tokio::spawn(ends(flow.run(())));
    stage.weather([1]).await;
    stage.activities([1, 2]);
    stage.answers.until("2 true").await;
    stage.weather([2]).await;
    stage.answers.until("2 false").await;
    stage.close();
    run.await?
}
