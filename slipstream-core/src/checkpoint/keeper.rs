//! What a checkpoint does of itself while a flow runs: notices, callbacks, checks of recoveries, repairs.
//!
//! ```text
//! down ─▶ notice                                       dependent: held from the publication on
//! late or back ─▶ hold ─▶ nothing in hand ─▶ callback ─▶ publish: record, positions ─▶ seek ─▶ release
//! ```
//!
//! Invariants: a repair is published whole, record and positions together, before anything is handled again; a
//! callback is called until it succeeds or its policy ends it, and nothing is resumed before; a crash at any point finds
//! the record of a commit, and begins again from there.
use super::{
    CheckpointError, Inner,
    callback::Callback,
    dependency::Check,
    judge::Mark,
    marker::Marker,
    metrics,
    pulse::{Outage, Recovery},
    run::State,
};
use crate::{error::panic_message, on_error::Verdict, position::Positions, stop::Stop, watch::Moves};
use futures::FutureExt;
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

/// How often a dependency that is down and has a check of its own is asked, and the metrics are told.
const TICK: Duration = Duration::from_secs(1);

/// What is to be done next.
enum Step {
    Wait,
    /// A repair is due, but for others that are to be gathered.
    Gather(Instant),
    Repair,
    Release,
}

pub(super) async fn keep<M: Marker>(
    checkpoint: Arc<Inner<M>>,
    moves: Arc<dyn Moves>,
    stop: Arc<Stop>,
) -> Result<(), CheckpointError> {
    while !stop.is_set() {
        let changed = checkpoint.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if let Some(failed) = checkpoint.state().failed.take() {
            return Err(failed);
        }
        checkpoint.notice(&stop).await?;
        checkpoint.ask_the_checks(&moves, &stop).await?;
        metrics::tell(&checkpoint.status(), &checkpoint.name);
        let until = match checkpoint.step() {
            Step::Repair => {
                checkpoint.repair(&*moves, &stop).await?;
                continue;
            }
            Step::Release => {
                checkpoint.release();
                continue;
            }
            Step::Gather(until) => until,
            Step::Wait => Instant::now() + TICK,
        };
        tokio::select! {
            () = changed => {}
            () = tokio::time::sleep_until(until) => {}
            () = stop.stopped() => {}
        }
    }
    Ok(())
}

impl<M: Marker> Inner<M> {
    fn step(&self) -> Step {
        let state = self.state();
        if !state.judge.is_due() {
            return if state.is_held && !state.judge.is_down() { Step::Release } else { Step::Wait };
        }
        match state.gathers_until {
            Some(next) if !state.is_held && Instant::now() < next => Step::Gather(next),
            _ => Step::Repair,
        }
    }

    /// Tells of each outage that was not told of in this process.
    async fn notice(&self, stop: &Stop) -> Result<(), CheckpointError> {
        loop {
            let new = {
                let State { judge, .. } = &mut *self.state();
                // One that is over already is told of before its repair.
                let down = judge.deps.iter_mut().filter_map(|dep| dep.down.as_mut());
                let mut outages = judge.recovered.iter_mut().chain(down);
                outages.find(|outage| !outage.is_told).and_then(|outage| {
                    outage.is_told = true;
                    Some(Outage::new(&self.name, self.names.get(outage.dependency)?, outage))
                })
            };
            let Some(outage) = new else { return Ok(()) };
            tracing::warn!(
                checkpoint = &*self.name,
                dependency = &*outage.dependency,
                marker = ?outage.marker,
                pulse = ?outage.pulse,
                downtime = ?outage.downtime,
                "a dependency is down: the dependent waits for it"
            );
            metrics::outage(&self.name, &outage.dependency);
            if !self.call("downtime callback", &self.on_downtime, &outage, stop).await? {
                return Ok(());
            }
        }
    }

