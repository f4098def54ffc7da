//! The judgement of a checkpoint, without time, tasks or a store: what is down, what is late, what has to be handled
//! again.
//!
//! ```text
//!               a pulse too far ahead                  each marker at or past the dependent's
//!     up ─────────────────────────────▶ down ─────────────────────────────▶ up, and a repair is due
//!      │                                                                          ▲        │
//!      └── a heartbeat at or before a handled message, late enough ───────────────┘        ▼
//!                                                                    go back: per partition the first message at
//!                                                                    or after the smallest late update, or the
//!                                                                    first that was answered `Down`
//! ```
//!
//! Invariants: markers never fall; a message is in the open window as long as an update can still change its answer,
//! and while a repair waits nothing leaves it; what was published between a message's beginning and its end is late
//! for it, if it is at or before its marker.
use super::{marker::Marker, window::Window};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Dependencies by their numbers, as bits.
pub(super) type Mask = u64;
/// As many as there are bits.
pub(super) const MOST_DEPENDENCIES: usize = 64;

/// What a checkpoint is told of a dependency, once.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) threshold: Duration,
    /// It says itself when it has recovered: then nobody else does.
    pub(super) recovers_by_check: bool,
}

/// One partition of a dependency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part<M> {
    /// Its highest heartbeat.
    pub(super) beat: Option<M>,
    /// It has ended, or is idle at its end.
    #[serde(skip)]
    pub(super) is_quiet: bool,
    /// It is read here.
    #[serde(skip, default = "yes")]
    pub(super) is_ours: bool,
}

fn yes() -> bool {
    true
}

impl<M> Default for Part<M> {
    fn default() -> Self {
        Part { beat: None, is_quiet: false, is_ours: true }
    }
}

/// How far a dependency has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark<M> {
    /// No heartbeat yet.
    Unknown,
    At(M),
    /// All of it has ended or is idle.
    AheadOfAll,
}

/// An outage that has been noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outage<M> {
    /// The number of the dependency; its name is stored.
    #[serde(skip)]
    pub(super) dependency: usize,
    /// The pulse that noticed it.
    pub(super) pulse: M,
    /// Where the dependency stood; `None` where it had not come yet.
    pub(super) marker: Option<M>,
    /// By how much.
    pub(super) downtime: Option<Duration>,
    /// When it was noticed, in microseconds of the clock.
    pub(super) at_micros: i64,
    /// It was told of in this process.
    #[serde(skip)]
    pub(super) is_told: bool,
    /// What the dependent remembered at the last heartbeat.
    pub(super) state: Option<Vec<u8>>,
}

#[derive(Debug, Clone)]
pub(super) struct Dep<M> {
    pub(super) rules: Rules,
    pub(super) parts: BTreeMap<i32, Part<M>>,
    pub(super) down: Option<Outage<M>>,
    /// What the dependent remembered, at the last heartbeat.
    pub(super) state: Option<Vec<u8>>,
    /// Updates that were late and are left as they are, since the threshold allows it.
    pub(super) tolerated: u64,
    /// Updates that were late for messages that have left the window.
    pub(super) too_late: u64,
}

impl<M: Marker> Dep<M> {
    pub(super) fn new(rules: Rules) -> Self {
        Dep { rules, parts: BTreeMap::new(), down: None, state: None, tolerated: 0, too_late: 0 }
    }

    /// The lowest of its partitions that count: of those without a heartbeat none does once another has one, unless it
    /// has ended or is idle.
    pub(super) fn mark(&self) -> Mark<M> {
        let ours = || self.parts.values().filter(|part| part.is_ours);
        let lowest = ours().filter(|part| !part.is_quiet).filter_map(|part| part.beat.as_ref()).min();
        let has_come = || ours().any(|part| part.beat.is_some());
        match lowest {
            Some(lowest) => Mark::At(lowest.clone()),
            None if ours().any(|part| part.is_quiet) && (has_come() || ours().all(|part| part.is_quiet)) => {
                Mark::AheadOfAll
            }
            None => Mark::Unknown,
        }
    }
}

/// What a message in hand has to know of its beginning.
#[derive(Debug, Clone)]
struct Hand<M> {
    is_begun: bool,
    marks: Vec<Mark<M>>,
    /// Of the heartbeats since then the lowest of each dependency: while nothing was down, and while anything was.
    beats: Vec<[Option<M>; 2]>,
}

/// What came of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    InTime,
    /// At or before a message that was answered, and so little that the answer stands.
    Tolerated,
    /// A repair is due for it.
    Late,
    /// A message that it would change has left the window.
    TooLate,
}

