//! Stories of checkpoints over topics, told on the cluster inside of this process and on real Kafka. Each begins with
//! topics that are empty and a name that nobody has.
use crate::stage::{Minutes, Seen, Stage, becomes, minute, minutes, run};
use slipstream::{BoxError, Checkpoint, Dependency, Message, Result, Store, is_replayed, source};
use std::sync::Arc;
use tokio::sync::Barrier;

/// D1. `committed` says what the group has of the activities.
pub(crate) async fn an_outage(stage: &Stage, committed: impl Fn() -> Option<i64>) -> Result<()> {
    let store = Store::in_memory()?;
    let checkpoint = stage.checkpoint(minutes(10));
    let flow = run(stage.flow(&checkpoint, &store));
    stage.weather([0]).await;
    stage.activities([1, 3, 5, 7, 9, 30]).await;
    stage.events.until("weather is down").await;
    assert_eq!(stage.answers.take(), ["1: 0", "3: 0", "5: 0", "7: 0", "9: 0", "late 30: 0"]);
    // Not past the one that was answered `Down`, although it is published.
    becomes(|| stage.activity.position().next(0), Some(6)).await;
    becomes(&committed, Some(5)).await;
    stage.activities([31]).await;
    stage.weather([2, 4, 6, 8, 20]).await;
    // Nor past one that is to be handled again by now.
    becomes(&committed, Some(1)).await;
    assert_eq!(stage.answers.take(), [""; 0]);
    stage.weather([31]).await;
    stage.answers.until("31: 31").await;
    becomes(&committed, Some(7)).await;
    flow.stops().await?;
    let again = ["again 3: 2", "again 5: 4", "again 7: 6", "again 9: 8", "again 30: 20", "31: 31"];
    assert_eq!(stage.answers.take(), again);
    assert!(stage.events.all().contains(&"repair from {0: 1}".to_owned()), "{:?}", stage.events.all());
    assert_eq!(committed(), Some(7));
    Ok(())
}

/// D3.
pub(crate) async fn a_restart(stage: &Stage, committed: impl Fn() -> Option<i64>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    {
        let store = Store::open(folder.path())?;
        let checkpoint = stage.checkpoint(minutes(10));
        let flow = run(stage.flow(&checkpoint, &store));
        stage.weather([0]).await;
        stage.activities([1, 3, 30]).await;
        stage.events.until("weather is down").await;
        flow.stops().await?;
        assert_eq!(committed(), Some(2));
    }
    let stage = stage.again();
    let store = Store::open(folder.path())?;
    let checkpoint = stage.checkpoint(minutes(10));
    let flow = run(stage.flow(&checkpoint, &store));
    stage.events.until("weather is down").await;
    assert!(stage.activity.is_paused() && checkpoint.status().is_paused);
    stage.activities([31]).await;
    stage.weather([2]).await;
    assert!(checkpoint.status().is_repair_due && stage.activity.is_paused());
    stage.weather([40]).await;
    stage.answers.until("31: 2").await;
    flow.stops().await?;
    assert_eq!(stage.answers.take(), ["again 3: 2", "again 30: 2", "31: 2"]);
    assert_eq!(committed(), Some(4));
    Ok(())
}

/// D16.
pub(crate) async fn a_message_in_hand(stage: &Stage) -> Result<()> {
    let store = Store::in_memory()?;
    let checkpoint = stage.checkpoint(minutes(1));
    let (looks, asks, state) = (stage.clone(), checkpoint.clone(), store.clone());
    let answers = source(&stage.activity).takes().handle_async(move |message: Message<(), i64>| {
        let (stage, checkpoint, store) = (looks.clone(), asks.clone(), state.clone());
        async move {
            let pulse = checkpoint.check_pulse(minute(message.value))?;
            stage.answer(&message, &pulse, &store)?;
            if message.offset == 2 && !message.replayed {
                stage.events.until("released").await;
            }
            Ok::<_, BoxError>(())
        }
    });
    let flow = run(stage.beats(&checkpoint, &store).with(answers));
    stage.weather([7]).await;
    stage.activities([6, 7, 8, 8]).await;
    stage.answers.until("8: 7").await;
    stage.events.take();
    // Late for what is done: a repair is due, and waits for the one in hand.
    stage.weather([6]).await;
    assert_eq!(stage.events.take(), ["weather 6"]);
    assert_eq!(stage.answers.take(), ["6: ?", "7: 7", "8: 7"]);
    stage.events.add("released");
    stage.answers.count(3).await;
    becomes(|| stage.activity.position().next(0), Some(4)).await;
    flow.stops().await?;
    assert_eq!(stage.answers.take(), ["again 7: 7", "again 8: 7", "8: 7"]);
    assert!(stage.events.all().contains(&"repair from {0: 1}".to_owned()), "{:?}", stage.events.all());
    Ok(())
}

