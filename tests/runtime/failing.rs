//! How a flow ends: what the error names, what the other sources still do, what is never done.
use crate::{Log, typed};
use futures::{Stream, StreamExt, stream};
use slipstream::{AsyncIterable, Error, Iter, Result, Sink, flow, handle, in_message, iter};
use std::{sync::Arc, time::Duration};
use tokio::sync::Notify;

#[derive(Default)]
struct App {
    log: Log,
    /// The slow source's message has begun.
    begun: Notify,
    /// It may end.
    go_on: Notify,
}

impl App {
    fn numbers(&self) -> Iter<std::ops::RangeInclusive<u8>> {
        iter(1..=5)
    }
    fn log(&self) -> impl Fn(&u8) + Clone + Send + Sync + 'static {
        let log = self.log.clone();
        move |n: &u8| log.add(n)
    }
}

#[handle(app.numbers(), sink = app.log())]
fn fails(app: &App, n: u8) -> Result<u8> {
    if n == 3 { Err("three".into()) } else { Ok(n) }
}
#[handle(app.numbers(), sink = app.log())]
async fn panics(app: &App, n: u8) -> u8 {
    tokio::task::yield_now().await;
    assert!(n != 3, "{n} is too many");
    n
}
#[handle(app.numbers(), sink = [app.log(), |n| if *n == 3 { Err("full") } else { Ok(()) }, app.log()])]
fn has_a_failing_sink(app: &App, n: u8) -> u8 {
    n
}
fn broken() -> impl Stream<Item = std::result::Result<u8, String>> {
    stream::iter([Ok(1), Ok(2), Err("line 3 is cut off".to_owned()), Ok(4)])
}
#[handle(broken, sink = app.log())]
fn reads_a_broken_source(app: &App, n: u8) -> u8 {
    n
}
fn panicking() -> impl Stream<Item = u8> {
    stream::iter([1, 2]).inspect(|n| assert!(*n != 2, "the source burst"))
}
#[handle(panicking, sink = app.log())]
fn reads_a_panicking_source(app: &App, n: u8) -> u8 {
    n
}

async fn ends(flow: slipstream::Flow<App>) -> (Error, String, Vec<String>) {
    let app = Arc::new(App::default());
    let error = typed(flow.run(Arc::clone(&app)).await.unwrap_err());
    let text = format!("{error:?}");
    (error, text, app.log.take())
}

#[tokio::test]
async fn a_handlers_error_names_handler_source_and_cause_and_nothing_follows() {
    let (error, text, seen) = ends(flow![fails]).await;
    assert!(matches!(error, Error::Handler { handler: "fails", .. }));
    assert_eq!(text, "handler `fails` failed on an item of `app.numbers()`: three");
    assert_eq!(seen, ["1", "2"]);
}

#[tokio::test]
async fn a_panic_is_an_error_like_another() {
    let (error, text, seen) = ends(flow![panics]).await;
    assert!(matches!(error, Error::Panic { handler: "panics", .. }));
    assert_eq!(text, "handler `panics` panicked on an item of `app.numbers()`: 3 is too many");
    assert_eq!(seen, ["1", "2"]);
}

#[tokio::test]
async fn the_handler_that_panicked_is_named_among_several() {
    #[handle(iter_of_three)]
    fn fine(n: u8) {
        assert!(n < 9);
    }
    #[handle(iter_of_three)]
    fn bursts(n: u8) {
        assert!(n != 3, "burst");
    }
    fn iter_of_three() -> impl Stream<Item = u8> {
        stream::iter([1, 2, 3])
    }
    let error = typed(flow![fine, bursts, fine].run(()).await.unwrap_err());
    assert!(matches!(error, Error::Panic { handler: "bursts", .. }), "{error:?}");
}

#[tokio::test]
async fn sinks_before_the_failing_one_have_the_output_those_after_it_have_not() {
    let (error, text, seen) = ends(flow![has_a_failing_sink]).await;
    assert!(matches!(error, Error::Sink { handler: "has_a_failing_sink", .. }));
    assert_eq!(
        text,
        "a sink of handler `has_a_failing_sink` failed on an output for an item of `app.numbers()`: full"
    );
    assert_eq!(seen, ["1", "1", "2", "2", "3"]);
}

#[tokio::test]
async fn an_error_in_place_of_an_item_comes_after_the_items_before_it() {
    let (error, text, seen) = ends(flow![reads_a_broken_source]).await;
    assert!(matches!(error, Error::Item { .. }));
    assert_eq!(
        text,
        "`broken` gave an error in place of an item for handler `reads_a_broken_source`: line 3 is cut off"
    );
    assert_eq!(seen, ["1", "2"]);
    // The same where the source is shared, which is another way through the code.
    let (error, _, seen) = ends(flow![reads_a_broken_source, reads_a_broken_source]).await;
    assert!(matches!(error, Error::Item { .. }));
    assert_eq!(seen, ["1", "1", "2", "2"]);
}

#[tokio::test]
async fn a_source_that_panics_is_named() {
    let (error, text, _) = ends(flow![reads_a_panicking_source]).await;
    assert!(matches!(error, Error::Source { .. }));
    assert_eq!(text, "source `panicking` panicked: the source burst");
}