#[derive(Debug)]
pub(super) struct Judge<M> {
    pub(super) deps: Vec<Dep<M>>,
    pub(super) first_pulse: Option<M>,
    /// The highest pulse.
    pub(super) marker: Option<M>,
    pub(super) open: BTreeMap<i32, Window<M>>,
    /// The smallest late update that waits for a repair.
    pub(super) late_from: Option<M>,
    /// The first offsets that were answered `Down`.
    pub(super) told: BTreeMap<i32, i64>,
    /// Outages that are over and not yet repaired.
    pub(super) recovered: Vec<Outage<M>>,
    /// The highest marker that has left the window.
    pub(super) dropped: Option<M>,
    /// What the dependent remembers, with its last pulse.
    pub(super) state: Option<Vec<u8>>,
    cap: usize,
    lateness: Duration,
    hands: Vec<Hand<M>>,
}

/// A pulse of a message that is published.
#[derive(Debug, Clone)]
pub(super) struct Pulse<M> {
    pub(super) marker: M,
    /// The dependencies that it found behind.
    pub(super) behind: Mask,
    /// It was answered `Down`.
    pub(super) is_down: bool,
    pub(super) state: Option<Vec<u8>>,
}

impl<M: Marker> Judge<M> {
    pub(super) fn new(rules: impl IntoIterator<Item = Rules>, cap: usize, lateness: Duration) -> Self {
        Judge {
            deps: rules.into_iter().map(Dep::new).collect(),
            first_pulse: None,
            marker: None,
            open: BTreeMap::new(),
            late_from: None,
            told: BTreeMap::new(),
            recovered: Vec::new(),
            dropped: None,
            state: None,
            cap,
            lateness,
            hands: Vec::new(),
        }
    }

    pub(super) fn is_down(&self) -> bool {
        self.deps.iter().any(|dep| dep.down.is_some())
    }

    /// Whether something waits for a repair.
    pub(super) fn is_pending(&self) -> bool {
        self.late_from.is_some() || !self.told.is_empty()
    }

    /// Whether a repair may begin.
    pub(super) fn is_due(&self) -> bool {
        self.is_pending() && !self.is_down()
    }

    /// A worker takes a message of the dependent into its hand.
    pub(super) fn begin(&mut self, worker: usize) {
        let Judge { deps, hands, .. } = self;
        if hands.len() <= worker {
            let hand = Hand { is_begun: false, marks: Vec::new(), beats: Vec::new() };
            hands.resize(worker + 1, hand);
        }
        if let Some(hand) = hands.get_mut(worker) {
            hand.is_begun = true;
            hand.marks.clear();
            hand.marks.extend(deps.iter().map(Dep::mark));
            hand.beats.clear();
            hand.beats.resize(deps.len(), [None, None]);
        }
    }

    /// It has none any more.
    pub(super) fn done(&mut self, worker: usize) {
        if let Some(hand) = self.hands.get_mut(worker) {
            hand.is_begun = false;
        }
    }

    /// Where a dependency stood when the message of this worker began; where it stands now without one.
    pub(super) fn mark_for(&self, worker: Option<usize>, dependency: usize) -> Mark<M> {
        let hand = worker.and_then(|worker| self.hands.get(worker)).filter(|hand| hand.is_begun);
        match hand.and_then(|hand| hand.marks.get(dependency)) {
            Some(mark) => mark.clone(),
            None => self.deps.get(dependency).map_or(Mark::Unknown, Dep::mark),
        }
    }

    /// What stands in for the marker of a dependency that has sent nothing yet.
    pub(super) fn stand_in<'a>(&'a self, pulse: &'a M) -> &'a M {
        self.first_pulse.as_ref().unwrap_or(pulse)
    }

    /// Whether a pulse is too far ahead of a dependency that stands at `marker`.
    pub(super) fn is_behind(&self, dependency: usize, marker: &M, pulse: &M) -> bool {
        let threshold = self.deps.get(dependency).map_or(Duration::ZERO, |dep| dep.rules.threshold);
        pulse > marker && (threshold.is_zero() || pulse.since(marker).is_some_and(|ahead| ahead > threshold))
    }

    /// Whether an update calls for a repair of a message at `marker`.
    fn is_late(&self, dependency: usize, update: &M, marker: &M, is_down: bool) -> bool {
        let threshold = self.deps.get(dependency).map_or(Duration::ZERO, |dep| dep.rules.threshold);
        let reaches =
            || threshold.is_zero() || marker.since(update).is_some_and(|behind| behind >= threshold);
        marker >= update && (is_down || reaches())
    }

