//! Where several things meet: pipes, channels, chains of checkpoints, the program's own seeks, handlers that are gone.
use crate::{
    ends,
    log::Log,
    stage::{Seen, Stage, minute, minutes},
};
use futures::{StreamExt, stream};
use slipstream::{
    AsyncIterable, Channel, Checkpoint, Dependency, Flow, Items, OnError, Result, Seekable, Seeks,
    is_replayed, named, source,
};
use std::time::Duration;

#[tokio::test]
async fn what_the_pipe_of_a_dependency_still_has_at_the_end_comes_before_the_others_hear_of_it() -> Result<()>
{
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(0));
    let (beats, events) = (checkpoint.clone(), stage.events.clone());
    let beats = source(&stage.weather)
        .pipe(|items: Items<(i32, i64)>| items.chunks(3).flat_map(stream::iter))
        .handle(move |(partition, at): (i32, i64)| -> Result<_> {
            beats.heartbeat(minute(at))?;
            events.add(format!("weather {at}"));
            Ok(((partition, at), at))
        });
    let asks = {
        let (stage, checkpoint) = (stage.clone(), checkpoint.clone());
        source(&stage.activity.clone()).handle(move |(partition, at): (i32, i64)| -> Result<()> {
            stage.answer(partition, at, checkpoint.check_pulse(minute(at))?, false)
        })
    };
    stage.activities([5, 9]);
    [1, 2, 3, 9].into_iter().for_each(|at| stage.weather.write(at));
    stage.close();
    let flow = Flow::<()>::new().with(beats.sink(&stage.sky)).with(asks).checkpoint(&checkpoint);
    ends(flow.run(())).await?;
    let answers = stage.answers.take();
    assert!(answers.iter().any(|answer| answer.ends_with("9: 9")), "{answers:?}");
    Ok(())
}

#[tokio::test]
async fn in_a_chain_the_last_stream_ends_when_nothing_before_it_can_be_handled_again() -> Result<()> {
    let (stage, summaries, seen) = (Stage::new(), Log::new("summaries"), Seen::default());
    // The weather, the activities that need it, and summaries that need the activities.
    let first = stage.checkpoint(minutes(0));
    let second = Checkpoint::builder("summaries", &summaries)
        .dependency(Dependency::new("activity", &stage.activity))
        .build()?;
    let middle = {
        let (stage, first, second) = (stage.clone(), first.clone(), second.clone());
        source(&stage.activity.clone()).handle(move |(partition, at): (i32, i64)| -> Result<()> {
            second.heartbeat(minute(at))?;
            stage.answer(partition, at, first.check_pulse(minute(at))?, false)
        })
    };
    let last = {
        let (seen, second) = (seen.clone(), second.clone());
        source(&summaries).handle(move |(_, at): (i32, i64)| -> Result<()> {
            let _ = second.check_pulse(minute(at))?;
            seen.add(format!("{}{at}", if is_replayed() { "again " } else { "" }));
            Ok(())
        })
    };
    let flow = stage.beats(&first).with(middle).with(last).checkpoint(&first).checkpoint(&second);
    let run = tokio::spawn(ends(flow.run(())));
    stage.weather([20]).await;
    stage.activities([20]);
    stage.activity.close();
    stage.answers.until("20: 20").await;
    summaries.write(20);
    summaries.close();
    seen.until("20").await;
    seen.take();
    // Of another station: late for the activity, which is handled again; and that is late for the summary.
    stage.weather.write(20);
    seen.until("again 20").await;
    stage.weather.close();
    run.await?
}

#[tokio::test]
async fn a_dependency_that_has_ended_is_not_asked_about_by_its_check() -> Result<()> {
    let stage = Stage::new();
    let dependency = stage
        .weather_within(minutes(1))
        .recovery_check(|check| check.marker.is_some_and(|at| at >= check.pulse));
    let checkpoint = Checkpoint::builder("activity", &stage.activity);
    let checkpoint = stage.told(checkpoint.dependency(dependency)).build()?;
    let (looks, asks) = (stage.clone(), checkpoint.clone());
    let answers = source(&stage.activity).handle_async(move |(partition, at): (i32, i64)| {
        let (stage, checkpoint) = (looks.clone(), asks.clone());
        async move {
            let pulse = checkpoint.check_pulse(minute(at))?;
            stage.answer(partition, at, pulse, false)?;
            if !is_replayed() {
                // The weather ends before this is published.
                stage.weather.close();
                while checkpoint.status().dependencies[0].state != slipstream::DependencyState::Quiet {
                    tokio::task::yield_now().await;
                }
            }
            Ok::<_, slipstream::BoxError>(())
        }
    });
    let flow = stage.beats(&checkpoint).with(answers).checkpoint(&checkpoint);
    let run = tokio::spawn(ends(flow.run(())));
    stage.weather([5]).await;
    stage.activities([9]);
    stage.activity.close();
    stage.answers.until("again 9: 5").await;
    run.await?
}