fn endless() -> impl Stream<Item = u8> {
    stream::iter(1..=u8::MAX).cycle()
}
#[handle(endless, sink = app.log())]
async fn slow(app: &App, n: u8) -> u8 {
    app.begun.notify_one();
    app.go_on.notified().await;
    n
}
fn never() -> impl Stream<Item = u8> {
    stream::pending()
}
#[handle(never)]
fn waits_for_ever(_: u8) {}
fn once_begun(app: &Arc<App>) -> impl Fn() -> stream::BoxStream<'static, u8> + 'static {
    let app = Arc::clone(app);
    move || {
        let app = Arc::clone(&app);
        stream::once(async move { app.begun.notified().await }).map(|()| 1).boxed()
    }
}

#[tokio::test]
async fn after_an_error_messages_in_hand_are_finished_and_no_other_begins() {
    let app = Arc::new(App::default());
    let (failed, in_hand) = (Arc::new(Notify::new()), Arc::clone(&app));
    let failing = slipstream::source(&Shared(Arc::new(once_begun(&app)))).handle({
        let failed = Arc::clone(&failed);
        move |_: u8| {
            failed.notify_one();
            Err::<(), _>("late")
        }
    });
    let flow = flow![slow, waits_for_ever].with(failing.named("failing"));
    let running = tokio::spawn(flow.run(Arc::clone(&app)));
    failed.notified().await;
    // The error has been returned; let it reach the other sources, of which one has a message in hand.
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!running.is_finished(), "the message in hand is waited for");
    assert_eq!(in_hand.log.take(), [""; 0]);
    app.go_on.notify_one();
    let error = typed(running.await.unwrap().unwrap_err());
    assert!(matches!(error, Error::Handler { handler: "failing", .. }), "{error:?}");
    assert_eq!(app.log.take(), ["1"]);
}

/// A closure behind a pointer, as a source.
#[derive(Clone)]
struct Shared(Arc<dyn Fn() -> stream::BoxStream<'static, u8> + Send + Sync>);
impl slipstream::AsyncIterable for Shared {
    type Item = u8;
    fn open(&self) -> impl Stream<Item = u8> + Send + 'static {
        (self.0)()
    }
}

#[derive(Clone)]
struct Flushed(Log, &'static str);
impl Sink<u8> for Flushed {
    async fn send(&self, n: &u8) -> Result<()> {
        self.0.add(format!("{} {n}", self.1));
        Ok(())
    }
    async fn flush(&self) -> Result<()> {
        self.0.add(format!("{} flush", self.1));
        if self.1 == "bad" { Err("disk full".into()) } else { Ok(()) }
    }
}
#[handle(iter([1]), sink = [Flushed(app.log.clone(), "bad"), Flushed(app.log.clone(), "good")])]
fn buffered(app: &App, n: u8) -> u8 {
    n
}
#[handle(iter([1, 2]), sink = Flushed(app.log.clone(), "good"))]
fn fails_later(app: &App, n: u8) -> Result<u8> {
    if n == 2 { Err("two".into()) } else { Ok(n) }
}

#[tokio::test]
async fn every_sink_is_flushed_at_the_end_and_a_failed_flush_is_the_flows_error() {
    let (error, text, seen) = ends(flow![buffered]).await;
    assert!(matches!(error, Error::Flush { handler: "buffered", .. }));
    assert_eq!(text, "a sink of handler `buffered` could not be flushed: disk full");
    assert_eq!(seen, ["bad 1", "good 1", "bad flush", "good flush"]);
}

#[tokio::test]
async fn what_was_sent_before_an_error_is_flushed_too() {
    let (error, _, seen) = ends(flow![fails_later]).await;
    assert!(matches!(error, Error::Handler { .. }));
    assert_eq!(seen, ["good 1", "good flush"]);
}

#[handle(iter([1]), sink = missing()?)]
fn cannot_start(n: u8) -> u8 {
    n
}
fn missing() -> Result<fn(&u8)> {
    Err("no such file".into())
}

#[tokio::test]
async fn an_attribute_that_fails_is_an_error_at_the_start_before_any_message() {
    let app = Arc::new(App::default());
    let error = typed(flow![fails, cannot_start].run(Arc::clone(&app)).await.unwrap_err());
    assert_eq!(
        format!("{error:?}"),
        "the flow could not start: handler `cannot_start` was not mounted: no such file"
    );
    assert_eq!(app.log.take(), [""; 0]);
}

#[derive(Clone)]
struct PanicsAtTheEnd;
impl Sink<u8> for PanicsAtTheEnd {
    async fn flush(&self) -> Result<()> {
        panic!("nothing to flush")
    }
}
#[handle(iter([1]), sink = [PanicsAtTheEnd, Flushed(app.log.clone(), "good")])]
fn panics_at_the_end(app: &App, n: u8) -> u8 {
    n
}

struct NeverOpens;
impl AsyncIterable for NeverOpens {
    type Item = u8;
    fn open(&self) -> impl Stream<Item = u8> + Send + 'static {
        assert!(in_message(), "it is never opened");
        stream::empty()
    }
}
#[handle(NeverOpens)]
fn of_what_never_opens(_: &App, _: u8) {}

#[tokio::test]
async fn a_panic_in_a_flush_or_in_an_opening_is_an_error_like_another() {
    let (error, text, _) = ends(flow![panics_at_the_end]).await;
    assert!(matches!(error, Error::Flush { .. }));
    assert!(text.ends_with("could not be flushed: it panicked: nothing to flush"), "{text}");
    let (error, text, _) = ends(flow![of_what_never_opens]).await;
    assert!(matches!(error, Error::Source { .. }));
    assert_eq!(text, "source `NeverOpens` panicked: it is never opened");
}
