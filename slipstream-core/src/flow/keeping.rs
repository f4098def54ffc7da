//! Where a flow keeps its state and positions, and from where its sources go on when it starts.
//!
//! ```text
//! sinks, `.store(…)` ──▶ one store ──begin──▶ commits
//!                          │
//!   owner: this flow? ─────┤
//!   for each source:       ▼                                     members of groups: join, and later, at each
//!     stored positions ─▶ is it the store that the source was told of? ──no──▶ on_lost_state     assignment,
//!       none ─▶ start()      │                                                               by standing.rs
//!                            ▼
//!                one batch: what was resolved ──▶ open
//! ```
//!
//! Invariants: nothing is written before all sources and the store's owner have been asked; where a
//! source begins is stored before its first message, so a later start does not depend on what "the end"
//! means by then.
use super::standing::Stands;
use crate::{
    BoxError,
    commit::{Commit, Settings, Told},
    error::Error,
    position::Positions,
    route::{Routes, Shared},
    source::{AnySeekable, Control, Joined, Joining},
};
use std::{
    fmt,
    sync::{Arc, Weak},
};

#[cfg(feature = "rocksdb")]
use super::lost::{LostState, OnLostState, Side};
#[cfg(feature = "rocksdb")]
use crate::store::{Store, StoreError};

/// Where a flow keeps its state and positions: the store it was given, and those of its sinks, which
/// have to be one.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    #[cfg(feature = "rocksdb")]
    pub(super) store: Option<Store>,
    #[cfg(feature = "rocksdb")]
    pub(super) on_lost_state: OnLostState,
    /// The flow's instance, where several processes run it.
    pub(super) instance: Option<String>,
}

/// The sources with positions of a flow that is starting, and the store that has them.
#[derive(Debug)]
pub(super) struct Resuming {
    pub(super) keeps: Keeps,
    joining: Arc<Joining>,
    sources: Vec<Source>,
    /// The names of all sources of the flow, by their numbers.
    names: Vec<Arc<str>>,
}

/// Where the positions are, and what is done if it is not where they were.
#[derive(Debug, Clone)]
pub(super) struct Keeps {
    #[cfg(feature = "rocksdb")]
    pub(super) store: Option<Store>,
    #[cfg(feature = "rocksdb")]
    pub(super) on_lost_state: OnLostState,
    #[cfg(feature = "rocksdb")]
    pub(super) sync: bool,
    #[cfg(feature = "rocksdb")]
    pub(super) flow: Option<Arc<str>>,
}

/// A source with positions.
#[derive(Clone)]
pub(super) struct Source {
    /// The flow's number for it.
    pub(super) number: u32,
    /// As the attribute names it.
    pub(super) origin: String,
    /// As the store names it.
    pub(super) name: Arc<str>,
    pub(super) seeks: Arc<dyn AnySeekable>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("origin", &self.origin).field("name", &self.name).finish()
    }
}

impl Keeping {
    /// Finds the store of a flow, and begins its commits there.
    pub(super) fn begin<C>(
        self,
        settings: Settings,
        flow: Option<&str>,
        routes: &Routes<'_, C>,
    ) -> Result<(Commit, Resuming), Error> {
        let names: Vec<_> = routes.all().map(|route| Arc::from(route.name().unwrap_or_default())).collect();
        #[cfg(feature = "rocksdb")]
        let (commit, keeps, has_store) = {
            let store = the_one_store(self.store, routes)?;
            let commit = Commit::new(settings, store.clone(), names.clone());
            let commit = commit.map_err(|cause| Error::Store { cause })?;
            let has_store = store.is_some();
            let (on_lost_state, sync, flow) = (self.on_lost_state, settings.sync, flow.map(Arc::from));
            (commit, Keeps { store, on_lost_state, sync, flow }, has_store)
        };
        #[cfg(not(feature = "rocksdb"))]
        let (commit, keeps, has_store) = (Commit::without_store(settings), Keeps {}, false);
        let sources = named_sources(routes, has_store)?;
        let joining = Arc::new(Joining::new(flow, self.instance.as_deref(), has_store));
        Ok((commit, Resuming { keeps, joining, sources, names }))
    }
}

