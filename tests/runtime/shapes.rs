//! Every return shape, and what the sinks receive of it.
use crate::Log;
use slipstream::{Emitter, Iter, Result, flow, handle, iter, sink_async};
use std::{fmt, sync::Arc};

struct App {
    numbers: Iter<[u8; 2]>,
    log: Log,
}

fn app() -> Arc<App> {
    Arc::new(App { numbers: iter([1, 2]), log: Log::default() })
}

/// No derive, no trait, not even `Clone`.
struct Plain(u8);

#[derive(Debug)]
struct Odd;
impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("odd")
    }
}
impl std::error::Error for Odd {}
/// A `Result` by another name.
type Outcome<T> = std::result::Result<T, Odd>;

impl App {
    fn see<T: fmt::Debug>(&self) -> impl Fn(&T) + Clone + Send + Sync + 'static {
        let log = self.log.clone();
        move |output| log.add(format!("{output:?}"))
    }
    fn see_plain(&self) -> impl Fn(&Plain) + Clone + Send + Sync + 'static {
        let log = self.log.clone();
        move |plain| log.add(format!("plain {}", plain.0))
    }
}

#[handle(app.numbers)]
fn nothing(app: &App, n: u8) {
    app.log.add(n);
}
#[handle(app.numbers, sink = app.see())]
fn one_number(app: &App, n: u8) -> u8 {
    n
}
#[handle(app.numbers, sink = app.see_plain())]
fn plain(app: &App, n: u8) -> Plain {
    Plain(n)
}
#[handle(app.numbers, sink = app.see())]
async fn maybe(app: &App, n: u8) -> Option<u8> {
    (n == 2).then_some(n)
}
#[handle(app.numbers, sink = app.see())]
fn list(app: &App, n: u8) -> Vec<u8> {
    vec![n; n.into()]
}
#[handle(app.numbers, sink = app.see())]
fn array(app: &App, n: u8) -> [u8; 2] {
    [n, n + 10]
}
#[handle(app.numbers, sink = app.see())]
fn pair(app: &App, n: u8) -> (u8, char) {
    (n, 'x')
}
#[handle(app.numbers, sink = app.see_plain())]
async fn tried_plain(app: &App, n: u8) -> Result<Plain> {
    Ok(Plain(n))
}
#[handle(app.numbers, sink = app.see())]
fn tried_option(app: &App, n: u8) -> Outcome<Option<u8>> {
    if n == 3 { Err(Odd) } else { Ok(Some(n)) }
}
#[handle(app.numbers)]
async fn tried_nothing(app: &App, n: u8) -> std::result::Result<(), String> {
    app.log.add(n);
    Ok(())
}
#[handle(app.numbers, sink = app.see())]
async fn emits(app: &App, n: u8, out: &mut Emitter<Vec<u8>>) -> Result<()> {
    out.emit(vec![n]);
    tokio::task::yield_now().await;
    out.extend([vec![n, n]]);
    Ok(())
}
#[handle(app.numbers, sink = [app.see_plain()])]
fn emits_plain(app: &App, n: u8, out: &mut Emitter<Plain>) {
    out.emit(Plain(n));
}
fn count_bits(n: &u8) {
    assert!(n.count_ones() == 1);
}
#[handle(app.numbers, sink = [
    count_bits,
    app.see(),
    |n| assert!(*n > 0),
    { let log = app.log.clone(); move |n| log.add(format!("closure {n}")) },
    { let log = app.log.clone(); move |n| { let log = log.clone(); async move {
        tokio::task::yield_now().await;
        log.add(format!("async {n}"));
    } } },
    sink_async(|n: u8| async move { assert!(n > 0); Ok::<(), Odd>(()) }),
])]
fn many_sinks(app: &App, n: u8) -> u8 {
    n
}

macro_rules! gives {
    ($($handler:ident => [$($seen:expr),*];)+) => {$(
        #[tokio::test]
        async fn $handler() -> Result<()> {
            let app = app();
            flow![super::$handler].run(Arc::clone(&app)).await?;
            assert_eq!(app.log.take(), [$($seen),*]);
            Ok(())
        }
    )+};
}

mod gives {
    use super::*;
    gives! {
        nothing => ["1", "2"];
        one_number => ["1", "2"];
        plain => ["plain 1", "plain 2"];
        maybe => ["2"];
        list => ["1", "2", "2"];
        array => ["1", "11", "2", "12"];
        pair => ["(1, 'x')", "(2, 'x')"];
        tried_plain => ["plain 1", "plain 2"];
        tried_option => ["1", "2"];
        tried_nothing => ["1", "2"];
        emits => ["[1]", "[1, 1]", "[2]", "[2, 2]"];
        emits_plain => ["plain 1", "plain 2"];
        many_sinks => ["1", "closure 1", "async 1", "2", "closure 2", "async 2"];
    }
}