    fn late(&mut self, update: &M) {
        if self.late_from.as_ref().is_none_or(|known| update < known) {
            self.late_from = Some(update.clone());
        }
    }

    /// An update of a dependency is published.
    pub(super) fn heartbeat(&mut self, dependency: usize, partition: i32, marker: &M) -> Beat {
        let is_down = self.is_down();
        let highest = self.open.values().filter_map(Window::highest).max().cloned();
        let late = |judge: &Self, against: &Option<M>| {
            against.as_ref().is_some_and(|against| judge.is_late(dependency, marker, against, is_down))
        };
        let is_late = late(self, &highest);
        let is_too_late = late(self, &self.dropped);
        if is_late {
            self.late(marker);
        }
        for hand in self.hands.iter_mut().filter(|hand| hand.is_begun) {
            if let Some(lowest) =
                hand.beats.get_mut(dependency).and_then(|beats| beats.get_mut(usize::from(is_down)))
                && lowest.as_ref().is_none_or(|lowest| marker < lowest)
            {
                *lowest = Some(marker.clone());
            }
        }
        let state = self.state.clone();
        let beat = match (is_too_late, is_late) {
            (true, _) => Beat::TooLate,
            (_, true) => Beat::Late,
            _ if highest.is_some_and(|highest| highest >= *marker) => Beat::Tolerated,
            _ => Beat::InTime,
        };
        if let Some(dep) = self.deps.get_mut(dependency) {
            let part = dep.parts.entry(partition).or_default();
            part.is_quiet = false;
            if part.beat.as_ref().is_none_or(|known| marker > known) {
                part.beat = Some(marker.clone());
            }
            if dep.down.is_none() {
                dep.state = state;
            }
            match beat {
                Beat::TooLate => dep.too_late += 1,
                Beat::Tolerated => dep.tolerated += 1,
                Beat::Late | Beat::InTime => {}
            }
        }
        self.settle();
        beat
    }

    /// A partition has ended, or is idle at its end. Answers whether that is new.
    pub(super) fn fall_quiet(&mut self, dependency: usize, partition: i32) -> bool {
        let Some(dep) = self.deps.get_mut(dependency) else { return false };
        let part = dep.parts.entry(partition).or_default();
        if std::mem::replace(&mut part.is_quiet, true) {
            return false;
        }
        self.settle();
        true
    }

    /// All partitions of a dependency have ended.
    pub(super) fn end(&mut self, dependency: usize) {
        if let Some(dep) = self.deps.get_mut(dependency) {
            if dep.parts.is_empty() {
                dep.parts.insert(0, Part::default());
            }
            dep.parts.values_mut().for_each(|part| part.is_quiet = true);
        }
        self.settle();
    }

    /// A dependency has this partition, of which nothing may have come yet.
    pub(super) fn know(&mut self, dependency: usize, partition: i32) {
        if let Some(dep) = self.deps.get_mut(dependency) {
            dep.parts.entry(partition).or_default();
        }
    }

    /// From now on a dependency is read here in these partitions, and in no others.
    pub(super) fn assign(&mut self, dependency: usize, ours: &BTreeSet<i32>) {
        if let Some(dep) = self.deps.get_mut(dependency) {
            for partition in ours {
                dep.parts.entry(*partition).or_default();
            }
            for (partition, part) in &mut dep.parts {
                let is_ours = ours.contains(partition);
                part.is_quiet &= part.is_ours && is_ours;
                part.is_ours = is_ours;
            }
        }
        self.settle();
    }

    /// The other partitions of the dependent are another's: what is to be repaired in them is, too.
    pub(super) fn keep_only(&mut self, ours: &BTreeSet<i32>) {
        self.open.retain(|partition, _| ours.contains(partition));
        self.told.retain(|partition, _| ours.contains(partition));
        self.settle();
    }

