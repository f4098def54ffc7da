//! A source that a checkpoint watches, and when it counts as down.
use super::{error::CheckpointError, marker::Marker};
use crate::{AsyncIterable, Timestamp, opaque::opaque_debug, source::Identity};
use std::{sync::Arc, time::Duration};

/// What a checkpoint is told before a dependency has sent its first heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Unknown {
    /// The first pulse stands in for its marker: it is down when a pulse is more than the threshold ahead of the
    /// first one. So it is unless told otherwise.
    #[default]
    FirstPulse,
    /// It is not down, however long it takes.
    Ignore,
    /// A pulse before its first heartbeat is an error of the handler.
    Fail,
}

/// What the end of a dependency means to a dependent that waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnEnd {
    /// It has given all that there is: it counts as ahead of everything. So it is unless told otherwise.
    #[default]
    CaughtUp,
    /// One that ends while it is down ends the flow with an error.
    Fail,
}

/// What a check of a [`Dependency`] is asked about.
#[derive(Debug)]
#[non_exhaustive]
pub struct Check<'a, M = Timestamp> {
    /// The dependency's name.
    pub dependency: &'a str,
    /// Where it stands: the lowest of its partitions' markers; `None` before its first heartbeat. When a message asks, as it
    /// stood when the message began.
    pub marker: Option<&'a M>,
    /// The pulse that is judged; of a recovery the highest pulse of the dependent.
    pub pulse: &'a M,
}

pub(super) type CheckOf<M> = Arc<dyn Fn(&Check<'_, M>) -> bool + Send + Sync>;

/// A source that the dependent of a checkpoint needs: without its messages answers are wrong.
///
/// ```
/// use slipstream_core::{Dependency, replay};
/// use std::time::Duration;
///
/// let weather = replay("weather.csv");
/// let dependency = Dependency::new("weather", &weather).threshold(Duration::from_secs(3600));
/// # let _: Dependency = dependency;
/// ```
#[must_use = "a dependency is part of a checkpoint: `.dependency(…)`"]
pub struct Dependency<M = Timestamp> {
    pub(super) name: Arc<str>,
    /// `None` where its heartbeats come from outside of the flow.
    pub(super) source: Option<Identity>,
    pub(super) threshold: Duration,
    pub(super) unknown: Unknown,
    pub(super) on_end: OnEnd,
    pub(super) idle: Option<Duration>,
    pub(super) downtime_check: Option<CheckOf<M>>,
    pub(super) recovery_check: Option<CheckOf<M>>,
}

opaque_debug! { Dependency<M>; }

impl<M: Marker> Dependency<M> {
    /// The source `source`, under a name for its record, for events and for errors.
    ///
    /// A source is known by its [`identity`](AsyncIterable::identity), which a topic and a file have; any other gets one by
    /// [`named`](crate::named). A function is known as it is.
    pub fn new<S: AsyncIterable>(name: impl Into<Arc<str>>, source: &S) -> Self {
        Dependency { source: Some(Identity::of_value(source)), ..Self::outside(name) }
    }

    /// One that is no source of the flow: its heartbeats come by
    /// [`heartbeat_of`](crate::Checkpoint::heartbeat_of) from wherever the program hears of it.
    pub fn outside(name: impl Into<Arc<str>>) -> Self {
        Dependency {
            name: name.into(),
            source: None,
            threshold: Duration::ZERO,
            unknown: Unknown::default(),
            on_end: OnEnd::default(),
            idle: None,
            downtime_check: None,
            recovery_check: None,
        }
    }

    /// How late an update may be and leave an answer standing: a pulse further ahead of the dependency than this
    /// finds it down, and an update that comes this late, or later, has its messages handled again. Zero without
    /// this: then no update may be late, and the last answer for each message is the one that all of the data give. Two streams that
    /// depend on each other need a positive one: what comes again of the one would be late for the other, without end.
    pub fn threshold(mut self, threshold: Duration) -> Self {
        self.threshold = threshold;
        self
    }

    /// What holds before its first heartbeat.
    pub fn unknown(mut self, unknown: Unknown) -> Self {
        self.unknown = unknown;
        self
    }

    /// What its end means to a dependent that waits for it.
    pub fn on_end(mut self, on_end: OnEnd) -> Self {
        self.on_end = on_end;
        self
    }

    /// A partition from which nothing has come for so long, and of which nothing is left to read, does not hold the
    /// dependent up: it counts as ahead of everything until its next heartbeat. Without this only an end does so.
    ///
    /// A broker that cannot be reached looks the same: choose it longer than that may take to be noticed.
    pub fn idle(mut self, after: Duration) -> Self {
        self.idle = Some(after);
        self
    }

    /// Says in place of the threshold whether a pulse finds it down. It is called in the handler that calls
    /// [`check_pulse`](crate::Checkpoint::check_pulse), and does not wait.
    pub fn downtime_check(mut self, check: impl Fn(&Check<'_, M>) -> bool + Send + Sync + 'static) -> Self {
        self.downtime_check = Some(Arc::new(check));
        self
    }

    /// Says in place of the markers whether it has recovered. While it is down it is called after each publication that
    /// the checkpoint hears of, and each second; it does not wait. A dependency that has ended is not asked about.
    pub fn recovery_check(mut self, check: impl Fn(&Check<'_, M>) -> bool + Send + Sync + 'static) -> Self {
        self.recovery_check = Some(Arc::new(check));
        self
    }

    pub(super) fn validate(&self, checkpoint: &str) -> Result<(), CheckpointError> {
        let name = || self.name.to_string();
        if self.source == Some(Identity::Alone) {
            return Err(CheckpointError::Unnamed { checkpoint: checkpoint.to_owned(), source_of: name() });
        }
        if !M::HAS_DISTANCE && !self.threshold.is_zero() {
            return Err(CheckpointError::Threshold { checkpoint: checkpoint.to_owned(), dependency: name() });
        }
        Ok(())
    }
}
