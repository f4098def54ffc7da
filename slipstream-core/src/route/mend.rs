//! A message that has failed, or has to run again: it goes on from there, or the flow ends.
//!
//! ```text
//! fault ─▶ verdict ─┬─ again: another message has published what it had read; from its start
//!                   ├─ retry: the handler once more, from its savepoint, after a wait
//!                   ├─ skip:  on without the handler's part
//!                   └─ stop:  the fault is the flow's
//! its partition was taken away meanwhile ─▶ dropped
//! ```
//!
//! Invariant: whatever becomes of it, the next message waits until this one is published or given up.
use super::{
    drive::{Drive, InHand},
    turns::{Mend, Turns},
};
use crate::{
    error::{Cause, Fault},
    position::Position,
    source::Feed,
};
use std::{future::poll_fn, time::Duration};

/// Mends the message in hand, as often as it needs it, to its publication. `at` is its item's number in the
/// chunk; without one it is what a pipe had of itself.
#[cold]
pub(super) async fn mend<I: Send, T: Turns<I>>(
    message: &mut InHand<I, T>,
    feed: &mut dyn Feed<I>,
    at: Option<usize>,
    position: Option<Position>,
    mut fault: Fault,
    drive: &Drive,
) -> Result<(), Fault> {
    loop {
        if matches!(fault.cause, Cause::Revoked) {
            tracing::debug!(?position, "dropped: its partition is another's by now, who handles it again");
            message.roll_back();
            return Ok(());
        }
        let Some((how, after)) = message.verdict(&fault) else { return Err(fault) };
        if !wait(how, after, drive).await {
            // It has not been handled, so it comes again after a restart.
            message.roll_back();
            return Ok(());
        }
        let mut item = match at.and_then(|at| feed.again(at)) {
            Some(item) => Some(item?),
            // It was begun before anything was known that might ask for it again.
            None if at.is_some() => return Err(fault),
            None => None,
        };
        let mut is_begun = false;
        let mended = poll_fn(|cx| match std::mem::replace(&mut is_begun, true) {
            false => message.mend(how, item.take(), position, drive, cx),
            true => message.poll_on(position, drive, cx),
        });
        match mended.await {
            Ok(()) => return Ok(()),
            Err(next) => fault = next,
        }
    }
}

/// Waits before the message goes on. Answers false where the flow is to stop instead.
async fn wait(how: Mend, after: Duration, drive: &Drive) -> bool {
    let stop = &drive.shared.stop;
    match how {
        Mend::Skip => true,
        // Whoever has published may be on this thread, and have more to do.
        Mend::Again => {
            tokio::task::yield_now().await;
            true
        }
        Mend::Retry => tokio::select! {
            () = tokio::time::sleep(after) => true,
            () = stop.stopped() => false,
        },
    }
}
