//! Checkpoints under any schedule: whatever the order in which updates and messages come, whatever crashes and whenever
//! a commit was made, the last answers are those that all of the data give.
//!
//! ```text
//! seed ─▶ Schedule: rows of each source, thresholds, crashes
//!            │
//!            ├─▶ Drive: writes them to logs in memory, in any interleaving ─▶ flow over a store ═ dropped, run again
//!            └─▶ oracle: the join of all rows ◀── compared at the end ── answers, counts, sums
//! ```
//!
//! The clock is tokio's, paused: it moves when nothing else can, so a wait of a moment lasts until all the others have done what
//! they can, and a flow that hangs is seen at once.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod crashes;
mod drive;
mod handlers;
mod late;
mod log;
mod oracle;
mod random;
mod records;
mod rng;
mod schedule;
mod world;

use std::time::Duration;

/// How long a flow may stand still, by the paused clock.
pub(crate) const HANGS: Duration = Duration::from_secs(120);

/// Runs on one thread, with the clock paused.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(future)
}

/// So many cases, unless the environment asks for another number.
pub(crate) fn cases(usual: u64) -> u64 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.map_or(usual, |asked| asked.parse().expect("PROPTEST_CASES is a number"))
}
