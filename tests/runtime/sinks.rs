//! Sinks of all kinds, in the order written.
use crate::Log;
use slipstream::{Cache, Result, Sink, flow, handle, iter, print};
use std::sync::Arc;

struct App {
    totals: Cache<String, i64>,
    log: Log,
}

fn app() -> Result<Arc<App>> {
    Ok(Arc::new(App { totals: Cache::in_memory()?, log: Log::default() }))
}

/// A sink inside the transaction and outside of it.
#[derive(Clone)]
struct Steps(Log);
impl Sink<(String, i64)> for Steps {
    fn stage(&self, (key, _): &(String, i64)) -> Result<()> {
        self.0.add(format!("stage {key}"));
        Ok(())
    }
    async fn send(&self, (key, _): &(String, i64)) -> Result<()> {
        tokio::task::yield_now().await;
        self.0.add(format!("send {key}"));
        Ok(())
    }
}

#[handle(iter(["a", "b"]), sink = [Steps(app.log.clone()), app.totals, print, Steps(app.log.clone())])]
fn several(app: &App, word: &'static str) -> [(String, i64); 2] {
    [(format!("{word}1"), 1), (format!("{word}2"), 2)]
}

#[tokio::test]
async fn each_output_is_staged_in_all_sinks_then_sent_to_all() -> Result<()> {
    let app = app()?;
    flow![several].run(Arc::clone(&app)).await?;
    assert_eq!(
        app.log.take()[..8],
        ["stage a1", "stage a1", "stage a2", "stage a2", "send a1", "send a1", "send a2", "send a2"]
    );
    assert_eq!(app.totals.get("b2")?, Some(2));
    Ok(())
}

#[handle(iter(["a", "b", "a"]), sink = app.totals)]
fn toggles(app: &App, word: &'static str) -> Result<(String, Option<i64>)> {
    Ok((word.to_owned(), app.totals.get(word)?.is_none().then_some(1)))
}

#[tokio::test]
async fn a_none_deletes_the_row() -> Result<()> {
    let app = app()?;
    flow![toggles].run(Arc::clone(&app)).await?;
    let rows = app.totals.iter().collect::<std::result::Result<Vec<_>, _>>()?;
    assert_eq!(rows, [("b".to_owned(), 1)]);
    Ok(())
}
