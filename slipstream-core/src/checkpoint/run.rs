//! A checkpoint in a flow that runs: its memory, and what the flow and its sources know of it.
//!
//! Invariants: the memory changes under its own lock, and where a message tells, under the store's around that; the
//! dependent is held under the same lock as what it is held for is remembered.
use super::{
    CheckpointError, Inner, OnEnd,
    judge::{Beat, Judge, Mask, Rules},
    keeper::keep,
    marker::Marker,
    record::Record,
    telling::Telling,
};
use crate::{
    Timestamp,
    source::{Control, Identity},
    stop::Stop,
    watch::{Kind, Moves, Observer, Recorded, Teller, Watch},
};
use futures::future::BoxFuture;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// What the handles on a checkpoint, and the flow that runs with it, share and change.
pub(super) struct State<M> {
    pub(super) judge: Judge<M>,
    /// Since the last commit took the record.
    pub(super) is_changed: bool,
    /// While a flow runs with it.
    pub(super) runs: Option<Runs>,
    /// The handlers of the dependent that check, by their numbers.
    pub(super) checkers: Vec<bool>,
    /// The dependencies that have come to their ends.
    pub(super) ended: Mask,
    /// Their controls, and the states of these at the end: whoever is held or sought since has not ended.
    ends: BTreeMap<usize, (Control, u64)>,
    /// The checkpoint holds the dependent.
    pub(super) is_held: bool,
    /// The control's state when it was held: what the program has sought since is not handled yet.
    pub(super) held_at: u64,
    pub(super) is_repairing: bool,
    pub(super) repairs: u64,
    /// A repair without an outage waits until then.
    pub(super) gathers_until: Option<Instant>,
    workers: usize,
    /// The number of the flow that runs, or has run last: what a task of one that was dropped still does concerns nobody.
    pub(super) run: u64,
    /// Why the flow cannot go on.
    pub(super) failed: Option<CheckpointError>,
    /// When a partition of a dependency that may be idle was last heard of.
    heard: BTreeMap<(usize, i32), Instant>,
}

impl<M: Marker> Default for State<M> {
    fn default() -> Self {
        State {
            judge: Judge::new([], 1, Duration::ZERO),
            is_changed: false,
            runs: None,
            checkers: Vec::new(),
            ended: 0,
            ends: BTreeMap::new(),
            is_held: false,
            held_at: 0,
            is_repairing: false,
            repairs: 0,
            gathers_until: None,
            workers: 0,
            run: 0,
            failed: None,
            heard: BTreeMap::new(),
        }
    }
}

impl<M: Marker> State<M> {
    /// A dependency is alive. One that has ended stays so: what its pipes had left does not wake it.
    pub(super) fn heartbeat(&mut self, dependency: usize, partition: i32, marker: &M) -> Beat {
        let beat = self.judge.heartbeat(dependency, partition, marker);
        if self.ended & (1 << dependency) != 0 {
            self.judge.end(dependency);
        }
        beat
    }
}

/// The flow that runs with it.
#[derive(Clone)]
pub(super) struct Runs {
    pub(super) dependent: Arc<Watch>,
    pub(super) control: Control,
    pub(super) moves: Weak<dyn Moves>,
}

/// What a flow gives a checkpoint that it begins with.
pub(crate) struct Mounting {
    /// What its store has of it.
    pub(crate) record: Option<Vec<u8>>,
    pub(crate) dependent: Arc<Watch>,
    pub(crate) control: Control,
    pub(crate) moves: Weak<dyn Moves>,
}

/// A checkpoint whose markers' type is forgotten.
pub(crate) trait AnyCheckpoint: Recorded {
    fn name(&self) -> &Arc<str>;
    fn dependent(&self) -> &Identity;
    /// Its dependencies: their names, and those of them that are sources.
    fn dependencies(&self) -> Vec<(Arc<str>, Option<&Identity>)>;
    /// Whether the dependent is never sought by it.
    fn is_resume_only(&self) -> bool;
    /// A flow begins with it.
    fn begin(&self, mounting: Mounting) -> Result<(), CheckpointError>;
    /// The flow has ended.
    fn end(&self);
    /// As a source sees it, which is its dependent, or these of its dependencies, and is held by `control`.
    fn observe(
        self: Arc<Self>,
        control: Control,
        is_dependent: bool,
        dependencies: Vec<usize>,
    ) -> Arc<dyn Observer>;
    /// Notices, callbacks and repairs, until the flow stops.
    fn keep(
        self: Arc<Self>,
        moves: Arc<dyn Moves>,
        stop: Arc<Stop>,
    ) -> BoxFuture<'static, Result<(), CheckpointError>>;
}

