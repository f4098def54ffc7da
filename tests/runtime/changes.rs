//! A cache as a source of its changes, inside of the message that makes them.
use crate::{Log, typed};
use slipstream::{Cache, Error, Iter, OnError, Result, Store, StoreError, flow, handle, iter};
use std::{sync::Arc, time::Duration};

struct App {
    words: Iter<[&'static str; 4]>,
    counts: Cache<String, u32>,
    lengths: Cache<usize, String>,
    log: Log,
}

fn app() -> Arc<App> {
    let store = Store::in_memory().unwrap();
    let (counts, lengths) = (store.cache("counts").unwrap(), store.cache("lengths").unwrap());
    Arc::new(App { words: iter(["to", "be", "to", "bee"]), counts, lengths, log: Log::default() })
}

#[handle(app.words)]
async fn counts(app: &App, word: &'static str) -> Result<()> {
    app.counts.update(word, |count| count.unwrap_or(0) + 1)?;
    tokio::task::yield_now().await;
    if word == "bee" {
        app.counts.remove("be")?;
    }
    Ok(())
}
#[handle(app.words, sink = app.counts)]
fn sinks(app: &App, word: &'static str) -> (String, u32) {
    app.log.add(format!("next handler of {word}"));
    (format!("sunk {word}"), 0)
}
#[handle(app.counts)]
fn sees(app: &App, (word, count): (String, Option<u32>)) {
    app.log.add(format!("{word} {count:?}"));
}
#[handle(app.counts, sink = app.lengths)]
fn by_length(app: &App, (word, count): (String, Option<u32>)) -> Result<(usize, Option<String>)> {
    Ok((word.len(), count.map(|_| word)))
}
#[handle(app.counts)]
fn reads_what_it_sees(app: &App, (word, count): (String, Option<u32>)) -> Result<()> {
    // It is part of the message: the change can be read already.
    let is_removed_later = word == "be" && app.counts.get("bee")?.is_some();
    assert!(is_removed_later || app.counts.get(&word)? == count);
    Ok(())
}
#[handle(app.lengths.clone())]
fn sees_lengths(app: &App, (length, word): (usize, Option<String>)) {
    app.log.add(format!("length {length}: {word:?}"));
}

#[tokio::test]
async fn changes_are_handled_as_soon_as_the_handler_that_made_them_is_done() {
    let app = app();
    flow![counts, sinks, sees].run(Arc::clone(&app)).await.unwrap();
    let of = |word: &str, changes: &[&str]| {
        let mut lines: Vec<_> = changes.iter().map(|change| (*change).to_owned()).collect();
        lines.extend([format!("next handler of {word}"), format!("sunk {word} Some(0)")]);
        lines
    };
    let expected = [
        of("to", &["to Some(1)"]),
        of("be", &["be Some(1)"]),
        of("to", &["to Some(2)"]),
        of("bee", &["bee Some(1)", "be None"]),
    ];
    assert_eq!(app.log.take(), expected.concat());
}

#[tokio::test]
async fn changes_of_changes_come_before_the_next_change() {
    let app = app();
    flow![counts, sees, by_length, reads_what_it_sees, sees_lengths].run(Arc::clone(&app)).await.unwrap();
    let lines = app.log.take();
    assert_eq!(lines.get(..2).unwrap(), ["to Some(1)", "length 2: Some(\"to\")"]);
    assert_eq!(
        lines.get(6..).unwrap(),
        ["bee Some(1)", "length 3: Some(\"bee\")", "be None", "length 2: None"]
    );
    assert_eq!(app.lengths.keys().collect::<Result<Vec<_>, _>>().unwrap(), [3]);
}

#[handle(app.counts)]
fn fails_on_the_second_to(app: &App, change: (String, Option<u32>)) -> Result<()> {
    if change.1 == Some(2) { Err("twice".into()) } else { Ok(()) }
}

#[tokio::test]
async fn a_change_whose_handler_fails_is_not_made() {
    let app = app();
    let error = flow![counts, fails_on_the_second_to].run(Arc::clone(&app)).await.unwrap_err();
    assert!(matches!(typed(error), Error::Handler { handler: "fails_on_the_second_to", .. }));
    assert_eq!(app.counts.get("to").unwrap(), Some(1));
}

#[handle(app.words)]
fn clears(app: &App, word: &'static str) -> Result<()> {
    app.counts.insert(word, 1)?;
    if word == "bee" {
        app.counts.clear()?;
        app.counts.insert("left", 1)?;
    }
    Ok(())
}

#[tokio::test]
async fn clear_is_the_removal_of_each_key() {
    let app = app();
    app.counts.insert("before", 1).unwrap();
    flow![clears, sees].run(Arc::clone(&app)).await.unwrap();
    let lines = app.log.take();
    let expected = ["be None", "bee None", "before None", "to None", "left Some(1)"];
    assert_eq!(lines.get(4..).unwrap(), expected);
}

#[tokio::test]
async fn changes_from_outside_are_messages_of_their_own() {
    let app = app();
    let flow = flow![sees, by_length];
    let handle = flow.handle();
    let running = tokio::spawn(flow.run(Arc::clone(&app)));
    while app.lengths.get(&6).unwrap().is_none() {
        // Nobody sees it before the flow runs.
        app.counts.insert("seldom", 7).unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    app.counts.update("seldom", |count| count.unwrap_or(0) + 1).unwrap();
    app.counts.remove("seldom").unwrap();
    while app.lengths.get(&6).unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    handle.stop();
    running.await.unwrap().unwrap();
    let mut lines = app.log.take();
    lines.dedup();
    assert_eq!(lines, ["seldom Some(7)", "seldom Some(8)", "seldom None"]);
}

#[handle(app.counts)]
async fn never_done(app: &App, _: (String, Option<u32>)) {
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn what_waits_from_outside_is_bounded() {
    let app = app();
    let running = tokio::spawn(flow![never_done].run(Arc::clone(&app)));
    let refused = loop {
        tokio::task::yield_now().await;
        if let Err(error) = app.counts.insert("more", 1) {
            break error;
        }
    };
    assert!(matches!(refused, StoreError::Behind { .. }), "{refused}");
    // Nothing else is refused.
    app.lengths.insert(&1, "a".to_owned()).unwrap();
    running.abort();
}

/// Is written, and cannot be read again where it is 2, nor 3 without a panic.
#[derive(Debug, Clone, serde::Serialize)]
struct OneWay(u32);

impl<'de> serde::Deserialize<'de> for OneWay {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let n = u32::deserialize(deserializer)?;
        assert!(n != 3, "three");
        if n == 2 { Err(serde::de::Error::custom("two")) } else { Ok(OneWay(n)) }
    }
}

struct OneWays {
    numbers: Iter<std::ops::RangeInclusive<u32>>,
    ways: Cache<u32, OneWay>,
    written: Cache<u32, u32>,
    log: Log,
}

fn one_ways(numbers: std::ops::RangeInclusive<u32>) -> Arc<OneWays> {
    let store = Store::in_memory().unwrap();
    let (ways, written) = (store.cache("ways").unwrap(), store.cache("written").unwrap());
    Arc::new(OneWays { numbers: iter(numbers), ways, written, log: Log::default() })
}

#[handle(app.numbers, sink = app.ways)]
fn writes(app: &OneWays, n: u32) -> Result<(u32, OneWay)> {
    app.written.insert(&n, n)?;
    Ok((n, OneWay(n)))
}
#[handle(app.ways, on_error = OnError::retry(1, Duration::ZERO))]
fn retries(app: &OneWays, (n, _): (u32, Option<OneWay>)) {
    app.log.add(n);
}
#[handle(app.ways, on_error = OnError::skip())]
fn skips(app: &OneWays, (n, _): (u32, Option<OneWay>)) {
    app.log.add(n);
}
#[handle(app.ways)]
fn stops(app: &OneWays, (n, _): (u32, Option<OneWay>)) {
    app.log.add(format!("also {n}"));
}

#[tokio::test]
async fn a_change_that_cannot_be_read_is_each_handlers_to_skip_or_to_stop_at() {
    let app = one_ways(1..=2);
    let error = flow![writes, retries].run(Arc::clone(&app)).await.unwrap_err();
    assert!(matches!(typed(error), Error::Item { handler: "retries", .. }));
    assert_eq!((app.log.take(), app.written.get(&2).unwrap()), (vec!["1".to_owned()], None));
    let app = one_ways(1..=2);
    let error = flow![writes, skips, stops].run(Arc::clone(&app)).await.unwrap_err();
    assert!(matches!(typed(error), Error::Item { handler: "stops", .. }));
    assert_eq!(app.log.take(), ["1", "also 1"]);
    // The part of the handler that wrote it stands, also where reading it panics.
    let app = one_ways(1..=4);
    flow![writes, skips].run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.log.take(), ["1", "4"]);
    assert_eq!(app.written.iter().count(), 4);
}

#[handle(app.words, sink = { let counts = app.counts.clone(); move |word: &&str| counts.insert(*word, 1) })]
fn writes_in_a_sink(app: &App, word: &'static str) -> &'static str {
    app.log.add(format!("next: {word}"));
    word
}
#[handle(app.words)]
fn beside(app: &App, word: &'static str) {
    app.log.add(format!("beside: {word}"));
}

#[tokio::test]
async fn what_a_sink_outside_of_the_store_writes_is_handled_in_its_message() {
    let app = app();
    flow![writes_in_a_sink, sees].store(app.counts.store()).run(Arc::clone(&app)).await.unwrap();
    let of = |word: &str| [format!("next: {word}"), format!("{word} Some(1)")];
    assert_eq!(app.log.take(), ["to", "be", "to", "bee"].map(of).concat());
    flow![writes_in_a_sink, sees, beside].store(app.counts.store()).run(Arc::clone(&app)).await.unwrap();
    let of = |word: &str| [format!("next: {word}"), format!("beside: {word}"), format!("{word} Some(1)")];
    assert_eq!(app.log.take(), ["to", "be", "to", "bee"].map(of).concat());
}
