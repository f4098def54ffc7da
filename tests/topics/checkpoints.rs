//! Checkpoints over topics: outages and repairs from end to end, and what the records of a dependent say of them.
use crate::{
    handling::{cluster, read_all},
    positions::of_group,
    stage::{Minutes, Stage, becomes, minute, minutes, run},
    stories,
};
use futures::StreamExt;
use slipstream::{Kafka, Message, Offset, Result, Store, iter, kafka::Encoded, source};

/// In which a rebalance takes a second or two.
const SETTINGS: [(&str, &str); 2] = [("session.timeout.ms", "6000"), ("heartbeat.interval.ms", "200")];

/// Topics on a cluster of their own, of so many partitions of activities.
async fn stage(partitions: i32) -> (Kafka, Stage) {
    let kafka = cluster(&["weather", "prices"], 1).await;
    kafka.create_topic("activity", partitions).await.unwrap();
    let topic = |name| -> Minutes { kafka.topic(name).json().settings(SETTINGS).unwrap() };
    let stage = Stage::new(topic("weather"), topic("activity"), "story");
    (kafka, stage)
}

/// What the group has of the activities.
fn committed(kafka: &Kafka, partitions: i32) -> Vec<Option<i64>> {
    of_group(kafka, "story", "activity", partitions)
        .into_iter()
        .map(|known| known.map(|(at, _)| at))
        .collect()
}

#[tokio::test]
async fn an_outage_is_repaired_and_the_group_is_told_of_nothing_that_is_to_come_again() -> Result<()> {
    let (kafka, stage) = stage(1).await;
    stories::an_outage(&stage, || committed(&kafka, 1)[0]).await
}

#[tokio::test]
async fn a_dependent_that_was_paused_begins_paused_and_is_repaired_from_before_the_restart() -> Result<()> {
    let (kafka, stage) = stage(1).await;
    stories::a_restart(&stage, || committed(&kafka, 1)[0]).await
}

#[tokio::test]
async fn a_message_in_hand_when_a_repair_is_decided_is_finished_and_then_handled_again() -> Result<()> {
    stories::a_message_in_hand(&stage(1).await.1).await
}

#[tokio::test]
async fn two_checkpoints_on_one_dependent_do_not_undo_each_other() -> Result<()> {
    let (kafka, stage) = stage(1).await;
    stories::two_checkpoints(&stage, &kafka.topic("prices").json().settings(SETTINGS)?).await
}