#[cfg(feature = "rocksdb")]
fn the_one_store<C>(given: Option<Store>, routes: &Routes<'_, C>) -> Result<Option<Store>, Error> {
    let mut stores = Vec::from_iter(given);
    routes.flushes().iter().for_each(|sinks| sinks.stores(&mut stores));
    let mut stores = stores.into_iter();
    let store = stores.next();
    if let Some(store) = &store
        && let Some(other) = stores.find(|other| !other.is(store))
    {
        let (first, second) = (store.name(), other.name());
        return Err(Error::Store { cause: StoreError::TwoStores { first, second }.into() });
    }
    Ok(store)
}

fn named_sources<C>(routes: &Routes<'_, C>, has_store: bool) -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    for (number, route) in (0..).zip(routes.all()) {
        let Some(seeks) = route.seeks() else { continue };
        let origin = route.origin().to_owned();
        let missing = |what: &str| Error::Positions { origin: origin.clone(), what: what.to_owned() };
        let Some(name) = route.name() else {
            return Err(missing("a name, which its `identity()` has to give"));
        };
        if !has_store && !seeks.is_member() {
            return Err(missing(match cfg!(feature = "rocksdb") {
                true => {
                    "a store for its positions: a `Cache` among the sinks says which, or `.store(&store)`"
                }
                false => "a store for its positions, which the feature `rocksdb` has",
            }));
        }
        sources.push(Source { number, name: Arc::from(name), seeks, origin });
    }
    Ok(sources)
}

impl Resuming {
    /// Whether the flow keeps state.
    #[cfg(feature = "rocksdb")]
    pub(super) fn has_store(&self) -> bool {
        self.joining.has_store
    }

    /// The names under which the store keeps the positions of the sources, by their numbers.
    #[cfg(feature = "rocksdb")]
    pub(super) fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// The members of groups join, and say what the store is to call them.
    ///
    /// # Errors
    /// When one of them cannot be reached, or lacks something.
    pub(super) async fn join(&mut self) -> Result<(), Error> {
        for source in &mut self.sources {
            let name = source.seeks.join(&self.joining).await;
            let begin = |cause| Error::Begin { origin: source.origin.clone(), cause };
            if let Some(name) = name.map_err(begin)? {
                source.name = Arc::from(name);
                if let Some(known) = self.names.get_mut(source.number as usize) {
                    *known = Arc::clone(&source.name);
                }
            }
        }
        Ok(())
    }

    /// The commits, which know the sources by name from now on, and tell them.
    pub(super) fn telling(&self, commit: Commit) -> Commit {
        #[cfg(feature = "rocksdb")]
        let commit = commit.naming(self.names.clone());
        let told = self.sources.iter().map(|Source { number, origin, name, seeks }| Told {
            number: *number,
            origin: origin.clone(),
            name: Arc::clone(name),
            seeks: Arc::clone(seeks),
            joining: Arc::clone(&self.joining),
        });
        commit.telling(self.joining.flow.as_deref().map(str::to_owned), told.collect())
    }

    /// Where each source with positions goes on, by its number; a member of a group learns it with each
    /// assignment. What had to be resolved is in the store then.
    ///
    /// # Errors
    /// When the state is not that of the sources and the flow is not told to go on; when a source
    /// cannot say where it stands; when the store cannot be read or written.
    #[cfg(feature = "rocksdb")]
    pub(super) async fn positions(&self, commit: &Commit) -> Result<Vec<(u32, Positions)>, Error> {
        let Some(store) = &self.keeps.store else { return Ok(self.nowhere()) };
        let new_owner = self.keeps.owner(store)?;
        let (mut all, mut resolved) = (self.nowhere(), Vec::new());
        for source in self.sources.iter().filter(|source| !source.seeks.is_member()) {
            // The commits have begun: what a dropped flow was still writing is written.
            let stored =
                store.positions(&source.name).map_err(|cause| Error::Store { cause: cause.into() })?;
            let start = self.keeps.resume(store, source, stored.clone()).await?;
            if start != stored {
                resolved.push((Arc::clone(&source.name), start.clone()));
            }
            all.push((source.number, start));
        }
        let stored = commit.store_starts(resolved, new_owner.map(str::to_owned)).await;
        stored.map_err(|cause| Error::Store { cause })?;
        Ok(all)
    }

    #[cfg(not(feature = "rocksdb"))]
    pub(super) async fn positions(&self, _: &Commit) -> Result<Vec<(u32, Positions)>, Error> {
        Ok(self.nowhere())
    }