impl<M: Marker> AnyCheckpoint for Inner<M> {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn dependent(&self) -> &Identity {
        &self.dependent
    }

    fn dependencies(&self) -> Vec<(Arc<str>, Option<&Identity>)> {
        let sources = self.dependencies.iter().map(|dependency| dependency.source.as_ref());
        self.names.iter().cloned().zip(sources).collect()
    }

    fn is_resume_only(&self) -> bool {
        self.resume_only
    }

    fn begin(&self, mounting: Mounting) -> Result<(), CheckpointError> {
        let Mounting { record, dependent, control, moves } = mounting;
        let mut state = self.state();
        if state.runs.is_some() {
            return Err(self.mount("is part of another flow that runs; a checkpoint serves one at a time"));
        }
        let mut judge = self.new_judge();
        let mut checkers = BTreeSet::new();
        if let Some(record) = record {
            let record = Record::read(&record).map_err(|said| {
                self.mount(&format!("has a record in the store that cannot be read: {said}"))
            })?;
            checkers = record.resume(&mut judge, &self.names);
        }
        let checkers = dependent.handlers.iter().map(|handler| checkers.contains(&**handler)).collect();
        let is_held = judge.is_down() || judge.is_pending();
        // Before what was sought while nobody read it.
        let held_at = control.sought_before_the_opening();
        if is_held {
            control.hold(&self.name);
        }
        let now = Instant::now();
        let may_idle =
            |dependency: &usize| self.dependencies.get(*dependency).is_some_and(|of| of.idle.is_some());
        let parts = (0..)
            .zip(&judge.deps)
            .flat_map(|(number, dep)| dep.parts.keys().map(move |part| (number, *part)));
        let heard = parts.filter(|(dependency, _)| may_idle(dependency)).map(|part| (part, now)).collect();
        let runs = Some(Runs { dependent, control, moves });
        let run = state.run + 1;
        *state = State { judge, runs, checkers, is_held, held_at, heard, run, ..State::default() };
        Ok(())
    }

    fn end(&self) {
        let mut state = self.state();
        if let Some(runs) = state.runs.take() {
            runs.control.forget_back();
            runs.control.release(&self.name);
        }
        (state.is_held, state.is_repairing) = (false, false);
        drop(state);
        self.wake();
    }

    fn observe(
        self: Arc<Self>,
        control: Control,
        is_dependent: bool,
        dependencies: Vec<usize>,
    ) -> Arc<dyn Observer> {
        // The one that is about to begin.
        let run = self.state().run + 1;
        Arc::new(Observing { checkpoint: self, control, run, is_dependent, dependencies })
    }

    fn keep(
        self: Arc<Self>,
        moves: Arc<dyn Moves>,
        stop: Arc<Stop>,
    ) -> BoxFuture<'static, Result<(), CheckpointError>> {
        Box::pin(keep(self, moves, stop))
    }
}

impl<M: Marker> Inner<M> {
    pub(super) fn new_judge(&self) -> Judge<M> {
        let rules = self.dependencies.iter().map(|dependency| Rules {
            threshold: dependency.threshold,
            recovers_by_check: dependency.recovery_check.is_some(),
        });
        Judge::new(rules, self.window, self.lateness)
    }

    fn mount(&self, said: &str) -> CheckpointError {
        CheckpointError::Refused { checkpoint: self.name.to_string(), said: said.to_owned() }
    }

