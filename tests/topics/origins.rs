//! Records that say of which message they are.
use crate::{
    handling::{cluster, read_all},
    stage::{Minutes, Stage, minute, minutes, run},
};
use slipstream::{
    Flow, Kafka, Message, OnError, Result, Store, Topic, iter,
    kafka::{Record, origin},
    named, source,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

type Texts = Topic<(), String>;

/// `number` and what its headers say: topic, partition, offset, handler, output, replay.
fn told<K>(message: &Message<K, String>) -> String {
    let names =
        [origin::TOPIC, origin::PARTITION, origin::OFFSET, origin::HANDLER, origin::OUTPUT, origin::REPLAY];
    let value = |name: &str| {
        let mut all = message.headers.iter().filter(|(known, _)| known == name);
        let value = all.next().map(|(_, value)| String::from_utf8(value.clone()).unwrap());
        assert!(all.next().is_none(), "{name} is there twice");
        value.unwrap_or_else(|| "-".to_owned())
    };
    let values = names.map(value).join(" ");
    format!("{}: {values}", message.value)
}

async fn all_told(kafka: &Kafka) -> Vec<String> {
    let texts: Texts = kafka.topic("texts").text();
    read_all(&texts).await.iter().map(told).collect()
}

#[tokio::test]
async fn outputs_sent_and_returned_say_of_which_message_and_handler_they_are() -> Result<()> {
    let kafka = cluster(&["numbers", "texts"], 1).await;
    let numbers: Minutes = kafka.topic("numbers").json();
    for number in [7, 8] {
        numbers.send((), number).await?;
    }
    let texts: Texts = kafka.topic("texts").text().origin();
    let sends = texts.clone();
    let first = source(&numbers).takes().handle_async(move |number: i64| {
        let texts = sends.clone();
        async move {
            texts.send((), format!("sent {number}")).await?;
            let record = Record::new((), format!("record {number}")).header("own", "kept");
            texts.send_record(record).await?;
            Ok::<_, slipstream::BoxError>(vec![((), format!("returned {number}")), ((), "more".to_owned())])
        }
    });
    let first = first.named("first").sink(&texts);
    let second = source(&numbers).takes().handle(|n: i64| Some(((), format!("second {n}")))).named("second");
    let flow = run(Flow::new().with(first).with(second.sink(&texts)).named("flow"));
    while all_told(&kafka).await.len() < 10 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    flow.stops().await?;
    let of = |number: i64, offset: i64| {
        [
            format!("sent {number}: numbers 0 {offset} first 0 false"),
            format!("record {number}: numbers 0 {offset} first 1 false"),
            format!("returned {number}: numbers 0 {offset} first 2 false"),
            format!("more: numbers 0 {offset} first 3 false"),
            format!("second {number}: numbers 0 {offset} second 0 false"),
        ]
    };
    assert_eq!(all_told(&kafka).await, [of(7, 0), of(8, 1)].concat());
    let read = read_all(&kafka.topic::<(), String>("texts").text()).await;
    assert!(read[1].headers.contains(&("own".to_owned(), b"kept".to_vec())));
    // Outside of messages there is nothing to say.
    texts.send((), "alone".into()).await?;
    assert_eq!(all_told(&kafka).await.pop().unwrap(), "alone: - - - - - -");
    Ok(())
}

#[tokio::test]
async fn what_is_handled_again_after_an_outage_says_so_under_the_same_numbers() -> Result<()> {
    let kafka = cluster(&["weather", "activity", "texts"], 1).await;
    let stage = Stage::new(kafka.topic("weather").json(), kafka.topic("activity").json(), "story");
    let store = Store::in_memory()?;
    let checkpoint = stage.checkpoint(minutes(10));
    let texts: Texts = kafka.topic("texts").text().origin();
    let (asks, seen) = (checkpoint.clone(), stage.answers.clone());
    let answers = source(&stage.activity).takes().handle(move |at: i64| -> Result<_> {
        let _ = asks.check_pulse(minute(at))?;
        seen.add(at);
        Ok(((), at.to_string()))
    });
    let plain: Texts = kafka.topic("texts").text();
    let plain =
        source(&stage.activity).takes().handle(|at: i64| Some(((), format!("plain {at}")))).sink(&plain);
    let flow = stage.beats(&checkpoint, &store).with(answers.named("answers").sink(&texts)).with(plain);
    let flow = run(flow);
    stage.weather([0]).await;
    stage.activities([1, 30]).await;
    stage.events.until("weather is down").await;
    stage.answers.take();
    stage.weather([30]).await;
    stage.answers.until("30").await;
    flow.stops().await?;
    let expected = [
        "1: activity 0 0 answers 0 false",
        "plain 1: - - - - - -",
        "30: activity 0 1 answers 0 false",
        "plain 30: - - - - - -",
        "30: activity 0 1 answers 0 true",
    ];
    assert_eq!(all_told(&kafka).await, expected);
    Ok(())
}

#[tokio::test]
async fn a_source_without_positions_counts_and_a_retry_has_the_numbers_of_its_first_try() -> Result<()> {
    let kafka = cluster(&["texts"], 1).await;
    let texts: Texts = kafka.topic("texts").text().origin();
    let (sends, fails) = (texts.clone(), Arc::new(AtomicBool::new(true)));
    let words = named("words", iter(["a", "b"]));
    let says = source(&words).handle_async(move |word: &'static str| {
        let (texts, fails) = (sends.clone(), Arc::clone(&fails));
        async move {
            texts.send((), format!("sent {word}")).await?;
            if word == "b" && fails.swap(false, Ordering::Relaxed) {
                return Err("once".into());
            }
            Ok::<_, slipstream::BoxError>(Some(((), word.to_owned())))
        }
    });
    let says = says.named("says").on_error(OnError::retry(1, Duration::ZERO)).sink(&texts);
    Flow::new().with(says).run(()).await?;
    let expected = [("sent a", 0, 0), ("a", 0, 1), ("sent b", 1, 0), ("b", 1, 1)];
    let expected = expected.map(|(text, at, output)| format!("{text}: words 0 {at} says {output} false"));
    assert_eq!(all_told(&kafka).await, expected);
    Ok(())
}
