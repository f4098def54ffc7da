//! What a checkpoint refuses.
use std::fmt;

/// Why a checkpoint was not built, or did not answer.
#[derive(thiserror::Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A source of it has no name.
    #[error(
        "checkpoint `{checkpoint}`: the source of `{source_of}` has no name by which it is known again; give it one: \
         `named(\"…\", source)`"
    )]
    Unnamed {
        /// The checkpoint.
        checkpoint: String,
        /// The dependency whose source it is; the checkpoint's own name for the dependent's.
        source_of: String,
    },
    /// It has no dependency, too many, or two of one name.
    #[error(
        "checkpoint `{checkpoint}` needs between one and 64 dependencies of different names, and has {said}"
    )]
    Dependencies {
        /// The checkpoint.
        checkpoint: String,
        /// What it has.
        said: String,
    },
    /// The dependent is among its own dependencies.
    #[error("checkpoint `{checkpoint}`: `{dependency}` is the dependent itself, which would wait for itself")]
    Itself {
        /// The checkpoint.
        checkpoint: String,
        /// The dependency.
        dependency: String,
    },
    /// A threshold where markers have no distance in time.
    #[error(
        "checkpoint `{checkpoint}`: its markers are no times, so `{dependency}` can have no threshold; say when it is down \
         by a `downtime_check`"
    )]
    Threshold {
        /// The checkpoint.
        checkpoint: String,
        /// The dependency.
        dependency: String,
    },
    /// A call in a message of a source that has nothing to do with it.
    #[error(
        "checkpoint `{checkpoint}`: `{call}` was called in a message of {of}; call it in a handler of {remedy}"
    )]
    Foreign {
        /// The checkpoint.
        checkpoint: String,
        /// What was called.
        call: &'static str,
        /// What that source is to the checkpoint.
        of: &'static str,
        /// Where the call belongs.
        remedy: String,
    },
    /// It is not mounted with the flow.
    #[error(
        "checkpoint `{checkpoint}` is not part of a running flow: mount it with `flow.checkpoint(&checkpoint)`"
    )]
    NotMounted {
        /// The checkpoint.
        checkpoint: String,
    },
    /// A heartbeat that could be of several dependencies, or of none.
    #[error(
        "checkpoint `{checkpoint}`: which dependency is alive? Say it by name: `heartbeat_of(\"…\", …)`; known are {known}"
    )]
    Which {
        /// The checkpoint.
        checkpoint: String,
        /// Its dependencies.
        known: String,
    },
    /// Nothing is known of a dependency yet, and it is told to be an error.
    #[error("checkpoint `{checkpoint}`: nothing has come of `{dependency}` yet")]
    Unknown {
        /// The checkpoint.
        checkpoint: String,
        /// The dependency.
        dependency: String,
    },
    /// What is to be remembered cannot be written, or what was remembered cannot be read as that.
    #[error("checkpoint `{checkpoint}`: its state cannot be {what}: {said}")]
    State {
        /// The checkpoint.
        checkpoint: String,
        /// `written` or `read`.
        what: &'static str,
        /// The format's words.
        said: String,
    },
    /// The flow cannot run with it.
    #[error("checkpoint `{checkpoint}` {said}")]
    Refused {
        /// The checkpoint.
        checkpoint: String,
        /// What is missing or wrong, and what to do.
        said: String,
    },
    /// A callback, or a check, has failed.
    #[error("the {which} of checkpoint `{checkpoint}` failed: {said}")]
    Callback {
        /// The checkpoint.
        checkpoint: String,
        /// Which one.
        which: &'static str,
        /// What it returned.
        said: String,
    },
    /// A dependency has ended while it was down.
    #[error("checkpoint `{checkpoint}`: `{dependency}` has ended while its dependent waits for it")]
    Ended {
        /// The checkpoint.
        checkpoint: String,
        /// The dependency.
        dependency: String,
    },
}

impl fmt::Debug for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::error::write_chain(self, f)
    }
}
