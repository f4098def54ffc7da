//! What the handlers of a schedule do with a message, in steps between which the others may come.
use crate::{
    log::Line,
    world::{Answer, Crash, World, count, time},
};
use slipstream::{BoxError, Checkpoint, DependencyState, Result};
use std::sync::{Arc, atomic::Ordering};

#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) world: World,
    pub(crate) crash: Arc<Crash>,
    pub(crate) checkpoint: Checkpoint,
}

impl Run {
    /// A step is done, which may be the last one of the run.
    async fn step(&self) {
        self.world.moves();
        if self.crash.is_now() {
            self.crash.now.notify_one();
            if self.crash.waits {
                std::future::pending::<()>().await;
            }
        }
        self.world.wait().await;
    }

    /// An update of a dependency.
    pub(crate) async fn update(self, number: usize, Line { row, .. }: Line) -> Result<(), BoxError> {
        let beats_first = self.world.rng.percent(50);
        if beats_first {
            self.checkpoint.heartbeat(time(row.time))?;
            self.step().await;
        }
        self.world.states[number].insert(&(row.key, row.time), row.number)?;
        self.step().await;
        if !beats_first {
            self.checkpoint.heartbeat(time(row.time))?;
        }
        // Nobody comes between this and the publication.
        let status = self.checkpoint.status();
        let is_down = status.dependencies.iter().any(|dep| dep.state == DependencyState::Down);
        if status.dependencies.iter().any(|dep| dep.state == DependencyState::Quiet) {
            count(&self.world.seen.quiet);
        }
        self.world.moves();
        Ok(self.world.came_down.insert(&row.number, is_down)?)
    }

    /// A message of the dependent: what held at its time.
    pub(crate) async fn join(self, Line { at, row }: Line) -> Result<(), BoxError> {
        let World { schedule, states, answers, sums, rng, .. } = &self.world;
        let handlings = self.world.handlings.fetch_add(1, Ordering::Relaxed);
        if handlings > schedule.most_handlings() {
            return Err("it goes round and round".into());
        }
        if self.checkpoint.status().is_paused && !self.world.is_threaded {
            self.world.fault(format!("{at:?} began while the dependent was paused"));
        }
        if rng.percent(50) {
            // Of what is read later nothing is to be seen in the end.
            answers.insert(&at, Answer::new())?;
        }
        let sums_first = rng.percent(50);
        let sum = || match slipstream::is_replayed() {
            true => Ok(0),
            false => sums.update(&at, |sum| sum.unwrap_or(0) + 1),
        };
        if sums_first {
            sum()?;
        }
        self.step().await;
        let (reads_first, mut answer) = (rng.percent(50), Answer::new());
        let read = || -> Result<Answer> {
            let read = states.iter().map(|state| state.as_of(&(row.key, row.time)));
            let read = read.map(|found| Ok(found?.map(|((_, time), number)| (time, number))));
            read.collect()
        };
        if reads_first {
            answer = read()?;
            self.step().await;
        }
        let pulse = self.checkpoint.check_pulse(time(row.time))?;
        if slipstream::is_replayed() {
            count(&self.world.seen.replayed);
        }
        if schedule.defers {
            if pulse.is_down() {
                count(&self.world.seen.deferred);
            }
            self.world.moves();
            pulse.or_defer()?;
        } else {
            drop(pulse);
        }
        self.step().await;
        if !reads_first {
            answer = read()?;
        }
        if !sums_first {
            sum()?;
        }
        self.world.moves();
        Ok(answers.insert(&at, answer)?)
    }
}
