//! Checkpoints: whether the sources that a stream depends on are alive and caught up; and if not, that it waits, and
//! is repaired when they are back.
//!
//! ```text
//! dependency's handler ── heartbeat(time) ──┐ with the message's publication      ┌─▶ status, metrics
//!                                           ▼                                     │
//! dependent's handler ── check_pulse(time) ─▶ judge ── down: hold ── notice ──────┤
//!                          Up │ Down, defer   │ back, or late: hold, callback, go back, release
//!                                             ▼
//!                                          record, in the commit of the message
//! ```
//!
//! Invariants: what a message tells counts when it is published, in the step in which its rows and its position move;
//! the record that a commit stores is the judge as of that commit; a dependent is held from the publication that
//! notices an outage, or from the beginning of a repair, to its end; callbacks run under no lock.
mod builder;
mod callback;
mod dependency;
mod error;
mod judge;
mod keeper;
mod marker;
mod metrics;
mod pulse;
mod record;
mod run;
mod telling;
mod window;

#[cfg(test)]
mod tests;

pub use builder::CheckpointBuilder;
pub use callback::Called;
pub use dependency::{Check, Dependency, OnEnd, Unknown};
pub use error::CheckpointError;
pub use marker::Marker;
pub use pulse::{DependencyState, DependencyStatus, Down, Outage, Pulse, Recovery, Status};
pub(crate) use run::{AnyCheckpoint, Mounting};

use crate::{AsyncIterable, OnError, Timestamp, given::unique_id, source::Identity};
use callback::Callback;
use dependency::CheckOf;
use run::State;
use serde::Serialize;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{Notify, watch};

/// Whether the sources that a stream depends on are alive and caught up. (Elsewhere a "checkpoint" is a snapshot of state
/// and offsets; here that is a commit.)
///
/// The handler of a dependency says how far that has come, the handler of the dependent asks before it answers:
///
/// ```
/// use slipstream_core::{Cache, Checkpoint, Dependency, Pulse, Result, Timestamp, replay};
/// use std::time::Duration;
///
/// # fn main() -> Result<()> {
/// let (weather, activity) = (replay("weather.csv").csv::<u32>(), replay("activity.csv").csv::<u32>());
/// let checkpoint = Checkpoint::builder("activity", &activity)
///     .dependency(Dependency::new("weather", &weather).threshold(Duration::from_secs(3600)))
///     .on_downtime(|outage| println!("{} is down: {:?}", outage.dependency, outage.downtime))
///     .build()?;
///
/// // In the handler of the weather:
/// fn handle_weather(checkpoint: &Checkpoint, time: Timestamp) -> Result<()> {
///     Ok(checkpoint.heartbeat(time)?)
/// }
/// // In the handler of the activities, which answers what it knows, or returns the error, to have the message again later:
/// fn handle_activity(checkpoint: &Checkpoint, time: Timestamp) -> Result<()> {
///     if let Pulse::Down(down) = checkpoint.check_pulse(time)? {
///         return Err(down.defer().into());
///     }
///     Ok(())
/// }
/// # Ok(())
/// # }
/// ```
///
/// It is mounted with the flow, [`flow.checkpoint(&checkpoint)`](crate::Flow::checkpoint), whose store keeps its
/// record: after a crash the dependent is where it was, paused too, and is repaired from before the crash. A clone is another handle on
/// the same checkpoint.
pub struct Checkpoint<M = Timestamp>(pub(crate) Arc<Inner<M>>);

impl<M> Clone for Checkpoint<M> {
    fn clone(&self) -> Self {
        Checkpoint(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for Checkpoint<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoint").field("name", &self.0.name).finish_non_exhaustive()
    }
}

/// What the handles on a checkpoint share.
pub(crate) struct Inner<M> {
    id: u64,
    name: Arc<str>,
    dependent: Identity,
    resume_only: bool,
    names: Vec<Arc<str>>,
    dependencies: Vec<OfDependency<M>>,
    window: usize,
    lateness: Duration,
    gather: Duration,
    on_error: OnError,
    on_downtime: Vec<Callback<Outage<M>>>,
    on_recovery: Vec<Callback<Recovery<M>>>,
    state: Mutex<State<M>>,
    /// Something was judged anew.
    changed: Notify,
    /// The same, for those who look at several.
    news: watch::Sender<()>,
}

/// What is asked of a dependency besides what the judge knows.
struct OfDependency<M> {
    source: Option<Identity>,
    unknown: Unknown,
    on_end: OnEnd,
    idle: Option<Duration>,
    downtime_check: Option<CheckOf<M>>,
    recovery_check: Option<CheckOf<M>>,
    threshold: Duration,
}

impl<M> fmt::Debug for Inner<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoint").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<M: Marker> Inner<M> {
    fn new(builder: CheckpointBuilder<M>) -> Self {
        let names = builder.dependencies.iter().map(|dependency| Arc::clone(&dependency.name)).collect();
        let dependencies = builder.dependencies.into_iter().map(|dependency| OfDependency {
            source: dependency.source,
            unknown: dependency.unknown,
            on_end: dependency.on_end,
            idle: dependency.idle,
            downtime_check: dependency.downtime_check,
            recovery_check: dependency.recovery_check,
            threshold: dependency.threshold,
        });
        let mut inner = Inner {
            id: unique_id(),
            name: builder.name,
            dependent: builder.dependent,
            resume_only: builder.resume_only,
            names,
            dependencies: dependencies.collect(),
            window: builder.window,
            lateness: builder.lateness,
            gather: builder.gather,
            on_error: builder.on_error,
            on_downtime: builder.on_downtime,
            on_recovery: builder.on_recovery,
            state: Mutex::new(State::default()),
            changed: Notify::new(),
            news: watch::Sender::new(()),
        };
        let judge = inner.new_judge();
        inner.state.get_mut().unwrap_or_else(PoisonError::into_inner).judge = judge;
        inner
    }
}

