//! Which source is which, how often it is opened, and in what order handlers see its messages.
use crate::{Log, typed};
use futures::{Stream, stream};
use slipstream::{AsyncIterable, Error, Result, flow, handle};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// A list that counts how often it was opened.
#[derive(Debug, Clone, Default)]
struct Counted {
    items: Vec<u8>,
    opened: Arc<AtomicUsize>,
}

impl Counted {
    fn of(items: &[u8]) -> Self {
        Counted { items: items.to_vec(), opened: Arc::default() }
    }
    fn opened(&self) -> usize {
        self.opened.load(Relaxed)
    }
}

impl AsyncIterable for Counted {
    type Item = u8;
    fn open(&self) -> impl Stream<Item = u8> + Send + 'static {
        self.opened.fetch_add(1, Relaxed);
        stream::iter(self.items.clone())
    }
}

struct Inner {
    behind_an_arc: Counted,
}
struct App {
    one: Counted,
    two: Counted,
    inner: Arc<Inner>,
    log: Log,
}

fn app() -> Arc<App> {
    Arc::new(App {
        one: Counted::of(&[1, 2]),
        two: Counted::of(&[3]),
        inner: Arc::new(Inner { behind_an_arc: Counted::of(&[7]) }),
        log: Log::default(),
    })
}

#[handle(app.one)]
async fn first(app: &App, n: u8) {
    app.log.add(format!("first {n}"));
    tokio::task::yield_now().await;
    app.log.add(format!("first done {n}"));
}
#[handle(app.one, sink = { let log = app.log.clone(); move |n| log.add(format!("sink {n}")) })]
fn second(app: &App, n: u8) -> u8 {
    app.log.add(format!("second {n}"));
    n
}
#[handle(app.one, app.two)]
fn both(app: &App, n: u8) {
    app.log.add(format!("both {n}"));
}
#[handle(app.inner.behind_an_arc)]
fn inner_one(app: &App, n: u8) {
    app.log.add(format!("inner one {n}"));
}
#[handle(&app.inner.behind_an_arc)]
fn inner_two(app: &App, n: u8) {
    app.log.add(format!("inner two {n}"));
}

#[tokio::test]
async fn a_source_is_opened_once_and_a_message_goes_through_all_handlers_before_the_next() -> Result<()> {
    let app = app();
    flow![first, second].run(Arc::clone(&app)).await?;
    assert_eq!(
        app.log.take(),
        [
            "first 1",
            "first done 1",
            "second 1",
            "sink 1", // sinks when all handlers are done
            "first 2",
            "first done 2",
            "second 2",
            "sink 2",
        ]
    );
    assert_eq!(app.one.opened(), 1);
    Ok(())
}

#[tokio::test]
async fn one_handler_reads_several_sources_and_shares_each() -> Result<()> {
    let app = app();
    flow![second, both].run(Arc::clone(&app)).await?;
    assert_eq!(app.log.sorted(), ["both 1", "both 2", "both 3", "second 1", "second 2", "sink 1", "sink 2"]);
    assert_eq!((app.one.opened(), app.two.opened()), (1, 1));
    Ok(())
}

#[tokio::test]
async fn a_place_is_known_again_behind_a_pointer_and_a_reference() -> Result<()> {
    let app = app();
    flow![inner_one, inner_two].run(Arc::clone(&app)).await?;
    assert_eq!(app.log.take(), ["inner one 7", "inner two 7"]);
    assert_eq!(app.inner.behind_an_arc.opened(), 1);
    Ok(())
}

static FUNCTION_OPENED: AtomicUsize = AtomicUsize::new(0);
fn function() -> impl Stream<Item = u8> {
    FUNCTION_OPENED.fetch_add(1, Relaxed);
    stream::iter([1])
}
#[handle(function)]
fn function_one(app: &App, n: u8) {
    app.log.add(format!("one {n}"));
}
#[handle(function)]
fn function_two(app: &App, n: u8) {
    app.log.add(format!("two {n}"));
}

#[tokio::test]
async fn a_function_is_one_source_wherever_it_is_named() -> Result<()> {
    let app = app();
    flow![function_one, function_two].run(Arc::clone(&app)).await?;
    assert_eq!(app.log.take(), ["one 1", "two 1"]);
    assert_eq!(FUNCTION_OPENED.load(Relaxed), 1);
    Ok(())
}

// Two values made by attributes may have lived at one address: they are two sources all the same.
#[handle(Counted::of(&[1]))]
fn made_one(app: &App, n: u8) {
    app.log.add(format!("one {n}"));
}
#[handle(Counted::of(&[2]))]
fn made_two(app: &App, n: u8) {
    app.log.add(format!("two {n}"));
}

#[tokio::test]
async fn values_made_in_attributes_are_not_taken_for_one_another() -> Result<()> {
    let app = app();
    flow![made_one, made_two].run(Arc::clone(&app)).await?;
    assert_eq!(app.log.sorted(), ["one 1", "two 2"]);
    Ok(())
}

struct Named<T>(T);
impl<T: Clone + Send + Sync + 'static> AsyncIterable for Named<T> {
    type Item = T;
    fn open(&self) -> impl Stream<Item = T> + Send + 'static {
        stream::iter([self.0.clone()])
    }
    fn identity(&self) -> Option<String> {
        Some("the one".into())
    }
}
#[handle(Named(1_u8))]
fn named_one(app: &App, n: u8) {
    app.log.add(format!("one {n}"));
}
#[handle(Named(2_u8))]
fn named_two(app: &App, n: u8) {
    app.log.add(format!("two {n}"));
}
#[handle(Named('c'))]
fn named_otherwise(_: char) {}

#[tokio::test]
async fn two_values_with_one_identity_are_one_source() -> Result<()> {
    let app = app();
    flow![named_one, named_two].run(Arc::clone(&app)).await?;
    assert_eq!(app.log.take(), ["one 1", "two 1"]);
    Ok(())
}

#[tokio::test]
async fn one_identity_with_two_item_types_is_an_error_at_the_start() {
    let error = typed(flow![named_one, named_otherwise].run(app()).await.unwrap_err());
    assert!(matches!(&error, Error::Start { handler, .. } if handler == "named_otherwise"));
    assert_eq!(
        format!("{error:?}"),
        "the flow could not start: handler `named_otherwise` was not mounted: \
         `Named('c')` has the identity of another source, but other items"
    );
}

#[tokio::test]
async fn two_flows_live_in_one_process() -> Result<()> {
    let (a, b) = (app(), app());
    let (ran_a, ran_b) = tokio::join!(flow![first].run(Arc::clone(&a)), flow![second].run(Arc::clone(&b)));
    ran_a.and(ran_b)?;
    assert_eq!((a.log.take().len(), b.log.take().len()), (4, 4));
    Ok(())
}