#[tokio::test]
async fn a_partition_that_moves_in_an_outage_is_handled_again_by_who_has_it_then() -> Result<()> {
    let (kafka, mut stage) = stage(2).await;
    (stage.weather, stage.activity) = (stage.weather.broadcast(), stage.activity.concurrency(2));
    let members = async |topic: &Minutes, count| {
        while topic.lag().await.unwrap().len() != count {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    stories::a_move(&stage, members, || committed(&kafka, 2)).await
}

/// Writes 500 activities, of which the fourth is far ahead.
async fn five_hundred(stage: &Stage) -> Result<()> {
    let minutes = iter((0..500).map(|n| if n < 3 { n } else { 27 + n }).collect::<Vec<_>>());
    let write = source(&minutes).handle(|minute: i64| Some(((), minute))).sink(&stage.activity);
    slipstream::Flow::new().with(write).run(()).await
}

/// Of an outage on message 3: what has been handled when the weather was heard three times, and then to the end.
async fn holds_at_three(stage: &Stage) {
    stage.events.until("weather is down").await;
    stage.weather([1, 2, 25]).await;
    assert_eq!(stage.answers.take(), ["0: 0", "1: 0", "2: 0", "late 30: 0"]);
    stage.weather([526]).await;
    stage.answers.until("526: 526").await;
    let mut expected = vec!["again 1: 1".to_owned(), "again 2: 2".to_owned(), "again 30: 25".to_owned()];
    expected.extend((31..526).map(|at| format!("{at}: 25")));
    expected.push("526: 526".to_owned());
    assert!(stage.answers.take() == expected);
}

// K6.
#[tokio::test]
async fn of_five_hundred_fetched_the_one_after_an_outage_waits() -> Result<()> {
    let ((_kafka, stage), store) = (stage(1).await, Store::in_memory()?);
    five_hundred(&stage).await?;
    let checkpoint = stage.checkpoint(minutes(10));
    // The weather first, so that nothing is answered without.
    stage.weather.send((), 0).await?;
    stage.activity.pause();
    let flow = run(stage.flow(&checkpoint, &store));
    stage.came(0).await;
    stage.activity.resume();
    holds_at_three(&stage).await;
    flow.stops().await
}

// K6.
#[tokio::test]
async fn of_five_hundred_fetched_behind_a_pipe_the_one_after_an_outage_waits() -> Result<()> {
    let ((_kafka, stage), store) = (stage(1).await, Store::in_memory()?);
    five_hundred(&stage).await?;
    let checkpoint = stage.checkpoint(minutes(10));
    let (looks, asks, state) = (stage.clone(), checkpoint.clone(), store.clone());
    let piped = source(&stage.activity).pipe(|items| items.map(|encoded: Encoded<(), i64>| encoded)).handle(
        move |encoded: Encoded<(), i64>| -> Result<()> {
            let message = encoded.message()?;
            let pulse = asks.check_pulse(minute(message.value))?;
            looks.answer(&message, &pulse, &state)
        },
    );
    stage.weather.send((), 0).await?;
    stage.activity.pause();
    let flow = run(stage.beats(&checkpoint, &store).with(piped));
    stage.came(0).await;
    stage.activity.resume();
    holds_at_three(&stage).await;
    flow.stops().await
}

// K7.
#[tokio::test]
async fn a_seek_before_the_first_assignment_is_applied_with_a_checkpoint_too() -> Result<()> {
    for before in [true, false] {
        let ((_kafka, stage), store) = (stage(1).await, Store::in_memory()?);
        stage.weather.send((), 9).await?;
        stage.activities(0..10).await;
        let checkpoint = stage.checkpoint(minutes(10));
        let flow = stage.flow(&checkpoint, &store);
        let flow = if before {
            stage.activity.seek([(0, 7)]).await?;
            run(flow)
        } else {
            let flow = run(flow);
            stage.activity.seek([(0, 7)]).await?;
            flow
        };
        stage.answers.count(3).await;
        becomes(|| stage.activity.position().next(0), Some(10)).await;
        flow.stops().await?;
        let minutes = stage.answers.take();
        let minutes: Vec<_> = minutes.iter().filter_map(|line| line.split(": ").next()).collect();
        // The weather may come after them, and is no later than the threshold allows.
        assert_eq!(minutes, ["7", "8", "9"], "before: {before}");
    }
    Ok(())
}

// K7.
#[tokio::test]
async fn a_seek_back_while_an_outage_of_before_a_restart_goes_on_is_applied_with_its_repair() -> Result<()> {
    let ((_kafka, stage), store) = (stage(1).await, Store::in_memory()?);
    let checkpoint = stage.checkpoint(minutes(10));
    let flow = run(stage.flow(&checkpoint, &store));
    stage.weather([0]).await;
    stage.activities([1, 3, 30]).await;
    stage.events.until("weather is down").await;
    flow.stops().await?;

    let stage = stage.again();
    stage.activity.seek([(0, 0)]).await?;
    let checkpoint = stage.checkpoint(minutes(10));
    let flow = run(stage.flow(&checkpoint, &store));
    stage.weather([30]).await;
    stage.answers.until("again 30: 30").await;
    flow.stops().await?;
    assert_eq!(stage.answers.take(), ["again 1: 0", "again 3: 0", "again 30: 30"]);
    Ok(())
}

// K3.
#[tokio::test]
async fn a_recovery_callback_that_awaits_a_seek_has_it_applied() -> Result<()> {
    let ((_kafka, stage), store) = (stage(1).await, Store::in_memory()?);
    let topic = stage.activity.clone();
    let checkpoint = stage
        .builder(minutes(10))
        .on_recovery_async(move |_| {
            let topic = topic.clone();
            async move {
                topic.pause();
                topic.seek([(0, Offset::Beginning)]).await?;
                topic.resume();
                Ok::<_, slipstream::BoxError>(())
            }
        })
        .build()?;
    let flow = run(stage.flow(&checkpoint, &store));
    stage.weather([0]).await;
    stage.activities([1, 2, 30, 31]).await;
    stage.answers.until("late 30: 0").await;
    stage.weather([31]).await;
    stage.answers.until("31: 31").await;
    flow.stops().await?;
    let all = ["1: 0", "2: 0", "late 30: 0", "again 1: 0", "again 2: 0", "again 30: 0", "31: 31"];
    assert_eq!(stage.answers.take(), all);
    Ok(())
}

/// A dependent that can only be resumed is told to the group as it is published.
#[tokio::test]
async fn where_nothing_is_handled_again_the_group_hears_of_all_when_the_outage_is_over() -> Result<()> {
    let ((kafka, stage), store) = (stage(1).await, Store::in_memory()?);
    let checkpoint = stage.builder(minutes(10)).resume_only().build()?;
    let flow = run(stage.flow(&checkpoint, &store));
    stage.weather([0]).await;
    stage.activities([1, 30]).await;
    stage.events.until("weather is down").await;
    stage.weather([30]).await;
    becomes(|| committed(&kafka, 1)[0], Some(2)).await;
    flow.stops().await?;
    assert_eq!(stage.answers.take(), ["1: 0", "late 30: 0"]);
    Ok(())
}

/// What is read as it is replayed: by the message, by its bytes' holder, and outside of a flow.
#[tokio::test]
async fn only_a_message_that_a_flow_handles_again_is_replayed() -> Result<()> {
    let ((kafka, stage), store) = (stage(1).await, Store::in_memory()?);
    let checkpoint = stage.checkpoint(minutes(10));
    let (seen, asks) = (stage.answers.clone(), checkpoint.clone());
    let handler = move |encoded: Encoded<(), i64>| -> Result<()> {
        let message: Message<(), i64> = encoded.message()?;
        let _ = asks.check_pulse(minute(message.value))?;
        seen.add(format!("{} {}", message.offset, message.replayed));
        Ok(())
    };
    let flow = run(stage.beats(&checkpoint, &store).with(source(&stage.activity).handle(handler)));
    stage.weather([0]).await;
    stage.activities([1, 30]).await;
    stage.events.until("weather is down").await;
    stage.weather([30]).await;
    stage.answers.until("1 true").await;
    stage.activities([30]).await;
    stage.answers.until("2 false").await;
    flow.stops().await?;
    assert_eq!(stage.answers.take(), ["0 false", "1 false", "1 true", "2 false"]);
    let read = read_all(&kafka.topic::<(), i64>("activity").json()).await;
    assert!(read.len() == 3 && read.iter().all(|message| !message.replayed));
    Ok(())
}
