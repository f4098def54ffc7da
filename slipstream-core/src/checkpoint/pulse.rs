//! What a checkpoint answers and tells: pulses, outages, repairs, its status.
use super::{error::CheckpointError, judge, marker::Marker};
use crate::{Timestamp, watch::Deferred};
use serde::de::DeserializeOwned;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// What [`check_pulse`](crate::Checkpoint::check_pulse) answers.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "where it is `Down`, the answer that the handler can give now may be wrong"]
pub enum Pulse<M = Timestamp> {
    /// All dependencies are alive and near enough.
    Up,
    /// One is down: emit what is known, and a revision will follow, or have the message again later.
    Down(Down<M>),
}

impl<M> Pulse<M> {
    /// Whether a dependency is down.
    #[must_use]
    pub fn is_down(&self) -> bool {
        matches!(self, Pulse::Down(_))
    }

    /// Which one is down, if any.
    #[must_use]
    pub fn down(self) -> Option<Down<M>> {
        match self {
            Pulse::Up => None,
            Pulse::Down(down) => Some(down),
        }
    }

    /// Where a dependency is down, the message is to come again when it is back:
    /// `checkpoint.check_pulse(time)?.or_defer()?`.
    ///
    /// # Errors
    /// [`Deferred`], for the handler to return.
    pub fn or_defer(self) -> Result<(), Deferred> {
        self.down().map_or(Ok(()), |down| Err(down.defer()))
    }
}

/// A dependency that is down, as a message finds it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Down<M = Timestamp> {
    /// Its name.
    pub dependency: Arc<str>,
    /// How far it is behind the pulse; `None` where markers are no times.
    pub downtime: Option<Duration>,
    /// Where it stands; `None` before its first heartbeat.
    pub marker: Option<M>,
    pub(super) checkpoint: Arc<str>,
    pub(super) can_defer: bool,
}

impl<M> Down<M> {
    /// An error for the handler to return: what it has written and given out for this message is dropped, and the message
    /// comes again when all that it depends on is back. To nobody it counts as a failure.
    ///
    /// A handler of a channel, of a cache's changes, or of a source that only [resumes](crate::CheckpointBuilder::resume_only)
    /// cannot answer so: there it is an error.
    #[must_use]
    pub fn defer(&self) -> Deferred {
        Deferred { checkpoint: Arc::clone(&self.checkpoint), is_possible: self.can_defer }
    }
}

/// An outage of a dependency: what [`on_downtime`](crate::CheckpointBuilder::on_downtime) is told.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outage<M = Timestamp> {
    /// The checkpoint's name.
    pub checkpoint: Arc<str>,
    /// The dependency's name.
    pub dependency: Arc<str>,
    /// Where it stood when it was noticed; `None` before its first heartbeat.
    pub marker: Option<M>,
    /// The pulse that has noticed it.
    pub pulse: M,
    /// How far the one was behind the other; `None` where markers are no times.
    pub downtime: Option<Duration>,
    /// When it was noticed, by the clock.
    pub noticed: Timestamp,
    pub(super) state: Option<Vec<u8>>,
}

impl<M: Marker> Outage<M> {
    pub(super) fn new(checkpoint: &Arc<str>, dependency: &Arc<str>, outage: &judge::Outage<M>) -> Self {
        Outage {
            checkpoint: Arc::clone(checkpoint),
            dependency: Arc::clone(dependency),
            marker: outage.marker.clone(),
            pulse: outage.pulse.clone(),
            downtime: outage.downtime,
            noticed: Timestamp::from_micros(outage.at_micros),
            state: outage.state.clone(),
        }
    }

    /// What the dependent had remembered by [`check_pulse_with`](crate::Checkpoint::check_pulse_with) when the dependency's last
    /// heartbeat came; `None` if nothing.
    ///
    /// # Errors
    /// [`CheckpointError::State`] where it is no `S`.
    pub fn state<S: DeserializeOwned>(&self) -> Result<Option<S>, CheckpointError> {
        let read = self.state.as_deref().map(rmp_serde::from_slice).transpose();
        read.map_err(|error| CheckpointError::State {
            checkpoint: self.checkpoint.to_string(),
            what: "read",
            said: error.to_string(),
        })
    }
}

/// A repair that is about to begin: what [`on_recovery`](crate::CheckpointBuilder::on_recovery) is told.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Recovery<M = Timestamp> {
    /// The checkpoint's name.
    pub checkpoint: Arc<str>,
    /// The outages that are over; none where updates were late without one.
    pub outages: Vec<Outage<M>>,
    /// The earliest late update; `None` where none was late.
    pub late_from: Option<M>,
    /// From which offset on each partition of the dependent is handled again, as far as it is known before the callback is done.
    /// Empty where it is only resumed.
    pub offsets: BTreeMap<i32, i64>,
}

/// How a checkpoint stands.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Status<M = Timestamp> {
    /// The dependent waits: something is down, or is being repaired.
    pub is_paused: bool,
    /// Late updates, or messages that were answered `Down`, wait for a repair.
    pub is_repair_due: bool,
    /// The highest pulse of the dependent.
    pub marker: Option<M>,
    /// How many messages the open window keeps.
    pub window: usize,
    /// How often it has had messages handled again, since the flow began.
    pub repairs: u64,
    /// The dependencies, in the order given.
    pub dependencies: Vec<DependencyStatus<M>>,
}

/// How a dependency stands.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DependencyStatus<M = Timestamp> {
    /// Its name.
    pub name: Arc<str>,
    /// The lowest marker of its partitions; `None` before its first heartbeat, and where all of it has ended or is idle.
    pub marker: Option<M>,
    /// How far the dependent is ahead of it; zero where it is not, `None` where that is not known.
    pub lag: Option<Duration>,
    /// Whether it is alive.
    pub state: DependencyState,
    /// Since when it is down, by the clock.
    pub down_since: Option<Timestamp>,
    /// How many of its updates were late and left answers standing, since the flow began.
    pub tolerated: u64,
    /// How many of its updates came when the messages that they would change had left the window, since the flow began:
    /// later than the allowed lateness.
    pub too_late: u64,
}

/// Whether a dependency is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DependencyState {
    /// It has sent nothing yet.
    Unknown,
    /// It is near enough.
    Up,
    /// An outage was noticed, and is not over.
    Down,
    /// All of it has ended, or is idle.
    Quiet,
}
