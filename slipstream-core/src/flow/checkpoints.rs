//! The checkpoints of a flow: which of its sources they know, from where they go on, and who looks after them.
//!
//! ```text
//! flow.checkpoint(&c) ─▶ Mounts: which sources ─▶ Watches: what the store has ─▶ Watched: held, read, kept
//! ```
//!
//! Invariants: a checkpoint that waits since before a restart holds its dependent before that is opened; when the flow
//! has ended, it holds nothing.
use crate::{
    BoxError, CheckpointError,
    checkpoint::{AnyCheckpoint, Mounting},
    commit::Commit,
    error::Error,
    position::Positions,
    route::{Ready, Routes, Shared, Steering},
    store::Recordings,
    watch::{Change, Kind, Moves, Observer, Watch},
};
use futures::future::{BoxFuture, FutureExt, try_join_all};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
};
use tokio::sync::oneshot;

/// Checkpoints, and the numbers of their sources.
pub(super) struct Mounts(Vec<Mounted>);

#[derive(Clone)]
struct Mounted {
    checkpoint: Arc<dyn AnyCheckpoint>,
    dependent: u32,
    dependencies: Vec<Option<u32>>,
}

fn refused(checkpoint: &Arc<dyn AnyCheckpoint>, said: String) -> Error {
    let name = checkpoint.name().to_string();
    failed(name.clone(), CheckpointError::Refused { checkpoint: name, said })
}

fn failed(checkpoint: String, cause: CheckpointError) -> Error {
    Error::Checkpoint { checkpoint, cause: cause.into() }
}

impl Mounts {
    /// Finds the sources of each among those of the flow.
    pub(super) fn find<C>(
        checkpoints: Vec<Arc<dyn AnyCheckpoint>>,
        routes: &Routes<'_, C>,
        has_store: bool,
    ) -> Result<Self, Error> {
        let mut mounts: Vec<Mounted> = Vec::new();
        for checkpoint in checkpoints {
            if mounts.iter().any(|known| known.checkpoint.name() == checkpoint.name()) {
                return Err(refused(&checkpoint, "is mounted twice, or has the name of another".to_owned()));
            }
            if !has_store {
                let said =
                    "needs a store for its record: a `Cache` among the sinks says which, or `.store(&store)`";
                return Err(refused(&checkpoint, said.to_owned()));
            }
            let Some(dependent) = routes.number(checkpoint.dependent()) else {
                let said = "has a dependent that is not part of the flow: mount a handler of it";
                return Err(refused(&checkpoint, said.to_owned()));
            };
            let mut dependencies = Vec::new();
            for (name, source) in checkpoint.dependencies() {
                let number = source.map(|source| routes.number(source));
                if number == Some(None) {
                    let said = format!(
                        "depends on `{name}`, whose source is not part of the flow: mount a handler of it, or say \
                         `Dependency::outside` if its heartbeats come from elsewhere"
                    );
                    return Err(refused(&checkpoint, said));
                }
                dependencies.push(number.flatten());
            }
            mounts.push(Mounted { checkpoint, dependent, dependencies });
        }
        Ok(Mounts(mounts))
    }

