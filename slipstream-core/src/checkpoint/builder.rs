//! How a checkpoint is put together.
use super::{
    Checkpoint, Inner,
    callback::{self, Called},
    dependency::Dependency,
    error::CheckpointError,
    judge::MOST_DEPENDENCIES,
    marker::Marker,
    pulse::{Outage, Recovery},
};
use crate::{AsyncIterable, OnError, Timestamp, opaque::opaque_debug, source::Identity};
use std::{future::Future, sync::Arc, time::Duration};

/// A checkpoint that is being put together: see [`Checkpoint::builder`].
#[must_use = "it is a checkpoint when it is built: `.build()`"]
pub struct CheckpointBuilder<M = Timestamp> {
    pub(super) name: Arc<str>,
    pub(super) dependent: Identity,
    pub(super) dependencies: Vec<Dependency<M>>,
    pub(super) resume_only: bool,
    pub(super) window: usize,
    pub(super) lateness: Duration,
    pub(super) gather: Duration,
    pub(super) on_error: OnError,
    pub(super) on_downtime: Vec<callback::Callback<Outage<M>>>,
    pub(super) on_recovery: Vec<callback::Callback<Recovery<M>>>,
}

opaque_debug! { CheckpointBuilder<M>; }

impl<M: Marker> CheckpointBuilder<M> {
    pub(super) fn new<S: AsyncIterable>(name: Arc<str>, dependent: &S) -> Self {
        CheckpointBuilder {
            name,
            dependent: Identity::of_value(dependent),
            dependencies: Vec::new(),
            resume_only: false,
            // Fewer, and a long outage replays from too early; more, and each commit after a pulse writes more:
            // some 16 bytes each.
            window: 1024,
            lateness: Duration::ZERO,
            // Shorter, and a dependency that is always a little late makes the source be opened again for each of its
            // messages; longer, and wrong answers stand longer.
            gather: Duration::from_millis(50),
            // A minute and a half all in all.
            on_error: OnError::retry(8, Duration::from_millis(500)),
            on_downtime: Vec::new(),
            on_recovery: Vec::new(),
        }
    }

    /// One of the sources that it depends on; at least one.
    pub fn dependency(mut self, dependency: Dependency<M>) -> Self {
        self.dependencies.push(dependency);
        self
    }

    /// The dependent is only paused and resumed, and nothing of it is handled again, unless a recovery callback seeks: for a
    /// source that cannot be read again. What was answered while a dependency was down, or before an update that
    /// came late, stands.
    pub fn resume_only(mut self) -> Self {
        self.resume_only = true;
        self
    }

    /// How many messages of each partition of the dependent are remembered while an update can still change their
    /// answers; 1,024 without this. Past it the oldest are remembered together: then a replay may begin too
    /// early, never too late. Each takes some 16 bytes, in each commit.
    pub fn window(mut self, messages: usize) -> Self {
        self.window = messages.max(1);
        self
    }

    /// How far out of order the updates of one partition of a dependency may come and still find the messages that they change;
    /// zero without this. One that is later than that is counted and logged, and repairs nothing more.
    pub fn allowed_lateness(mut self, lateness: Duration) -> Self {
        self.lateness = lateness;
        self
    }

    /// The least time between a repair and the next one for late updates without an outage; 50 ms without this. What is late meanwhile
    /// is repaired at once.
    pub fn gather(mut self, gather: Duration) -> Self {
        self.gather = gather;
        self
    }

    /// What is done when a callback, or a check of a recovery, fails: unless told otherwise it is tried 8 times more, over
    /// a minute and a half, and then the flow ends with an error. With `then_skip` it goes on as if it had gone well. A flow that ends
    /// so begins again with the same callback.
    pub fn on_error(mut self, policy: OnError) -> Self {
        self.on_error = policy;
        self
    }

    /// Called once for each outage and process, after the publication of the message that noticed it; after a restart once
    /// more for one that is not over. The dependent is paused by then. It may return a `Result`.
    pub fn on_downtime<R: Called>(mut self, call: impl Fn(&Outage<M>) -> R + Send + Sync + 'static) -> Self {
        self.on_downtime.push(callback::sync(call));
        self
    }

    /// The same, with work that waits.
    pub fn on_downtime_async<R, Fut>(
        mut self,
        call: impl Fn(Outage<M>) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        R: Called,
        Fut: Future<Output = R> + Send + 'static,
    {
        self.on_downtime.push(callback::waiting(call));
        self
    }

    /// Called before a repair, while the dependent is held and none of its messages is in hand. Where it fails it is
    /// called again, and nothing is resumed before. It may seek in the dependent by itself: then each partition goes back to the
    /// earlier of the two places. A crash before the repair is committed calls it again.
    pub fn on_recovery<R: Called>(
        mut self,
        call: impl Fn(&Recovery<M>) -> R + Send + Sync + 'static,
    ) -> Self {
        self.on_recovery.push(callback::sync(call));
        self
    }

    /// The same, with work that waits.
    pub fn on_recovery_async<R, Fut>(
        mut self,
        call: impl Fn(Recovery<M>) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        R: Called,
        Fut: Future<Output = R> + Send + 'static,
    {
        self.on_recovery.push(callback::waiting(call));
        self
    }

    /// The checkpoint.
    ///
    /// # Errors
    /// [`CheckpointError`] for a source without a name, for no dependency or two of one name, for a dependency on the
    /// dependent itself, and for a threshold where markers are no times.
    pub fn build(self) -> Result<Checkpoint<M>, CheckpointError> {
        let checkpoint = || self.name.to_string();
        if self.dependent == Identity::Alone {
            return Err(CheckpointError::Unnamed { checkpoint: checkpoint(), source_of: checkpoint() });
        }
        let count = self.dependencies.len();
        let names = self.dependencies.iter().map(|dependency| &dependency.name);
        let twice = self
            .dependencies
            .iter()
            .enumerate()
            .find(|(at, dependency)| names.clone().take(*at).any(|known| *known == dependency.name));
        let said = match twice {
            _ if count == 0 => Some("none".to_owned()),
            _ if count > MOST_DEPENDENCIES => Some(count.to_string()),
            Some((_, dependency)) => Some(format!("`{}` twice", dependency.name)),
            None => None,
        };
        if let Some(said) = said {
            return Err(CheckpointError::Dependencies { checkpoint: checkpoint(), said });
        }
        for dependency in &self.dependencies {
            dependency.validate(&self.name)?;
            if dependency.source.as_ref().is_some_and(|source| source.is_same_source(&self.dependent)) {
                let dependency = dependency.name.to_string();
                return Err(CheckpointError::Itself { checkpoint: checkpoint(), dependency });
            }
        }
        Ok(Checkpoint(Arc::new(Inner::new(self))))
    }
}
