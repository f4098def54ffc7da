//! What messages tell a checkpoint, and what it answers them.
//!
//! ```text
//! heartbeat, check_pulse ──▶ Telling: calls of the message ──published──▶ judge
//!                                      │ rolled back ─▶ gone
//! ```
use super::{
    CheckpointError, Inner, Unknown,
    dependency::Check,
    judge::{self, Beat, Judge, Mark, Mask},
    marker::Marker,
    pulse::{DependencyState, DependencyStatus, Down, Pulse, Status},
    run::now_micros,
};
use crate::{
    Timestamp, transaction,
    watch::{At, Teller, Watched},
};
use std::{any::Any, sync::Arc, time::Duration};

/// What one worker's message in hand has told one checkpoint.
pub(super) struct Telling<M> {
    checkpoint: Arc<Inner<M>>,
    /// The flow that the worker is of.
    run: u64,
    worker: usize,
    is_dependent: bool,
    /// Those that its source is.
    dependencies: Vec<usize>,
    calls: Vec<Call<M>>,
}

enum Call<M> {
    Beat { dependency: usize, marker: M },
    Pulse { pulse: judge::Pulse<M>, handler: usize },
}

impl<M> Telling<M> {
    pub(super) fn new(
        checkpoint: Arc<Inner<M>>,
        (run, worker): (u64, usize),
        is_dependent: bool,
        dependencies: Vec<usize>,
    ) -> Self {
        Telling { checkpoint, run, worker, is_dependent, dependencies, calls: Vec::new() }
    }
}

impl<M: Marker> Telling<M> {
    /// In the dependent, unless its flow was dropped and another has begun.
    fn of_its_run(&self, change: impl FnOnce(&mut Judge<M>, usize)) {
        if self.is_dependent {
            let mut state = self.checkpoint.state();
            if state.run == self.run {
                change(&mut state.judge, self.worker);
            }
        }
    }
}

impl<M: Marker> Teller for Telling<M> {
    fn checkpoint(&self) -> u64 {
        self.checkpoint.id
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn begin(&mut self) {
        self.of_its_run(Judge::begin);
    }

    fn take_back(&mut self) {
        self.calls.pop();
    }

    fn has_pulse(&self, told: usize) -> bool {
        let since = self.calls.get(self.calls.len().saturating_sub(told)..).unwrap_or_default();
        since.iter().any(|call| matches!(call, Call::Pulse { pulse, .. } if pulse.is_down))
    }

    fn keep_pulses(&mut self, told: usize) -> usize {
        let since = self.calls.split_off(self.calls.len().saturating_sub(told));
        let before = self.calls.len();
        self.calls.extend(since.into_iter().filter(|call| matches!(call, Call::Pulse { .. })));
        self.calls.len() - before
    }

    fn publish(&mut self, at: At) {
        let Telling { checkpoint, worker, calls, .. } = self;
        if calls.is_empty() {
            return;
        }
        let mut too_late: Option<usize> = None;
        checkpoint.change(|state| {
            for call in calls.drain(..) {
                match call {
                    Call::Beat { dependency, marker } => {
                        checkpoint.hears(state, dependency, at.partition);
                        if state.heartbeat(dependency, at.partition, &marker) == Beat::TooLate {
                            too_late = Some(dependency);
                        }
                    }
                    Call::Pulse { pulse, handler } => {
                        if let Some(checks) = state.checkers.get_mut(handler) {
                            *checks = true;
                        }
                        // The clock is asked where something may be down.
                        let now = if pulse.is_down { now_micros() } else { 0 };
                        state.judge.publish(*worker, at.partition, at.offset, pulse, now);
                    }
                }
            }
        });
        if let Some(dependency) = too_late.and_then(|number| checkpoint.names.get(number)) {
            tracing::warn!(
                checkpoint = &*checkpoint.name,
                dependency = &**dependency,
                "an update came later than the allowed lateness, when messages that it would change had left the window: \
                 they are not repaired"
            );
        }
    }

    fn done(&mut self) {
        self.of_its_run(Judge::done);
    }
}

/// Who calls.
enum Caller {
    /// One of another source.
    Foreign,
    /// No message.
    Nobody,
}

impl<M: Marker> Inner<M> {
    /// Calls `f` with the message's calls, if a message is in hand whose source the checkpoint knows.
    fn with<R>(&self, f: impl FnOnce(&mut Telling<M>, usize) -> R) -> Result<R, Caller> {
        transaction::with(|current| {
            let Some(transaction) = current else { return Err(Caller::Nobody) };
            let Some(watched) = &mut transaction.watched else { return Err(Caller::Foreign) };
            let (teller, handler) = watched.teller(self.id).ok_or(Caller::Foreign)?;
            let telling = teller.as_any().downcast_mut::<Telling<M>>().ok_or(Caller::Foreign)?;
            let calls = telling.calls.len();
            let done = f(telling, handler);
            if telling.calls.len() > calls {
                Watched::called(watched, self.id);
            }
            Ok(done)
        })
    }