/// D18, S22. `prices` is a second dependency.
pub(crate) async fn two_checkpoints(stage: &Stage, prices: &Minutes) -> Result<()> {
    let (counted, priced, store) = (Seen::default(), Seen::default(), Store::in_memory()?);
    let weather = stage.checkpoint(minutes(5));
    let events = stage.events.clone();
    let price = Checkpoint::builder("priced", &stage.activity)
        .dependency(Dependency::new("prices", prices).threshold(minutes(5)))
        .on_downtime(move |_| events.add("prices are down"))
        .build()?;
    let (beats, events) = (price.clone(), stage.events.clone());
    let beats = source(prices).takes().handle(move |at: i64| -> Result<()> {
        beats.heartbeat(minute(at))?;
        events.add(format!("prices {at}"));
        Ok(())
    });
    let (asks, sees) = (price.clone(), priced.clone());
    let asks = source(&stage.activity).takes().handle(move |at: i64| -> Result<()> {
        let how = if is_replayed() { "again " } else { "" };
        let _ = asks.check_pulse(minute(at))?;
        sees.add(format!("{how}{at}"));
        Ok(())
    });
    let counts = counted.clone();
    let counts = source(&stage.activity).takes().handle(move |at: i64| counts.add(at));
    let flow =
        stage.flow(&weather, &store).with(asks.named("priced")).with(counts.named("counts")).with(beats);
    let flow = run(flow.checkpoint(&price));
    stage.weather([0]).await;
    prices.send((), 0).await?;
    stage.events.until("prices 0").await;
    stage.activities([1, 2, 3, 4, 20]).await;
    stage.events.until("weather is down").await;
    stage.events.until("prices are down").await;
    // The one is to go back to offset 3, the other to offset 1; whichever is first.
    stage.weather([4, 20]).await;
    prices.send((), 2).await?;
    prices.send((), 20).await?;
    priced.until("again 20").await;
    stage.answers.until("again 20: 20").await;
    flow.stops().await?;
    assert_eq!(counted.take(), ["1", "2", "3", "4", "20"]);
    let answers = ["1: 0", "2: 0", "3: 0", "4: 0", "late 20: 0", "again 4: 4", "again 20: 20"];
    assert_eq!(stage.answers.take(), answers);
    assert_eq!(priced.take(), ["1", "2", "3", "4", "20", "again 2", "again 3", "again 4", "again 20"]);
    Ok(())
}

/// A partition moves while its last message is answered `Down`. The activities have two partitions; the weather is read
/// by each member.
pub(crate) async fn a_move(
    stage: &Stage,
    members: impl AsyncFn(&Minutes, usize),
    committed: impl Fn() -> Vec<Option<i64>>,
) -> Result<()> {
    let stores = [Store::in_memory()?, Store::in_memory()?];
    let checkpoint = stage.checkpoint(minutes(10));
    let (looks, asks, state) = (stage.clone(), checkpoint.clone(), stores[0].clone());
    let both = Arc::new(Barrier::new(2));
    let answers = source(&stage.activity).takes().handle_async(move |message: Message<(), i64>| {
        let (stage, checkpoint, store, both) = (looks.clone(), asks.clone(), state.clone(), both.clone());
        async move {
            // Both begin before the first is published.
            if message.value == 30 && !message.replayed {
                both.wait().await;
            }
            let pulse = checkpoint.check_pulse(minute(message.value))?;
            stage.answer(&message, &pulse, &store)
        }
    });
    let one = run(stage.beats(&checkpoint, &stores[0]).with(answers).instance("one"));
    stage.weather([0]).await;
    for partition in [0, 1] {
        stage.activity_in(partition, 1).await;
        stage.activity_in(partition, 30).await;
    }
    stage.answers.count(4).await;
    let mut answered = stage.answers.take();
    answered.sort();
    assert_eq!(answered, ["1: 0", "1: 0", "late 30: 0", "late 30: 0"]);
    becomes(&committed, vec![Some(1); 2]).await;

    // What is read in another way is another source, with a control of its own.
    let topic = stage.activity.clone().concurrency(1);
    let other = Stage::new(stage.weather.clone().broadcast(), topic, &stage.name);
    let theirs = other.checkpoint(minutes(10));
    let two = run(other.flow(&theirs, &stores[1]).instance("other"));
    // From the group's offset, not from what the first has published.
    other.answers.count(1).await;
    assert!(other.answers.all()[0].contains("30: "), "{:?}", other.answers.all());
    members(&stage.activity, 1).await;
    assert!(checkpoint.status().is_paused);
    stage.weather([30]).await;
    other.answers.until("again 30: 30").await;
    stage.answers.until("again 30: 30").await;
    becomes(&committed, vec![Some(2); 2]).await;
    two.stops().await?;
    one.stops().await?;
    // The one that moved is the other's to handle again.
    assert_eq!(stage.answers.take(), ["again 30: 30"]);
    assert!(!other.answers.take().iter().any(|line| line.contains(" 1: ")));
    Ok(())
}