    /// Changes the memory, holds the dependent where something is down, and wakes those whom it concerns.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut State<M>) -> R) -> R {
        let mut state = self.state();
        let before = (state.judge.is_down(), state.judge.is_due(), state.judge.recovered.len());
        let changed = change(&mut state);
        state.is_changed = true;
        let after = (state.judge.is_down(), state.judge.is_due(), state.judge.recovered.len());
        // Also for a repair that nothing is to be gathered for.
        if state.judge.is_down()
            || state.judge.is_due()
                && !state.is_held
                && state.gathers_until.is_none_or(|until| until <= Instant::now())
        {
            self.hold(&mut state);
        }
        let is_checked = after.0 && self.dependencies.iter().any(|of| of.recovery_check.is_some());
        drop(state);
        if before != after || is_checked {
            self.wake();
        }
        changed
    }

    pub(super) fn hold(&self, state: &mut State<M>) {
        if !state.is_held
            && let Some(runs) = &state.runs
        {
            (state.is_held, state.held_at) = (true, runs.control.state());
            runs.control.hold(&self.name);
        }
    }

    /// A partition of a dependency is heard of.
    pub(super) fn hears(&self, state: &mut State<M>, dependency: usize, partition: i32) {
        if self.dependencies.get(dependency).is_some_and(|of| of.idle.is_some()) {
            state.heard.insert((dependency, partition), Instant::now());
        }
    }

    fn is_finished(&self) -> bool {
        let state = self.state();
        let mut sources = (0..).zip(&self.dependencies).filter(|(_, dependency)| dependency.source.is_some());
        let has_ended = |number: usize| {
            state.ended & (1 << number) != 0
                && state.ends.get(&number).is_none_or(|(control, at)| control.state() == *at)
        };
        let have_ended = sources.all(|(number, _)| has_ended(number));
        state.runs.is_none() || have_ended && !state.judge.is_down() && !state.judge.is_pending()
    }
}

impl<M: Marker> Recorded for Inner<M> {
    fn is_changed(&self) -> bool {
        self.state().is_changed
    }

    fn records(&self, write: &mut dyn FnMut(Kind, &str, &[u8])) {
        let mut state = self.state();
        if !std::mem::take(&mut state.is_changed) {
            return;
        }
        let handlers = state.runs.iter().flat_map(|runs| &runs.dependent.handlers);
        let checkers = handlers.zip(&state.checkers).filter(|(_, checks)| **checks);
        let checkers = checkers.map(|(handler, _)| handler.to_string()).collect();
        let record = Record::of(&state.judge, &self.names, checkers);
        drop(state);
        match record.write() {
            Ok(record) => write(Kind::Checkpoint, &self.name, &record),
            Err(said) => {
                let mut state = self.state();
                let error = self.mount(&format!("has a marker that cannot be written: {said}"));
                state.failed = Some(error);
                self.wake();
            }
        }
    }

    fn caps(&self, caps: &mut BTreeMap<(u32, i32), i64>) {
        let state = self.state();
        let Some(runs) = &state.runs else { return };
        if state.judge.is_pending() {
            for (partition, offset) in state.judge.back() {
                let cap = caps.entry((runs.dependent.number, partition)).or_insert(offset);
                *cap = offset.min(*cap);
            }
        }
    }
}

/// A checkpoint as one source sees it.
struct Observing<M> {
    checkpoint: Arc<Inner<M>>,
    /// That of the source.
    control: Control,
    run: u64,
    is_dependent: bool,
    dependencies: Vec<usize>,
}

impl<M> fmt::Debug for Observing<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.checkpoint.fmt(f)
    }
}

impl<M: Marker> Observer for Observing<M> {
    fn teller(&self) -> Box<dyn Teller> {
        let mut state = self.checkpoint.state();
        let worker = state.workers;
        state.workers += 1;
        drop(state);
        let (checkpoint, dependencies) = (Arc::clone(&self.checkpoint), self.dependencies.clone());
        Box::new(Telling::new(checkpoint, (self.run, worker), self.is_dependent, dependencies))
    }

    fn goes_on(&self) {
        let mut state = self.checkpoint.state();
        for dependency in &self.dependencies {
            state.ended &= !(1 << dependency);
        }
    }

    fn is_dependent(&self) -> bool {
        self.is_dependent
    }

    fn is_finished(&self) -> bool {
        self.checkpoint.is_finished()
    }

    fn news(&self) -> watch::Receiver<()> {
        self.checkpoint.news.subscribe()
    }