    /// Those that learn later where they go on.
    fn nowhere(&self) -> Vec<(u32, Positions)> {
        let members = self.sources.iter().filter(|source| source.seeks.is_member());
        members.map(|source| (source.number, Positions::default())).collect()
    }

    /// What the source of this number has to do with the flow that runs, if it is a member of a group.
    pub(super) fn joined(&self, number: u32, shared: &Arc<Shared>) -> Option<Joined> {
        let mut members = self.sources.iter().filter(|source| source.seeks.is_member());
        let source = members.find(|source| source.number == number)?;
        let standing = Stands::new(number, source.origin.clone(), self.keeps.clone(), Arc::downgrade(shared));
        Some(Joined { standing: Arc::new(standing) })
    }

    /// From now on the controls of the sources tell the positions of the flow that runs.
    pub(super) fn link(&self, shared: &Arc<Shared>) -> Vec<Link> {
        let linked = self.sources.iter().filter_map(|Source { number, name, seeks, .. }| {
            let control = seeks.control()?.clone();
            let (of, number) = (Arc::downgrade(shared), *number);
            let published: Published = Arc::new(move || positions_of(&of, number));
            control.link(&published);
            Some(Link {
                control,
                name: Arc::clone(name),
                #[cfg(feature = "rocksdb")]
                store: self.keeps.store.clone(),
                published,
            })
        });
        linked.collect()
    }
}

#[cfg(feature = "rocksdb")]
impl Keeps {
    /// The flow's name, if the store is to belong to it from now on.
    fn owner(&self, store: &Store) -> Result<Option<&str>, Error> {
        let Some(flow) = self.flow.as_deref() else { return Ok(None) };
        match store.owner().map_err(|cause| Error::Store { cause: cause.into() })? {
            Some(owner) if owner == flow => Ok(None),
            Some(owner) => {
                let lost = LostState::AnotherOwner { path: store.name(), owner, flow: flow.to_owned() };
                self.on_lost_state.go_on(lost).map(|_| Some(flow))
            }
            None => Ok(Some(flow)),
        }
    }

    /// Where a source goes on of which the store has `stored`.
    async fn resume(&self, store: &Store, source: &Source, stored: Positions) -> Result<Positions, Error> {
        let Source { origin, seeks, .. } = source;
        let begin = |cause: BoxError| Error::Begin { origin: origin.clone(), cause };
        let mut positions = stored;
        if let Some(mark) = seeks.last_committed().await.map_err(begin)? {
            let side = Side::of(store, self.flow.as_deref(), self.sync);
            if let Some(lost) = side.judge(origin, &mark)
                && self.on_lost(lost, store)? == OnLostState::Accept
            {
                positions.overlay(&mark.positions);
            }
        }
        // A store that knows any partition has seen all that there were: later ones begin at their beginning.
        if positions.is_empty() { seeks.start().await.map_err(begin) } else { Ok(positions) }
    }

    /// State in memory ends with its process: nothing is lost that was to be kept.
    pub(super) fn on_lost(&self, lost: LostState, store: &Store) -> Result<OnLostState, Error> {
        let in_memory = store.path().is_none();
        let choice = if in_memory { OnLostState::Accept } else { self.on_lost_state };
        choice.go_on(lost)
    }
}

type Published = Arc<dyn Fn() -> Positions + Send + Sync>;

/// What a source's control knows of the running flow, as long as it runs.
pub(super) struct Link {
    control: Control,
    name: Arc<str>,
    #[cfg(feature = "rocksdb")]
    store: Option<Store>,
    /// The control has a weak one, since it outlives the flow and must not keep the store open.
    published: Published,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        #[cfg(feature = "rocksdb")]
        if let Some(store) = &self.store {
            return self.control.unlink(positions_or_none(store.positions(&self.name).map_err(Into::into)));
        }
        self.control.unlink((self.published)());
    }
}

fn positions_of(flow: &Weak<Shared>, source: u32) -> Positions {
    flow.upgrade().map_or_else(Positions::default, |flow| positions_or_none(flow.commit.positions_of(source)))
}

fn positions_or_none(read: Result<Positions, BoxError>) -> Positions {
    read.unwrap_or_else(|error| {
        tracing::warn!("the positions of a source cannot be told: {error}");
        Positions::default()
    })
}