    fn foreign(&self, call: &'static str, of: &'static str) -> CheckpointError {
        let state = self.state();
        if state.runs.is_none() {
            return CheckpointError::NotMounted { checkpoint: self.name.to_string() };
        }
        let remedy = match (call, &state.runs) {
            ("heartbeat", _) => format!("one of its dependencies: {}", self.known()),
            (_, Some(runs)) => format!("its dependent, `{}`", runs.dependent.name),
            (_, None) => "its dependent".to_owned(),
        };
        CheckpointError::Foreign { checkpoint: self.name.to_string(), call, of, remedy }
    }

    fn known(&self) -> String {
        let names: Vec<_> = self.names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    }

    fn which(&self) -> CheckpointError {
        CheckpointError::Which { checkpoint: self.name.to_string(), known: self.known() }
    }

    pub(super) fn heartbeat(&self, name: Option<&str>, marker: &M) -> Result<(), CheckpointError> {
        let named = match name {
            None => None,
            Some(name) => {
                let number = self.names.iter().position(|known| **known == *name);
                Some(number.ok_or_else(|| self.which())?)
            }
        };
        let called = self.with(|telling, _| {
            let dependency = match (named, &*telling.dependencies) {
                (_, []) => return Err("its dependent, and not one of its dependencies"),
                (None, [only]) => *only,
                (None, _) => return Ok(false),
                (Some(named), known) if known.contains(&named) => named,
                (Some(_), _) => return Err("another of its dependencies"),
            };
            telling.calls.push(Call::Beat { dependency, marker: marker.clone() });
            Ok(true)
        });
        match called {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(self.which()),
            Ok(Err(of)) => Err(self.foreign("heartbeat", of)),
            Err(Caller::Foreign) => Err(self.foreign("heartbeat", "a source that it does not know")),
            Err(Caller::Nobody) => self.heartbeat_outside(named, marker),
        }
    }

    fn heartbeat_outside(&self, named: Option<usize>, marker: &M) -> Result<(), CheckpointError> {
        let dependency = named.ok_or_else(|| self.which())?;
        let not_mounted = || CheckpointError::NotMounted { checkpoint: self.name.to_string() };
        let runs = self.state().runs.clone().ok_or_else(not_mounted)?;
        let moves = runs.moves.upgrade().ok_or_else(not_mounted)?;
        let beat = moves.change(&mut |_| {
            self.change(|state| {
                self.hears(state, dependency, 0);
                state.heartbeat(dependency, 0, marker);
            });
        });
        beat.map_err(|_| not_mounted())
    }

    pub(super) fn check_pulse(
        &self,
        marker: M,
        remembered: Option<Vec<u8>>,
    ) -> Result<Pulse<M>, CheckpointError> {
        let caller = self.with(|telling, _| match telling.is_dependent {
            true => Ok(telling.worker),
            false => Err("one of its dependencies, and not its dependent"),
        });
        let worker = match caller {
            Ok(Ok(worker)) => Some(worker),
            Ok(Err(of)) => return Err(self.foreign("check_pulse", of)),
            Err(Caller::Foreign) => {
                return Err(self.foreign("check_pulse", "a source that it does not know"));
            }
            Err(Caller::Nobody) => None,
        };
        let (behind, down) = self.judge_pulse(worker, &marker)?;
        if worker.is_some() {
            let pulse = judge::Pulse { marker, behind, is_down: down.is_some(), state: remembered };
            // The message that was there a moment ago.
            let _ = self.with(|telling, handler| telling.calls.push(Call::Pulse { pulse, handler }));
        }
        Ok(down.map_or(Pulse::Up, Pulse::Down))
    }