    /// Has the sources watched.
    pub(super) fn watch(
        self,
        commit: Commit,
        routes: &[Box<dyn Ready>],
        names: &[Arc<str>],
    ) -> Result<(Commit, Watches), Error> {
        let Mounts(mounts) = self;
        let mut watches: BTreeMap<u32, Watch> = BTreeMap::new();
        let mut observers: Vec<Option<Arc<dyn Observer>>> = vec![None; mounts.len()];
        for (number, route) in (0..).zip(routes) {
            let observed = mounts.iter().filter_map(|mounted| {
                let is_dependent = mounted.dependent == number;
                let dependencies =
                    (0..).zip(&mounted.dependencies).filter(|(_, source)| **source == Some(number));
                let dependencies: Vec<usize> = dependencies.map(|(dependency, _)| dependency).collect();
                (is_dependent || !dependencies.is_empty()).then_some((mounted, is_dependent, dependencies))
            });
            let observed: Vec<_> = observed.collect();
            let stored_as = names.get(number as usize).cloned().unwrap_or_default();
            let read = |cause: BoxError| Error::Store { cause };
            let record = commit.record(Kind::Progress, &stored_as).map_err(read)?;
            // Also where a replay was left that no checkpoint of this flow has begun.
            if observed.is_empty() && !crate::watch::is_asked() && record.is_none() {
                continue;
            }
            let known_as =
                if stored_as.is_empty() { Arc::from(route.origin()) } else { Arc::clone(&stored_as) };
            let name = route.called().unwrap_or(known_as);
            let (control, steering) = route.control();
            let mut watch = Watch::new(number, name, stored_as, &route.handlers());
            watch.has_positions = steering != Steering::Held;
            for (mounted, is_dependent, dependencies) in observed {
                let Mounted { checkpoint, .. } = mounted;
                if route.is_inner() {
                    let said = format!(
                        "cannot watch `{}`, whose items are handled inside of other messages: name the source that these \
                         are of",
                        route.origin()
                    );
                    return Err(refused(checkpoint, said));
                }
                if is_dependent && !checkpoint.is_resume_only() && steering != Steering::Sought {
                    let what = match steering {
                        Steering::Held => "cannot be read again",
                        _ => "has no `control()`, by which it is sought",
                    };
                    let said = format!(
                        "has a dependent, `{}`, that {what}: say `.resume_only()` if it is enough that it is paused",
                        route.origin()
                    );
                    return Err(refused(checkpoint, said));
                }
                watch.defers |= is_dependent && !checkpoint.is_resume_only();
                let observer = Arc::clone(checkpoint).observe(control.clone(), is_dependent, dependencies);
                let at = mounts.iter().position(|known| Arc::ptr_eq(&known.checkpoint, checkpoint));
                if let Some(known) = at.and_then(|at| observers.get_mut(at)) {
                    *known = Some(Arc::clone(&observer));
                }
                watch.observed(observer);
            }
            if let Some(record) = record {
                watch.resume(&record).map_err(|error| Error::Store {
                    cause: format!(
                        "the progress of the handlers of `{}` cannot be read: {error}",
                        watch.name
                    )
                    .into(),
                })?;
            }
            watches.insert(number, watch);
        }
        for (number, watch) in &mut watches {
            let upstream = upstream(&mounts, *number).into_iter();
            watch.finishes_with(upstream.filter_map(|at| observers.get(at)?.clone()).collect());
        }
        let watches: BTreeMap<_, _> =
            watches.into_iter().map(|(number, watch)| (number, Arc::new(watch))).collect();
        let recordings = mounts.iter().map(|mounted| Arc::clone(&mounted.checkpoint) as _);
        let recordings: Recordings =
            recordings.chain(watches.values().map(|watch| Arc::clone(watch) as _)).collect();
        Ok((commit.recording(recordings), Watches { mounts, watches }))
    }
}

/// The checkpoints whose repairs may be felt in a source: those that it is the dependent of, and those of what these depend on.
fn upstream(mounts: &[Mounted], source: u32) -> BTreeSet<usize> {
    let (mut found, mut sources) = (BTreeSet::new(), vec![source]);
    while let Some(source) = sources.pop() {
        for (at, mounted) in mounts.iter().enumerate().filter(|(_, mounted)| mounted.dependent == source) {
            if found.insert(at) {
                sources.extend(mounted.dependencies.iter().flatten());
            }
        }
    }
    found
}

/// Checkpoints whose sources are watched.
pub(super) struct Watches {
    mounts: Vec<Mounted>,
    watches: BTreeMap<u32, Arc<Watch>>,
}