#[tokio::test]
async fn a_handler_of_a_channel_cannot_defer_whatever_its_policy() -> Result<()> {
    let stage = Stage::new();
    let checkpoint = stage.checkpoint(minutes(1));
    let channel = Channel::<i64>::new();
    let gives = source(&stage.activity).handle(|(_, at): (i32, i64)| Some(at)).sink(&channel);
    let asks = checkpoint.clone();
    let defers = source(&channel)
        .handle(move |at: i64| -> Result<()> { Ok(asks.check_pulse(minute(at))?.or_defer()?) })
        .on_error(OnError::retry(1, Duration::ZERO));
    let flow = stage.beats(&checkpoint).with(gives).with(defers).checkpoint(&checkpoint);
    let run = tokio::spawn(ends(flow.run(())));
    stage.weather([1]).await;
    stage.activities([20]);
    let error = format!("{:?}", run.await?.unwrap_err());
    assert!(error.contains("only a handler of its dependent can answer so"), "{error}");
    Ok(())
}

#[tokio::test]
async fn of_a_message_that_brings_several_items_all_come_again_when_one_is_deferred() -> Result<()> {
    let (stage, sums) = (Stage::new(), Seen::default());
    let checkpoint = stage.checkpoint(minutes(5));
    let (asks, seen) = (checkpoint.clone(), sums.clone());
    let sum = stage.store.cache::<(), i64>("sum")?;
    let adds = sum.clone();
    let answers = source(&stage.activity)
        .pipe(|items: Items<(i32, i64)>| items.flat_map(|(_, at)| stream::iter([at, at + 20, at + 21])))
        .handle(move |at: i64| -> Result<()> {
            if !is_replayed() {
                adds.update(&(), |old| Some(old.unwrap_or(0) + at))?;
            }
            asks.check_pulse(minute(at))?.or_defer()?;
            seen.add(at);
            Ok(())
        });
    let flow = stage.beats(&checkpoint).with(answers).checkpoint(&checkpoint);
    let run = tokio::spawn(ends(flow.run(())));
    stage.weather([0]).await;
    stage.activities([1]);
    stage.events.until("weather is down").await;
    assert_eq!(sums.take(), ["1"]);
    stage.weather([30]).await;
    sums.until("22").await;
    stage.close();
    run.await??;
    assert_eq!((sums.take(), sum.get(&())?), (vec!["1".into(), "21".into(), "22".into()], Some(1 + 21 + 22)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_plain_dependency_that_never_sends_anything_is_idle_too() -> Result<()> {
    let stage = Stage::new();
    let silent = named("silent", stream::pending::<i64>);
    let checkpoint = Checkpoint::builder("activity", &stage.activity)
        .dependency(Dependency::new("silent", &silent).idle(Duration::from_secs(5)))
        .build()?;
    let (asks, handle) = (checkpoint.clone(), stage.clone());
    let answers = source(&stage.activity).handle(move |(partition, at): (i32, i64)| -> Result<()> {
        handle.answer(partition, at, asks.check_pulse(minute(at))?, false)
    });
    let flow = Flow::<()>::new()
        .with(source(&silent).handle(|_: i64| ()))
        .with(answers)
        .checkpoint(&checkpoint)
        .store(&stage.store);
    let stops = flow.handle();
    let run = tokio::spawn(ends(flow.run(())));
    stage.activities([1, 2]);
    stage.answers.until("late 2: ?").await;
    stage.answers.until("again 2: ?").await;
    stops.stop();
    run.await?
}

/// A log with two workers, and without a control.
#[derive(Clone)]
struct Uncontrolled(Log);

impl AsyncIterable for Uncontrolled {
    type Item = (i32, i64);
    fn open(&self) -> impl futures::Stream<Item = (i32, i64)> + Send + 'static {
        self.0.open()
    }
    fn identity(&self) -> Option<String> {
        self.0.identity()
    }
    fn seeks(&self) -> Option<Seeks<(i32, i64)>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Uncontrolled {
    fn open_at(
        &self,
        start: slipstream::Positions,
    ) -> impl futures::Stream<Item = (slipstream::Position, (i32, i64))> + Send + 'static {
        self.0.open_at(start)
    }
    fn concurrency(&self) -> usize {
        2
    }
}

#[tokio::test]
async fn a_source_that_can_only_be_held_ends_after_an_outage() -> Result<()> {
    let stage = Stage::new();
    let activity = Uncontrolled(stage.activity.clone());
    let checkpoint = Checkpoint::builder("activity", &activity).dependency(stage.weather_within(minutes(5)));
    let checkpoint = stage.told(checkpoint.resume_only()).build()?;
    let (asks, answers) = (checkpoint.clone(), stage.clone());
    let answers = source(&activity).handle(move |(partition, at): (i32, i64)| -> Result<()> {
        answers.answer(partition, at, asks.check_pulse(minute(at))?, false)
    });
    let flow = stage.beats(&checkpoint).with(answers).checkpoint(&checkpoint);
    let run = tokio::spawn(ends(flow.run(())));
    stage.weather([0]).await;
    stage.activities([30]);
    stage.events.until("weather is down").await;
    stage.weather([30]).await;
    stage.events.until(r#"repair ["weather"] from {}"#).await;
    stage.close();
    run.await?
}

#[tokio::test]
async fn what_the_program_seeks_while_a_dependency_is_down_is_for_all_handlers() -> Result<()> {
    let (stage, counted) = (Stage::new(), Seen::default());
    let checkpoint = stage.checkpoint(minutes(5));
    let counts = {
        let counted = counted.clone();
        source(&stage.activity).handle(move |(_, at): (i32, i64)| counted.add(at)).named("counts")
    };
    let run = tokio::spawn(ends(stage.flow(&checkpoint).with(counts).run(())));
    stage.weather([0]).await;
    stage.activities([1, 2, 30]);
    stage.events.until("weather is down").await;
    counted.until("30").await;
    counted.take();
    stage.activity.steer().seek(0, 1);
    stage.weather([30]).await;
    counted.until("30").await;
    stage.close();
    run.await??;
    assert_eq!(counted.take(), ["2", "30"]);
    assert!(stage.answers.has("again 2: 0") && !stage.answers.has("again 1: 0"));
    Ok(())
}

#[tokio::test]
async fn a_replay_that_is_left_is_known_to_a_flow_without_the_handler_or_the_checkpoint() -> Result<()> {
    for with_checkpoint in [true, false] {
        let (stage, counted) = (Stage::new(), Seen::default());
        let counts = |stage: &Stage| {
            let counted = counted.clone();
            source(&stage.activity).handle(move |(_, at): (i32, i64)| counted.add(at)).named("counts")
        };
        let checkpoint = stage.checkpoint(minutes(5));
        let (looks, asks) = (stage.clone(), checkpoint.clone());
        let answers = source(&stage.activity)
            .handle_async(move |(partition, at): (i32, i64)| {
                let (stage, checkpoint) = (looks.clone(), asks.clone());
                async move {
                    if is_replayed() && at == 30 {
                        stage.events.add("in the middle");
                        std::future::pending::<()>().await;
                    }
                    stage.answer(partition, at, checkpoint.check_pulse(minute(at))?, false)
                }
            })
            .named("answers");
        let flow = stage.beats(&checkpoint).with(answers).with(counts(&stage)).checkpoint(&checkpoint);
        let (flow, handle) = (flow.store(&stage.store).commit_every(Duration::from_secs(3600)), ());
        let (commits, ()) = (flow.handle(), handle);
        let run = tokio::spawn(flow.run(()));
        stage.weather([0]).await;
        stage.activities([1, 2, 30]);
        stage.events.until("weather is down").await;
        stage.weather([2, 30]).await;
        stage.events.until("in the middle").await;
        commits.commit_now().await?;
        run.abort();
        let _ = run.await;
        assert_eq!(counted.take(), ["1", "2", "30"]);

        let stage = stage.again();
        let checkpoint = stage.checkpoint(minutes(5));
        let flow = stage.beats(&checkpoint).with(counts(&stage)).store(&stage.store);
        let flow = if with_checkpoint { flow.checkpoint(&checkpoint) } else { flow };
        let beats_no_more = stage.clone();
        stage.activities([31]);
        stage.close();
        drop(beats_no_more);
        ends(flow.run(())).await?;
        assert_eq!(counted.take(), ["31"], "with the checkpoint: {with_checkpoint}");
    }
    Ok(())
}