    /// The dependencies that a pulse is too far ahead of, and the one to be told, if any is down.
    fn judge_pulse(
        &self,
        worker: Option<usize>,
        pulse: &M,
    ) -> Result<(Mask, Option<Down<M>>), CheckpointError> {
        let (mut behind, mut told): (Mask, Option<(usize, Mark<M>)>) = (0, None);
        let mut state = Some(self.state());
        for (number, of) in self.dependencies.iter().enumerate() {
            let mark = state.get_or_insert_with(|| self.state()).judge.mark_for(worker, number);
            let marker = match &mark {
                Mark::AheadOfAll => continue,
                Mark::Unknown if of.unknown == Unknown::Ignore => continue,
                Mark::Unknown if of.unknown == Unknown::Fail => {
                    let dependency = self.names.get(number).map(ToString::to_string).unwrap_or_default();
                    return Err(CheckpointError::Unknown { checkpoint: self.name.to_string(), dependency });
                }
                Mark::Unknown => None,
                Mark::At(marker) => Some(marker),
            };
            let is_behind = match &of.downtime_check {
                None => {
                    let judge = &state.get_or_insert_with(|| self.state()).judge;
                    judge.is_behind(number, marker.unwrap_or(judge.stand_in(pulse)), pulse)
                }
                Some(check) => {
                    // The program's own code runs under no lock.
                    state = None;
                    let dependency = self.names.get(number).map_or("", |name| &**name);
                    check(&Check { dependency, marker, pulse })
                }
            };
            if is_behind {
                behind |= 1 << number;
                told.get_or_insert((number, mark));
            }
        }
        let state = state.unwrap_or_else(|| self.state());
        let judge = &state.judge;
        // Another's outage counts too, and is told where this pulse alone would find none.
        let of_another = || {
            let down =
                judge.deps.iter().enumerate().find_map(|(number, dep)| Some((number, dep.down.as_ref()?)));
            down.map(|(number, outage)| (number, outage.marker.clone().map_or(Mark::Unknown, Mark::At)))
        };
        let Some((number, mark)) = told.or_else(of_another) else { return Ok((0, None)) };
        let marker = match mark {
            Mark::At(marker) => Some(marker),
            _ => None,
        };
        let downtime = pulse.since(marker.as_ref().unwrap_or(judge.stand_in(pulse)));
        let Some(dependency) = self.names.get(number).cloned() else { return Ok((behind, None)) };
        let (checkpoint, can_defer) = (Arc::clone(&self.name), !self.resume_only);
        Ok((behind, Some(Down { dependency, downtime, marker, checkpoint, can_defer })))
    }

    pub(super) fn status(&self) -> Status<M> {
        let state = self.state();
        let judge = &state.judge;
        let dependencies = self.names.iter().zip(&judge.deps).map(|(name, dep)| {
            let (marker, quiet) = match dep.mark() {
                Mark::Unknown => (None, false),
                Mark::At(marker) => (Some(marker), false),
                Mark::AheadOfAll => (None, true),
            };
            let lag = match (&marker, &judge.marker) {
                _ if quiet => Some(Duration::ZERO),
                (Some(marker), Some(pulse)) if pulse > marker => pulse.since(marker),
                (Some(_), Some(_)) => Some(Duration::ZERO),
                _ => None,
            };
            DependencyStatus {
                name: Arc::clone(name),
                lag,
                state: match (&dep.down, &marker) {
                    (Some(_), _) => DependencyState::Down,
                    (None, _) if quiet => DependencyState::Quiet,
                    (None, None) => DependencyState::Unknown,
                    (None, Some(_)) => DependencyState::Up,
                },
                marker,
                down_since: dep.down.as_ref().map(|outage| Timestamp::from_micros(outage.at_micros)),
                tolerated: dep.tolerated,
                too_late: dep.too_late,
            }
        });
        Status {
            is_paused: state.is_held,
            is_repair_due: judge.is_pending(),
            marker: judge.marker.clone(),
            window: judge.open.values().map(super::window::Window::len).sum(),
            repairs: state.repairs,
            dependencies: dependencies.collect(),
        }
    }
}