impl<M> Inner<M> {
    /// Something was judged anew.
    fn wake(&self) {
        self.changed.notify_waiters();
        self.news.send_replace(());
    }

    // Nothing of the program's runs under it but comparisons of markers.
    fn state(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Checkpoint {
    /// Begins a checkpoint by event times, under a name for its record, for events and for errors. `dependent` is the source that
    /// waits: it is known by its [`identity`](AsyncIterable::identity), which a topic and a file have; any other gets one
    /// by [`named`](crate::named). A function is known as it is.
    pub fn builder<S: AsyncIterable>(name: impl Into<Arc<str>>, dependent: &S) -> CheckpointBuilder {
        CheckpointBuilder::new(name.into(), dependent)
    }
}

impl<M: Marker> Checkpoint<M> {
    /// Begins a checkpoint by other markers than times: `Checkpoint::<u64>::by("orders", &orders)`.
    pub fn by<S: AsyncIterable>(name: impl Into<Arc<str>>, dependent: &S) -> CheckpointBuilder<M> {
        CheckpointBuilder::new(name.into(), dependent)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// In a message of a dependency: that has come as far as `marker`. It counts when the message is published; an older
    /// one than before moves nothing back.
    ///
    /// # Errors
    /// [`CheckpointError::Foreign`] in a message of a source that is no dependency, [`CheckpointError::Which`] outside of any message,
    /// and where the source is several dependencies: there [`heartbeat_of`](Self::heartbeat_of) says which;
    /// [`CheckpointError::NotMounted`] where the flow does not have the checkpoint.
    pub fn heartbeat(&self, marker: impl Into<M>) -> Result<(), CheckpointError> {
        self.0.heartbeat(None, &marker.into())
    }

    /// The same, of the dependency of this name. Outside of any message too: then it counts at once, for partition 0.
    ///
    /// # Errors
    /// As [`heartbeat`](Self::heartbeat); [`CheckpointError::Which`] for a name that is not known.
    pub fn heartbeat_of(&self, dependency: &str, marker: impl Into<M>) -> Result<(), CheckpointError> {
        self.0.heartbeat(Some(dependency), &marker.into())
    }

    /// In a message of the dependent, at `marker`: whether all that it depends on is near enough. The answer goes by where
    /// the dependencies stood when the message began, so what was read before the call is what it is about. When
    /// the message is published the answer counts: where it is `Down`, the dependent is paused until all are back, and
    /// this message is handled again.
    ///
    /// Outside of any message it answers, and nothing is remembered.
    ///
    /// # Errors
    /// [`CheckpointError::Foreign`] in a message of another source, [`CheckpointError::NotMounted`] where the flow does not have
    /// the checkpoint, [`CheckpointError::Unknown`] by [`Unknown::Fail`].
    pub fn check_pulse(&self, marker: impl Into<M>) -> Result<Pulse<M>, CheckpointError> {
        self.0.check_pulse(marker.into(), None)
    }

    /// The same, and remembers `state` beside the positions: after an outage [`Outage::state`] gives the one that was
    /// remembered when the dependency was last heard of.
    ///
    /// # Errors
    /// As [`check_pulse`](Self::check_pulse), and [`CheckpointError::State`] where it cannot be written.
    pub fn check_pulse_with(
        &self,
        marker: impl Into<M>,
        state: &impl Serialize,
    ) -> Result<Pulse<M>, CheckpointError> {
        let state = rmp_serde::to_vec_named(state).map_err(|error| CheckpointError::State {
            checkpoint: self.0.name.to_string(),
            what: "written",
            said: error.to_string(),
        })?;
        self.0.check_pulse(marker.into(), Some(state))
    }

    /// How it stands, by what is published; without a running flow as the last one has left it.
    #[must_use]
    pub fn status(&self) -> Status<M> {
        self.0.status()
    }
}
