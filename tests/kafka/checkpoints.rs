//! Checkpoints over topics of real Kafka: the stories that the cluster inside of the process is told too, and those that
//! only a broker can tell.
use crate::{
    broker,
    group::Group,
    log::{Log, unique},
    running::has_partitions_of,
    stage::{Minutes, Stage, becomes, minute, minutes, run},
    stories,
};
use futures::{StreamExt, future::try_join_all};
use slipstream::{BoxError, Kafka, Result, Store, kafka::Encoded, source};
use std::time::Duration;

/// Topics of their own, and the group that reads them.
struct Topics {
    stage: Stage,
    weather: Log,
    activity: Log,
    group: Group,
}

impl Topics {
    async fn new(servers: &str, partitions: i32, settings: &[(&str, &str)]) -> Self {
        let (weather, activity) =
            (Log::new(servers, "weather", 1).await, Log::new(servers, "activity", partitions).await);
        let stage =
            Stage::new(minutes_of(&weather, settings), minutes_of(&activity, settings), &unique("story"));
        let group = Group::new(servers, &stage.name);
        Topics { stage, weather, activity, group }
    }
    /// What the group has of the activities' first partition.
    fn committed(&self) -> Option<i64> {
        self.group.offsets(&self.activity).get(&0).copied()
    }
}

/// A topic of minutes, as the library sees it.
fn minutes_of(log: &Log, settings: &[(&str, &str)]) -> Minutes {
    let kafka = Kafka::new([("bootstrap.servers", log.servers.as_str())]).unwrap();
    kafka.topic(&log.name).json().settings(settings.iter().copied()).unwrap()
}

/// D1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_repaired_and_the_group_is_told_of_nothing_that_is_to_come_again() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let topics = Topics::new(servers, 1, &[]).await;
    stories::an_outage(&topics.stage, || topics.committed()).await
}

/// D3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dependent_that_was_paused_begins_paused_and_is_repaired_from_before_the_restart() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let topics = Topics::new(servers, 1, &[]).await;
    stories::a_restart(&topics.stage, || topics.committed()).await
}

/// D16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_in_hand_when_a_repair_is_decided_is_finished_and_then_handled_again() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    stories::a_message_in_hand(&Topics::new(servers, 1, &[]).await.stage).await
}

/// D18, S22.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_checkpoints_on_one_dependent_do_not_undo_each_other() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let prices = minutes_of(&Log::new(servers, "prices", 1).await, &[]);
    stories::two_checkpoints(&Topics::new(servers, 1, &[]).await.stage, &prices).await
}

/// Two members, whatever the way to share partitions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_that_moves_in_an_outage_is_handled_again_by_who_has_it_then() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let moves = crate::running::STRATEGIES.into_iter().map(|strategy| async move {
        let mut topics = Topics::new(servers, 2, strategy).await;
        let stage = &mut topics.stage;
        // All of it in each member, by a consumer without a group.
        stage.weather = minutes_of(&topics.weather, &[]).broadcast();
        stage.activity = stage.activity.clone().concurrency(2);
        let committed = || {
            let offsets = topics.group.offsets(&topics.activity);
            (0..2).map(|partition| offsets.get(&partition).copied()).collect()
        };
        stories::a_move(&topics.stage, async |topic, count| has_partitions_of(topic, count).await, committed)
            .await
    });
    try_join_all(moves).await?;
    Ok(())
}

/// K2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn down_for_three_poll_intervals_it_is_the_same_member_and_the_replay_begins_where_it_is_to()
-> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let settings = [("max.poll.interval.ms", "6000"), ("session.timeout.ms", "6000")];
    let topics = Topics::new(servers, 1, &settings).await;
    let (stage, store) = (&topics.stage, Store::in_memory()?);
    let checkpoint = stage.checkpoint(minutes(10));
    let flow = run(stage.flow(&checkpoint, &store));
    stage.weather([0]).await;
    stage.activities([1, 3, 5, 30, 31]).await;
    stage.events.until("weather is down").await;
    becomes(|| topics.committed(), Some(3)).await;
    let before = (topics.group.members(), topics.group.generations());
    tokio::time::sleep(3 * Duration::from_secs(6)).await;
    assert_eq!((topics.group.members(), topics.group.generations()), before);
    assert!(before.0.len() == 1 && !before.1.is_empty(), "{before:?}");
    assert_eq!(stage.answers.take(), ["1: 0", "3: 0", "5: 0", "late 30: 0"]);
    stage.weather([3, 31]).await;
    stage.answers.until("31: 31").await;
    becomes(|| topics.committed(), Some(5)).await;
    assert_eq!((topics.group.members(), topics.group.generations()), before);
    flow.stops().await?;
    assert_eq!(stage.answers.take(), ["again 3: 3", "again 5: 3", "again 30: 3", "31: 31"]);
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Pause,
    Resume,
    /// To some message.
    Astray,
    /// To the one that is to be next.
    Seek,
}

/// Each ends running, with a seek to where it is to go on as the last one, or without any.
const ORDERS: [&[Step]; 7] = {
    use Step::{Astray, Pause, Resume, Seek};
    [
        &[Seek],
        &[Pause, Resume],
        &[Pause, Seek, Resume],
        &[Seek, Pause, Resume],
        &[Pause, Resume, Seek],
        &[Astray, Pause, Seek, Resume],
        &[Pause, Resume, Pause, Astray, Seek, Resume, Resume],
    ]
};