    /// A message of the dependent is published by this worker.
    pub(super) fn publish(
        &mut self,
        worker: usize,
        partition: i32,
        offset: i64,
        pulse: Pulse<M>,
        now_micros: i64,
    ) {
        let Pulse { marker, behind, is_down, state } = pulse;
        if self.first_pulse.is_none() {
            self.first_pulse = Some(marker.clone());
        }
        if self.marker.as_ref().is_none_or(|known| marker > *known) {
            self.marker = Some(marker.clone());
        }
        self.open.entry(partition).or_default().add(&marker, offset, self.cap);
        if let Some(hand) = self.hands.get(worker).filter(|hand| hand.is_begun) {
            let late = hand.beats.iter().enumerate().flat_map(|(dependency, beats)| {
                let beats =
                    beats.iter().enumerate().filter_map(|(down, beat)| Some((down == 1, beat.as_ref()?)));
                beats.map(move |(is_down, beat)| (dependency, is_down, beat))
            });
            let late =
                late.filter(|(dependency, is_down, beat)| self.is_late(*dependency, beat, &marker, *is_down));
            if let Some(lowest) = late.map(|(.., beat)| beat).min().cloned() {
                self.late(&lowest);
            }
        }
        if is_down {
            for dependency in (0..self.deps.len()).filter(|dependency| behind & (1 << dependency) != 0) {
                let stood = match self.mark_for(Some(worker), dependency) {
                    Mark::At(stood) => Some(stood),
                    _ => None,
                };
                let from = stood.as_ref().unwrap_or(self.stand_in(&marker));
                let downtime = marker.since(from);
                if let Some(dep) = self.deps.get_mut(dependency)
                    && dep.down.is_none()
                {
                    dep.down = Some(Outage {
                        dependency,
                        pulse: marker.clone(),
                        marker: stood,
                        downtime,
                        at_micros: now_micros,
                        is_told: false,
                        state: dep.state.clone(),
                    });
                }
            }
            let told = self.told.entry(partition).or_insert(offset);
            *told = offset.min(*told);
        }
        if state.is_some() {
            self.state = state;
        }
        self.settle();
    }

    /// A check of its own has found a dependency recovered.
    pub(super) fn recover(&mut self, dependency: usize) {
        if let Some(outage) = self.deps.get_mut(dependency).and_then(|dep| dep.down.take()) {
            self.recovered.push(outage);
        }
        self.settle_window();
    }

    /// Whether a dependency has reached the dependent.
    pub(super) fn has_reached(&self, dependency: usize) -> bool {
        let Some(dep) = self.deps.get(dependency) else { return true };
        match dep.mark() {
            Mark::AheadOfAll => true,
            Mark::At(mark) => self.marker.as_ref().is_none_or(|marker| mark >= *marker),
            Mark::Unknown => match (&self.first_pulse, &self.marker) {
                (Some(first), Some(marker)) => first >= marker,
                _ => true,
            },
        }
    }

    /// Judges anew.
    pub(super) fn settle(&mut self) {
        for dependency in 0..self.deps.len() {
            let is_judged = self
                .deps
                .get(dependency)
                .is_some_and(|dep| dep.down.is_some() && !dep.rules.recovers_by_check);
            if is_judged
                && self.has_reached(dependency)
                && let Some(outage) = self.deps.get_mut(dependency).and_then(|dep| dep.down.take())
            {
                self.recovered.push(outage);
            }
        }
        self.settle_window();
    }

    fn settle_window(&mut self) {
        if !self.is_down() && !self.is_pending() {
            self.drop_closed();
        }
    }

    /// The lowest marker over all partitions of all dependencies, less the lateness; `None` before each has one.
    fn edge(&self) -> Option<M> {
        let mut lowest: Option<&M> = None;
        for dep in &self.deps {
            let mut any = false;
            for part in dep.parts.values().filter(|part| part.is_ours) {
                let beat = part.beat.as_ref()?;
                lowest = Some(lowest.map_or(beat, |lowest| lowest.min(beat)));
                any = true;
            }
            if !any {
                return None;
            }
        }
        Some(lowest?.before(self.lateness))
    }

    fn drop_closed(&mut self) {
        let Some(edge) = self.edge() else { return };
        for window in self.open.values_mut() {
            if let Some(dropped) = window.drop_below(&edge)
                && self.dropped.as_ref().is_none_or(|known| dropped > *known)
            {
                self.dropped = Some(dropped);
            }
        }
    }

    /// Where each partition goes back to.
    pub(super) fn back(&self) -> BTreeMap<i32, i64> {
        let partitions: BTreeSet<i32> = self.open.keys().chain(self.told.keys()).copied().collect();
        let late = |partition: &i32| self.open.get(partition)?.first_at_or_after(self.late_from.as_ref()?);
        let first = |partition: i32| {
            let first = [late(&partition), self.told.get(&partition).copied()].into_iter().flatten().min();
            first.map(|first| (partition, first))
        };
        partitions.into_iter().filter_map(first).collect()
    }

    /// The repair is done: these partitions go back. Answers the outages that it has repaired.
    pub(super) fn repaired(&mut self, back: &BTreeMap<i32, i64>) -> Vec<Outage<M>> {
        for (partition, offset) in back {
            if let Some(window) = self.open.get_mut(partition) {
                window.forget_from(*offset);
            }
        }
        self.late_from = None;
        self.told.clear();
        let recovered = std::mem::take(&mut self.recovered);
        self.settle();
        recovered
    }
}
