//! Every parameter list: context, item, emitter, each optional, in this order.
use crate::Log;
use slipstream::{Emitter, Iter, Message, Result, flow, handle, iter};
use std::sync::Arc;

struct App {
    numbers: Iter<Vec<Message<char, u8>>>,
    results: Iter<Vec<std::result::Result<u8, String>>>,
    log: Log,
}

fn app() -> Arc<App> {
    Arc::new(App {
        numbers: iter(vec![Message::new('a', 5), Message::new('b', 6)]),
        results: iter(vec![Ok(1), Ok(2)]),
        log: Log::default(),
    })
}

impl App {
    fn log(&self) -> Result<impl Fn(&String) + Clone + Send + Sync + 'static> {
        let log = self.log.clone();
        Ok(move |line: &String| log.add(line))
    }
}

// `?` in the attribute is answered when the flow starts.
#[handle(app.numbers, sink = app.log()?)]
async fn all_three(app: &App, n: u8, out: &mut Emitter<String>) {
    out.emit(format!("{n} of {}", Arc::strong_count(&Arc::new(app))));
}
#[handle(app.numbers, sink = app.log()?)]
fn whole_message(app: &App, message: Message<char, u8>) -> String {
    format!("{}{}", message.key, message.value)
}
#[handle(app.numbers, sink = app.log()?)]
fn pattern(app: &App, Message { key, value, .. }: Message<char, u8>) -> String {
    format!("{key}{value}")
}
#[handle(app.numbers, sink = app.log()?)]
async fn by_reference(app: &App, n: &u8) -> Result<String> {
    tokio::task::yield_now().await;
    Ok(n.to_string())
}
#[handle(app.numbers, sink = app.log()?)]
fn context_alone(app: &App) -> String {
    "came".into()
}
#[handle(app.results, sink = app.log()?)]
fn out_of_a_result(app: &App, n: u8) -> String {
    n.to_string()
}
#[handle(app.results, sink = app.log()?)]
fn whole_result(app: &App, n: std::result::Result<u8, String>) -> String {
    format!("{n:?}")
}

macro_rules! takes {
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

mod takes {
    use super::*;
    takes! {
        all_three => ["5 of 1", "6 of 1"];
        whole_message => ["a5", "b6"];
        pattern => ["a5", "b6"];
        by_reference => ["5", "6"];
        context_alone => ["came", "came"];
        out_of_a_result => ["1", "2"];
        whole_result => ["Ok(1)", "Ok(2)"];
    }
}

// Without a context a handler fits any flow; a lone `&T` that the attribute does not use is the item.
#[handle(iter([1, 2]), sink = |n| assert!(*n == 2 || *n == 3))]
fn item_alone(n: &u8) -> u8 {
    n + 1
}
#[handle(iter([1]))]
fn none_at_all() {}
#[handle(iter([1]))]
fn context_that_only_the_body_uses(app: &App, n: u8) {
    app.log.add(n);
}

#[tokio::test]
async fn handlers_without_a_context_run_over_anything() -> Result<()> {
    flow![item_alone, none_at_all].run(()).await?;
    let app = app();
    flow![item_alone, none_at_all, context_that_only_the_body_uses].run(Arc::clone(&app)).await?;
    assert_eq!(app.log.take(), ["1"]);
    Ok(())
}

#[tokio::test]
async fn the_functions_are_as_they_were_written() -> Result<()> {
    let app = app();
    let mut out = Emitter::default();
    all_three(&app, 1, &mut out).await;
    assert_eq!(out.into_vec(), ["1 of 1"]);
    assert_eq!(by_reference(&app, &7).await?, "7");
    assert_eq!(item_alone(&1), 2);
    Ok(())
}
