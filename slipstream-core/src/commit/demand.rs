//! Commits on demand: whoever asks for one waits until one that began afterwards is done.
//!
//! ```text
//! commit_now ──asks──▶ committer ──▶ commit 7 begins … is done ──▶ commit 8 begins … is done
//!      └── asked while 7 was running: waits for 8, as all do who ask before 8 begins ──┘
//! ```
//!
//! Invariants: a commit is numbered before it freezes the epoch, so one with a greater number than was
//! seen at the call has all that was published before the call; nobody waits longer than the flow runs.
use crate::Error;
use std::{future::Future, ptr, sync::Arc};
use tokio::sync::{Notify, watch};

tokio::task_local! {
    /// The demand in whose commit this task is: it flushes a sink or tells a source. By address.
    static WITHIN: usize;
}

/// Why [`FlowHandle::commit_now`](crate::FlowHandle::commit_now) has not committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The flow has not been polled yet, or could not start.
    #[error("the flow has not begun to run, so it has nothing to commit")]
    NotBegun,
    /// The flow had ended before the call. All that it had published is stored.
    #[error("the flow has ended: its last commit is made")]
    Ended,
    /// The flow was dropped, before the call or meanwhile. What was to be committed is stored whole or
    /// not at all.
    #[error("the flow was dropped, and it is not known whether it has committed")]
    Dropped,
    /// A commit has failed, and the flow ends with its error, of which this is the text.
    #[error("the commit failed, and ends the flow: {reason}")]
    Failed {
        /// What failed, with its causes.
        reason: Arc<str>,
    },
    /// The call stands in the `flush` of one of the flow's sinks, or where one of its sources is told of a
    /// commit, for which the commit itself waits.
    #[error(
        "a sink's `flush` and a source's `committed` are parts of the commit, and cannot wait for another one"
    )]
    InFlush,
}

/// What the committer and those who wait for it tell each other. It is there before the flow runs, and
/// when it has ended.
#[derive(Debug, Default)]
pub(crate) struct Demand {
    asked: Notify,
    progress: watch::Sender<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// The number of the last commit that has begun, and of the last one that is done.
    begun: u64,
    done: u64,
    stage: Stage,
}

/// What there is to wait for.
#[derive(Debug, Default)]
enum Stage {
    #[default]
    NotBegun,
    Runs,
    /// All that was published is committed.
    Ended,
    Failed(Arc<str>),
    Dropped,
}

impl Demand {
    /// Waits for a commit that begins from now on.
    pub(crate) async fn commit(&self) -> Result<(), CommitError> {
        if WITHIN.try_with(|within| *within == self.address()) == Ok(true) {
            return Err(CommitError::InFlush);
        }
        let mut progress = self.progress.subscribe();
        let wanted = progress.borrow().next()?;
        // After the look: a commit that this brings about has a greater number.
        self.asked.notify_one();
        let reached = |progress: &Progress| progress.done >= wanted || !matches!(progress.stage, Stage::Runs);
        match progress.wait_for(reached).await {
            Ok(progress) if progress.done >= wanted => Ok(()),
            Ok(progress) => match &progress.stage {
                // With the last commit, which came after the call.
                Stage::Ended => Ok(()),
                Stage::Failed(reason) => Err(CommitError::Failed { reason: Arc::clone(reason) }),
                _ => Err(CommitError::Dropped),
            },
            Err(_) => Err(CommitError::Dropped),
        }
    }

    /// Waits until somebody asks.
    pub(crate) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// The flow runs.
    pub(crate) fn runs(&self) {
        self.progress.send_modify(|progress| progress.stage = Stage::Runs);
    }

    /// A commit begins: the epoch is not frozen yet.
    pub(crate) fn begins(&self) {
        self.progress.send_modify(|progress| progress.begun += 1);
    }

    /// The commit that has begun is done, or has failed.
    pub(crate) fn done(&self, committed: &Result<(), Error>) {
        self.progress.send_modify(|progress| match committed {
            Ok(()) => progress.done = progress.begun,
            Err(error) => progress.stage = Stage::failed(error),
        });
    }

    /// The flow has made its last commit, or could not.
    pub(crate) fn ended(&self, committed: &Result<(), Error>) {
        self.end(match committed {
            Ok(()) => Stage::Ended,
            Err(error) => Stage::failed(error),
        });
    }

    /// The flow is gone. After its end this changes nothing.
    pub(crate) fn dropped(&self) {
        self.end(Stage::Dropped);
    }

    fn end(&self, stage: Stage) {
        self.progress.send_if_modified(|progress| {
            let runs = matches!(progress.stage, Stage::Runs);
            if runs {
                progress.stage = stage;
            }
            runs
        });
    }

    /// Calls the user's code as a part of a commit.
    pub(crate) async fn within<F: Future>(&self, part: F) -> F::Output {
        WITHIN.scope(self.address(), part).await
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }
}

impl Progress {
    /// The number of the commit to wait for.
    fn next(&self) -> Result<u64, CommitError> {
        match &self.stage {
            Stage::Runs => Ok(self.begun + 1),
            Stage::NotBegun => Err(CommitError::NotBegun),
            Stage::Ended => Err(CommitError::Ended),
            Stage::Dropped => Err(CommitError::Dropped),
            Stage::Failed(reason) => Err(CommitError::Failed { reason: Arc::clone(reason) }),
        }
    }
}

impl Stage {
    fn failed(error: &Error) -> Self {
        // The debug text of a flow's error is the whole chain.
        Stage::Failed(Arc::from(format!("{error:?}")))
    }
}
