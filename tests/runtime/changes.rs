//! A cache as a source of its changes, inside of the message that makes them.
use crate::{Log, typed};
use slipstream::{Cache, Error, Iter, Result, Store, StoreError, flow, handle, iter};
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