    fn has_ended(&self, at: u64) {
        let Observing { checkpoint, dependencies, .. } = self;
        for dependency in dependencies {
            checkpoint.change(|state| {
                if state.run != self.run {
                    return;
                }
                let of = checkpoint.dependencies.get(*dependency);
                let is_down = state.judge.deps.get(*dependency).is_some_and(|dep| dep.down.is_some());
                if is_down
                    && of.is_some_and(|of| of.on_end == OnEnd::Fail)
                    && let Some(name) = checkpoint.names.get(*dependency)
                {
                    let (checkpoint, dependency) = (checkpoint.name.to_string(), name.to_string());
                    state.failed = Some(CheckpointError::Ended { checkpoint, dependency });
                    return;
                }
                state.judge.end(*dependency);
                if is_down && of.is_some_and(|of| of.recovery_check.is_some()) {
                    state.judge.recover(*dependency);
                }
                state.ended |= 1 << dependency;
                state.ends.insert(*dependency, (self.control.clone(), at));
            });
        }
        if !dependencies.is_empty() {
            checkpoint.wake();
        }
    }

    fn idle(&self) -> Option<Duration> {
        let idle =
            self.dependencies.iter().filter_map(|number| self.checkpoint.dependencies.get(*number)?.idle);
        idle.min()
    }

    fn is_empty(&self) {
        let checkpoint = &self.checkpoint;
        for number in &self.dependencies {
            let Some(idle) = checkpoint.dependencies.get(*number).and_then(|of| of.idle) else { continue };
            let now = Instant::now();
            let state = checkpoint.state();
            let is_quiet = |partition: i32| {
                let part = state.judge.deps.get(*number).and_then(|dep| dep.parts.get(&partition));
                part.is_some_and(|part| part.is_quiet)
            };
            let heard = state.heard.range((*number, i32::MIN)..=(*number, i32::MAX));
            let silent = heard.filter(|((_, partition), heard)| {
                now.saturating_duration_since(**heard) >= idle && !is_quiet(*partition)
            });
            let silent: Vec<i32> = silent.map(|((_, partition), _)| *partition).collect();
            drop(state);
            if !silent.is_empty() {
                checkpoint.change(|state| {
                    for partition in silent {
                        // Another worker's may have been heard of since.
                        let heard = state.heard.get(&(*number, partition));
                        let is_silent =
                            heard.is_some_and(|heard| now.saturating_duration_since(*heard) >= idle);
                        if is_silent && state.run == self.run {
                            state.judge.fall_quiet(*number, partition);
                        }
                    }
                });
            }
        }
    }

    fn has(&self, partitions: &BTreeSet<i32>) {
        let mut state = self.checkpoint.state();
        for number in &self.dependencies {
            let may_idle = self.checkpoint.dependencies.get(*number).is_some_and(|of| of.idle.is_some());
            for partition in partitions {
                state.judge.know(*number, *partition);
                if may_idle {
                    state.heard.entry((*number, *partition)).or_insert_with(Instant::now);
                }
            }
        }
    }

    fn assigned(&self, ours: &BTreeSet<i32>) {
        let Observing { checkpoint, is_dependent, dependencies, .. } = self;
        checkpoint.change(|state| {
            for number in dependencies {
                let parts = state.judge.deps.get(*number).map(|dep| &dep.parts);
                let is_new = |partition: &i32| {
                    parts.and_then(|parts| parts.get(partition)).is_none_or(|part| !part.is_ours)
                };
                let new: Vec<i32> = ours.iter().copied().filter(is_new).collect();
                state.judge.assign(*number, ours);
                if checkpoint.dependencies.get(*number).is_some_and(|of| of.idle.is_some()) {
                    let now = Instant::now();
                    for partition in ours {
                        state.heard.entry((*number, *partition)).or_insert(now);
                    }
                    // What was left unread elsewhere is still to come.
                    state.heard.extend(new.into_iter().map(|partition| ((*number, partition), now)));
                }
            }
            if *is_dependent {
                state.judge.keep_only(ours);
            }
        });
    }
}

pub(super) fn now_micros() -> i64 {
    Timestamp::from(std::time::SystemTime::now()).as_micros()
}