    /// Asks the checks of dependencies that are down and have one.
    async fn ask_the_checks(&self, moves: &Arc<dyn Moves>, stop: &Stop) -> Result<(), CheckpointError> {
        let mut failures = 0;
        for (number, of) in self.dependencies.iter().enumerate() {
            let Some(check) = &of.recovery_check else { continue };
            loop {
                let (has_ended, asked) = {
                    let state = self.state();
                    let is_down = state.judge.deps.get(number).is_some_and(|dep| dep.down.is_some());
                    let marker = match state.judge.deps.get(number).map(super::judge::Dep::mark) {
                        Some(Mark::At(marker)) => Some(marker),
                        _ => None,
                    };
                    let asked = state.judge.marker.clone().filter(|_| is_down).map(|pulse| (marker, pulse));
                    (state.ended & (1 << number) != 0, asked)
                };
                let (Some((marker, pulse)), Some(name)) = (asked, self.names.get(number)) else { break };
                // One that has ended is not asked about.
                let check = || {
                    has_ended || check(&Check { dependency: name, marker: marker.as_ref(), pulse: &pulse })
                };
                match catch_unwind(AssertUnwindSafe(check)) {
                    Ok(true) => {
                        // Under the store's lock, as what messages tell.
                        let _ = moves.change(&mut |_| self.change(|state| state.judge.recover(number)));
                        break;
                    }
                    Ok(false) => break,
                    Err(payload) => {
                        failures += 1;
                        let said = format!("it panicked: {}", panic_message(&*payload));
                        if !self.again("recovery check", said, failures, stop).await? {
                            break;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Has messages handled again.
    async fn repair(&self, moves: &dyn Moves, stop: &Stop) -> Result<(), CheckpointError> {
        let Some(runs) = self.state().runs.clone() else { return Ok(()) };
        {
            let mut state = self.state();
            state.is_repairing = true;
            self.hold(&mut state);
        }
        let (since, held_at) = (runs.control.state(), self.state().held_at);
        tokio::select! {
            () = runs.control.emptied(since) => {}
            () = stop.stopped() => return Ok(()),
        }
        // What was in hand may have found another outage, which may be over too.
        self.notice(stop).await?;
        let Some(recovery) = self.recovery() else {
            self.state().is_repairing = false;
            return Ok(());
        };
        for outage in &recovery.outages {
            tracing::info!(
                checkpoint = &*self.name,
                dependency = &*outage.dependency,
                downtime = ?outage.downtime,
                "a dependency has recovered"
            );
        }
        // By others, while it waited; and by the callback.
        let (by_others, called_at) = (runs.control.sought_since(held_at), runs.control.state());
        if !self.call("recovery callback", &self.on_recovery, &recovery, stop).await? {
            return Ok(());
        }
        let by_callback = runs.control.sought_since(called_at);
        let number = runs.dependent.number;
        let failed = |error: crate::BoxError| self.failed("repair", error.to_string());
        let published = if runs.dependent.has_positions {
            moves.positions(number).map_err(failed)?
        } else {
            Positions::default()
        };
        let mut seeks = BTreeMap::new();
        let done = moves.change(&mut |move_to| {
            seeks.clear();
            self.change(|state| {
                let mut back = if self.resume_only { BTreeMap::new() } else { state.judge.back() };
                let mut lowered = BTreeMap::new();
                // A later place than where it stands is the program's own matter.
                let is_back = |partition, offset| published.next(partition).filter(|next| offset < *next);
                for (partition, offset) in &by_callback {
                    if is_back(*partition, *offset).is_some() {
                        let back = back.entry(*partition).or_insert(*offset);
                        *back = (*back).min(*offset);
                    }
                }
                for (partition, offset) in &by_others {
                    if let Some(next) = is_back(*partition, *offset) {
                        // What is no part of the repair is for all handlers.
                        let all = vec![true; runs.dependent.handlers.len()];
                        lowered.insert(*partition, runs.dependent.go_back(*partition, next, *offset, &all));
                        back.entry(*partition).or_insert(*offset);
                    }
                }
                for (partition, offset) in &back {
                    let next = lowered.get(partition).copied().or(published.next(*partition));
                    let next = next.unwrap_or(*offset);
                    let lowest = runs.dependent.go_back(*partition, next, *offset, &state.checkers);
                    move_to(number, *partition, lowest);
                    seeks.insert(*partition, lowest);
                }
                state.judge.repaired(&back);
                state.repairs += 1;
                state.gathers_until = Some(Instant::now() + self.gather);
                state.is_repairing = false;
            });
        });
        done.map_err(failed)?;
        for (partition, offset) in &seeks {
            runs.control.seek_back(*partition, *offset);
        }
        metrics::repair(&self.name);
        tracing::info!(checkpoint = &*self.name, ?seeks, "messages are handled again");
        self.release();
        Ok(())
    }

    /// What is about to be repaired, if it still is.
    fn recovery(&self) -> Option<Recovery<M>> {
        let state = self.state();
        if !state.judge.is_due() {
            return None;
        }
        let outages = state.judge.recovered.iter();
        let outages = outages
            .filter_map(|outage| Some(Outage::new(&self.name, self.names.get(outage.dependency)?, outage)));
        Some(Recovery {
            checkpoint: Arc::clone(&self.name),
            outages: outages.collect(),
            late_from: state.judge.late_from.clone(),
            offsets: if self.resume_only { BTreeMap::new() } else { state.judge.back() },
        })
    }

    /// The dependent goes on, if nothing is down.
    fn release(&self) {
        let mut state = self.state();
        if !state.judge.is_down()
            && std::mem::take(&mut state.is_held)
            && let Some(runs) = &state.runs
        {
            runs.control.release(&self.name);
        }
    }

    /// Calls each until it goes well, as its policy has it. Answers false where the flow stops before.
    async fn call<T: Clone>(
        &self,
        which: &'static str,
        callbacks: &[Callback<T>],
        told: &T,
        stop: &Stop,
    ) -> Result<bool, CheckpointError> {
        for callback in callbacks {
            let mut failures = 0;
            loop {
                let called = AssertUnwindSafe(async { callback(told.clone()).await }).catch_unwind();
                let called = tokio::select! {
                    called = called => called,
                    () = stop.stopped() => return Ok(false),
                };
                let said = match called {
                    Ok(Ok(())) => break,
                    Ok(Err(error)) => error.to_string(),
                    Err(payload) => format!("it panicked: {}", panic_message(&*payload)),
                };
                failures += 1;
                if !self.again(which, said, failures, stop).await? {
                    if stop.is_set() {
                        return Ok(false);
                    }
                    break;
                }
            }
        }
        Ok(true)
    }

    /// What is done after a failure: true for once more, false for going on without.
    async fn again(
        &self,
        which: &'static str,
        said: String,
        failures: u32,
        stop: &Stop,
    ) -> Result<bool, CheckpointError> {
        match self.on_error.verdict(failures) {
            Verdict::Retry(after) => {
                tracing::warn!(
                    checkpoint = &*self.name,
                    ?after,
                    "the {which} failed, and is called again: {said}"
                );
                tokio::select! {
                    () = tokio::time::sleep(after) => Ok(true),
                    () = stop.stopped() => Ok(false),
                }
            }
            Verdict::Skip => {
                tracing::warn!(checkpoint = &*self.name, "the {which} failed, and is done without: {said}");
                Ok(false)
            }
            Verdict::Stop => Err(self.failed(which, said)),
        }
    }

    fn failed(&self, which: &'static str, said: String) -> CheckpointError {
        CheckpointError::Callback { checkpoint: self.name.to_string(), which, said }
    }
}
