//! What a flow promises its handlers, seen from a program that uses `slipstream`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod builder;
mod changes;
mod channels;
mod commits;
mod conflicts;
mod failing;
mod handle;
mod messages;
mod parameters;
mod pipes;
mod policies;
mod routes;
mod shapes;
mod sinks;
mod sources;
mod together;

use std::sync::{Arc, Mutex};

/// What handlers and sinks have seen, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl ToString) {
        self.0.lock().unwrap().push(line.to_string());
    }
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
    pub(crate) fn sorted(&self) -> Vec<String> {
        let mut lines = self.take();
        lines.sort();
        lines
    }
}

/// What a flow ends with, unless it hangs. In a task of its own, since one may hang without an await.
pub(crate) async fn ends(
    run: impl Future<Output = slipstream::Result<()>> + Send + 'static,
) -> slipstream::Result<()> {
    let run = tokio::spawn(run);
    tokio::time::timeout(std::time::Duration::from_secs(30), run).await.expect("it hangs")?
}

/// The typed error that a flow ended with.
pub(crate) fn typed(error: slipstream::BoxError) -> slipstream::Error {
    *error.downcast::<slipstream::Error>().unwrap()
}
