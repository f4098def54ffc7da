//! Downtime and recovery, as stories: a source falls silent, the stream that depends on it waits, and what was
//! answered too early is answered again.
//!
//! The sources are logs in memory to which a test writes line by line, and each line waits until the one before is
//! handled, so that nothing depends on time.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod callbacks;
mod corners;
mod ends;
mod log;
mod mistakes;
mod outages;
mod restarts;
mod several;
mod stage;

use std::time::Duration;

/// What a flow ends with, unless it hangs.
pub(crate) async fn ends(
    run: impl Future<Output = slipstream::Result<()>> + Send + 'static,
) -> slipstream::Result<()> {
    let run = tokio::spawn(run);
    tokio::time::timeout(Duration::from_secs(30), run).await.expect("it hangs")?
}