impl Watches {
    /// They go on as the store has them; the sources begin at `starts`.
    pub(super) fn begin(
        self,
        routes: &[Box<dyn Ready>],
        starts: &[(u32, Positions)],
        shared: &Arc<Shared>,
    ) -> Result<Watched, Error> {
        let Watches { mounts, watches } = self;
        let mut watched = Watched { begun: Vec::new(), watches };
        let moves: Arc<dyn Moves> = Arc::clone(shared) as Arc<dyn Moves>;
        for Mounted { checkpoint, dependent, .. } in mounts {
            let record = shared.commit.record(Kind::Checkpoint, checkpoint.name());
            let record = record.map_err(|cause| Error::Store { cause })?;
            let (Some(watch), Some(route)) = (watched.of(dependent), routes.get(dependent as usize)) else {
                continue;
            };
            let (control, _) = route.control();
            let moves: Weak<dyn Moves> = Arc::downgrade(&moves);
            let begun = checkpoint.begin(Mounting { record, dependent: watch, control, moves });
            begun.map_err(|error| failed(checkpoint.name().to_string(), error))?;
            watched.begun.push(checkpoint);
        }
        // One without positions is of one partition, also before its first message.
        for watch in watched.watches.values().filter(|watch| !watch.has_positions) {
            watch.has(&BTreeSet::from([0]));
        }
        for (number, start) in starts {
            if let Some(watch) = watched.of(*number) {
                watch.has(&start.iter().map(|(partition, _)| partition).collect());
            }
        }
        for (number, route) in (0..).zip(routes) {
            if let Some(watch) = watched.of(number) {
                let control = route.control().0;
                let sought = control.sought_before_opening();
                if !sought.is_empty() {
                    let published =
                        shared.commit.positions_of(number).map_err(|cause| Error::Store { cause })?;
                    for (partition, offset) in sought {
                        watch.sought(partition, offset, published.next(partition));
                    }
                }
                let watch = Arc::downgrade(&watch);
                control.tell_assigned(Arc::new(move |ours| {
                    if let Some(watch) = watch.upgrade() {
                        watch.assigned(ours);
                    }
                }));
            }
        }
        Ok(watched)
    }
}

/// Checkpoints of a flow that runs.
pub(super) struct Watched {
    begun: Vec<Arc<dyn AnyCheckpoint>>,
    watches: BTreeMap<u32, Arc<Watch>>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.begun.iter().for_each(|checkpoint| checkpoint.end());
    }
}

impl Watched {
    pub(super) fn of(&self, source: u32) -> Option<Arc<Watch>> {
        self.watches.get(&source).cloned()
    }

    /// Looks after them until the sources have ended; an error stops the flow.
    pub(super) fn keep(
        &self,
        shared: &Arc<Shared>,
        sources_ended: oneshot::Receiver<()>,
    ) -> BoxFuture<'static, Option<Error>> {
        let keeps = self.begun.iter().map(|checkpoint| {
            let (name, checkpoint) = (checkpoint.name().to_string(), Arc::clone(checkpoint));
            let moves = Arc::clone(shared) as Arc<dyn Moves>;
            checkpoint
                .keep(moves, Arc::clone(&shared.stop))
                .map(|kept| kept.map_err(|error| failed(name, error)))
        });
        let (keeps, stop) = (try_join_all(keeps), Arc::clone(&shared.stop));
        let nothing = self.begun.is_empty();
        async move {
            if nothing {
                return None;
            }
            tokio::select! {
                kept = keeps => kept.err().inspect(|_| stop.set()),
                _ = sources_ended => None,
            }
        }
        .boxed()
    }
}

impl Moves for Shared {
    fn change(&self, change: &mut Change<'_>) -> Result<(), BoxError> {
        self.commit.publish_moves(change)
    }
    fn positions(&self, source: u32) -> Result<Positions, BoxError> {
        self.commit.positions_of(source)
    }
}