/// Takes the steps while the dependent waits with `ahead` messages fetched, or in the callback of its recovery.
async fn goes_where_it_is_sought(
    servers: &str,
    ahead: i64,
    order: &'static [Step],
    from_the_callback: bool,
) -> Result<()> {
    let topics = Topics::new(servers, 1, &[]).await;
    let (stage, store) = (&topics.stage, Store::in_memory()?);
    let topic = stage.activity.clone();
    let steps = move || {
        let topic = topic.clone();
        async move {
            for step in order {
                match step {
                    Step::Pause => topic.pause(),
                    Step::Resume => topic.resume(),
                    Step::Astray => topic.seek([(0, 2 + ahead / 2)]).await?,
                    Step::Seek => topic.seek([(0, 1)]).await?,
                }
            }
            Ok::<_, BoxError>(())
        }
    };
    let mut checkpoint = stage.builder(minutes(10));
    if from_the_callback {
        let steps = steps.clone();
        checkpoint = checkpoint.on_recovery_async(move |_| steps());
    }
    let checkpoint = checkpoint.build()?;
    // Offsets are minutes, but for those from the fourth on.
    topics.activity.numbers(0, 0..3);
    let writer = topics.activity.writer();
    for minute in 30..31 + ahead {
        writer.put(Some(0), None, Some(minute.to_string().as_bytes()));
    }
    writer.done();
    topics.weather.numbers(0, 0..1);
    stage.activity.pause();
    let flow = run(stage.flow(&checkpoint, &store));
    stage.came(0).await;
    stage.activity.resume();
    stage.events.until("weather is down").await;
    assert_eq!(stage.answers.take(), ["0: 0", "1: 0", "2: 0", "late 30: 0"]);
    if !from_the_callback {
        steps().await?;
    }
    let last = 30 + ahead;
    stage.weather([last]).await;
    // It may be the one that was answered `Down`, and then it comes again.
    let end = if ahead == 0 { "again 30: 30".to_owned() } else { format!("{last}: {last}") };
    stage.answers.until(&end).await;
    flow.stops().await?;
    let sought = order.contains(&Step::Seek).then_some([1, 2]).into_iter().flatten();
    let mut expected: Vec<_> = sought.map(|at| format!("again {at}: 0")).collect();
    let found = if ahead == 0 { 30 } else { 0 };
    expected.push(format!("again 30: {found}"));
    expected.extend((31..last).map(|at| format!("{at}: 0")));
    expected.extend((ahead > 0).then_some(end));
    let answers = stage.answers.take();
    assert!(
        answers == expected,
        "{order:?}, {ahead} ahead, in the callback: {from_the_callback}: {:?}",
        &answers[..answers.len().min(8)]
    );
    Ok(())
}

async fn all_orders(ahead: i64) -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let both = |order| [(order, false), (order, true)];
    let all = ORDERS.into_iter().flat_map(both);
    let all = all.map(|(order, called)| goes_where_it_is_sought(servers, ahead, order, called));
    try_join_all(all).await?;
    Ok(())
}

/// K3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_outage_and_any_steering_with_nothing_fetched_the_message_sought_is_next() -> Result<()> {
    all_orders(0).await
}

/// K3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_outage_and_any_steering_with_one_fetched_the_message_sought_is_next() -> Result<()> {
    all_orders(1).await
}

/// K3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_outage_and_any_steering_with_a_thousand_fetched_the_message_sought_is_next() -> Result<()> {
    all_orders(1000).await
}

/// K6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_five_hundred_fetched_the_one_after_an_outage_waits_also_behind_a_pipe() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    for is_piped in [false, true] {
        let topics = Topics::new(servers, 1, &[]).await;
        let (stage, store) = (&topics.stage, Store::in_memory()?);
        topics.activity.numbers(0, 0..3);
        topics.activity.numbers(0, 30..527);
        topics.weather.numbers(0, 0..1);
        let checkpoint = stage.checkpoint(minutes(10));
        stage.activity.pause();
        let flow = if is_piped {
            let (looks, asks, state) = (stage.clone(), checkpoint.clone(), store.clone());
            let piped = source(&stage.activity)
                .pipe(|items| items.map(|encoded: Encoded<(), i64>| encoded))
                .handle(move |encoded: Encoded<(), i64>| -> Result<()> {
                    let message = encoded.message()?;
                    let pulse = asks.check_pulse(minute(message.value))?;
                    looks.answer(&message, &pulse, &state)
                });
            run(stage.beats(&checkpoint, &store).with(piped))
        } else {
            run(stage.flow(&checkpoint, &store))
        };
        stage.came(0).await;
        stage.activity.resume();
        stage.events.until("weather is down").await;
        stage.weather([1, 2, 25]).await;
        assert_eq!(stage.answers.take(), ["0: 0", "1: 0", "2: 0", "late 30: 0"], "piped: {is_piped}");
        stage.weather([526]).await;
        stage.answers.count(3 + 496).await;
        flow.stops().await?;
        let answers = stage.answers.take();
        assert_eq!(answers[..4], ["again 1: 1", "again 2: 2", "again 30: 25", "31: 25"], "piped: {is_piped}");
        assert_eq!(answers.len(), 3 + 496, "piped: {is_piped}");
    }
    Ok(())
}

/// K7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seek_before_the_first_assignment_is_applied_with_a_checkpoint_too() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    for before in [true, false] {
        let topics = Topics::new(servers, 1, &[]).await;
        let (stage, store) = (&topics.stage, Store::in_memory()?);
        topics.activity.numbers(0, 0..10);
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
        becomes(|| topics.committed(), Some(10)).await;
        flow.stops().await?;
        assert_eq!(stage.answers.take(), ["7: ?", "8: ?", "9: ?"], "before: {before}");
    }
    Ok(())
}
