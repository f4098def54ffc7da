//! Where a flow keeps its state and positions, and from where its sources go on when it starts.
//!
//! ```text
//! sinks, `.store(…)` ──▶ one store ──begin──▶ commits
//!                          │
//!   owner: this flow? ─────┤
//!   for each source:       ▼
//!     stored positions ─▶ is it the store that the source was told of? ──no──▶ on_lost_state
//!       none ─▶ start()      │
//!                            ▼
//!                one batch: what was resolved ──▶ open
//! ```
//!
//! Invariants: nothing is written before all sources and the store's owner have been asked; where a
//! source begins is stored before its first message, so a later start does not depend on what "the end"
//! means by then.
use crate::{
    commit::{Commit, Settings},
    error::Error,
    position::Positions,
    route::Routes,
};

#[cfg(feature = "rocksdb")]
use super::lost::{LostState, OnLostState, Side};
#[cfg(feature = "rocksdb")]
use crate::{
    BoxError,
    commit::Told,
    source::{AnySeekable, Control},
    store::{Store, StoreError},
};
#[cfg(feature = "rocksdb")]
use std::{fmt, sync::Arc};

/// Where a flow keeps its state and positions: the store it was given, and those of its sinks, which
/// have to be one.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    #[cfg(feature = "rocksdb")]
    pub(super) store: Option<Store>,
    #[cfg(feature = "rocksdb")]
    pub(super) on_lost_state: OnLostState,
}

/// The sources with positions of a flow that is starting, and the store that has them.
#[derive(Debug)]
pub(super) struct Resuming {
    #[cfg(feature = "rocksdb")]
    store: Option<Store>,
    #[cfg(feature = "rocksdb")]
    on_lost_state: OnLostState,
    #[cfg(feature = "rocksdb")]
    sync: bool,
    #[cfg(feature = "rocksdb")]
    flow: Option<String>,
    #[cfg(feature = "rocksdb")]
    sources: Vec<Source>,
}

/// A source with positions.
#[cfg(feature = "rocksdb")]
#[derive(Clone)]
struct Source {
    /// The flow's number for it.
    number: u32,
    /// As the attribute names it.
    origin: String,
    /// As the store names it.
    name: Arc<str>,
    seeks: Arc<dyn AnySeekable>,
}

#[cfg(feature = "rocksdb")]
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("origin", &self.origin).field("name", &self.name).finish()
    }
}

#[cfg(feature = "rocksdb")]
impl Keeping {
    /// Finds the store of a flow, and begins its commits there.
    pub(super) fn begin<C>(
        self,
        settings: Settings,
        flow: Option<&str>,
        routes: &Routes<'_, C>,
    ) -> Result<(Commit, Resuming), Error> {
        let Keeping { store, on_lost_state } = self;
        let store = the_one_store(store, routes)?;
        let sources = named_sources(routes, store.is_some())?;
        let names: Vec<_> = routes.all().map(|route| Arc::from(route.name().unwrap_or_default())).collect();
        let commit = Commit::new(settings, store.clone(), names).map_err(|cause| Error::Store { cause })?;
        let told = sources.iter().map(|Source { origin, name, seeks, .. }| Told {
            origin: origin.clone(),
            name: Arc::clone(name),
            seeks: Arc::clone(seeks),
        });
        let flow = flow.map(str::to_owned);
        let commit = commit.telling(flow.clone(), told.collect());
        Ok((commit, Resuming { store, on_lost_state, sync: settings.sync, flow, sources }))
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

#[cfg(feature = "rocksdb")]
fn named_sources<C>(routes: &Routes<'_, C>, has_store: bool) -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    for (number, route) in (0..).zip(routes.all()) {
        let Some(seeks) = route.seeks() else { continue };
        let origin = route.origin().to_owned();
        let missing = |what: &str| Error::Positions { origin: origin.clone(), what: what.to_owned() };
        let Some(name) = route.name() else {
            return Err(missing("a name, which its `identity()` has to give"));
        };
        if !has_store {
            return Err(missing(
                "a store for its positions: a `Cache` among the sinks says which, or `.store(&store)`",
            ));
        }
        sources.push(Source { number, name: Arc::from(name), seeks, origin });
    }
    Ok(sources)
}

#[cfg(feature = "rocksdb")]
impl Resuming {
    /// Where each source with positions goes on, by its number. What had to be resolved is in the store
    /// then.
    ///
    /// # Errors
    /// When the state is not that of the sources and the flow is not told to go on; when a source
    /// cannot say where it stands; when the store cannot be read or written.
    pub(super) async fn positions(&self, commit: &Commit) -> Result<Vec<(u32, Positions)>, Error> {
        let Some(store) = &self.store else { return Ok(Vec::new()) };
        let new_owner = self.owner(store)?;
        let (mut all, mut resolved) = (Vec::new(), Vec::new());
        for source in &self.sources {
            // The commits have begun: what a dropped flow was still writing is written.
            let stored =
                store.positions(&source.name).map_err(|cause| Error::Store { cause: cause.into() })?;
            let start = self.resume(store, source, stored.clone()).await?;
            if start != stored {
                resolved.push((Arc::clone(&source.name), start.clone()));
            }
            all.push((source.number, start));
        }
        let stored = commit.store_starts(resolved, new_owner.map(str::to_owned)).await;
        stored.map_err(|cause| Error::Store { cause })?;
        Ok(all)
    }

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
    fn on_lost(&self, lost: LostState, store: &Store) -> Result<OnLostState, Error> {
        let in_memory = store.path().is_none();
        let choice = if in_memory { OnLostState::Accept } else { self.on_lost_state };
        choice.go_on(lost)
    }

    /// From now on the controls of the sources tell the positions of the flow that runs.
    pub(super) fn link(self) -> Vec<Link> {
        let Some(store) = self.store else { return Vec::new() };
        let linked = self.sources.into_iter().filter_map(|Source { number, name, seeks, .. }| {
            let control = seeks.control()?.clone();
            let (store, name) = (store.clone(), name);
            let (of, known) = (store.clone(), Arc::clone(&name));
            let published: Published = Arc::new(move || positions_or_none(of.published(number, &known)));
            control.link(&published);
            Some(Link { control, store, name, _published: published })
        });
        linked.collect()
    }
}

#[cfg(feature = "rocksdb")]
type Published = Arc<dyn Fn() -> Positions + Send + Sync>;

/// What a source's control knows of the running flow, as long as it runs.
#[cfg(feature = "rocksdb")]
pub(super) struct Link {
    control: Control,
    store: Store,
    name: Arc<str>,
    /// The control has a weak one, since it outlives the flow and must not keep the store open.
    _published: Published,
}

#[cfg(feature = "rocksdb")]
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(feature = "rocksdb")]
impl Drop for Link {
    fn drop(&mut self) {
        self.control.unlink(positions_or_none(self.store.positions(&self.name)));
    }
}

#[cfg(feature = "rocksdb")]
fn positions_or_none(read: Result<Positions, StoreError>) -> Positions {
    read.unwrap_or_else(|error| {
        tracing::warn!("the positions of a source cannot be told: {error}");
        Positions::default()
    })
}

#[cfg(not(feature = "rocksdb"))]
impl Keeping {
    pub(super) fn begin<C>(
        self,
        settings: Settings,
        _: Option<&str>,
        routes: &Routes<'_, C>,
    ) -> Result<(Commit, Resuming), Error> {
        if let Some(route) = routes.all().find(|route| route.seeks().is_some()) {
            let what = "a store for its positions, which the feature `rocksdb` has".to_owned();
            return Err(Error::Positions { origin: route.origin().to_owned(), what });
        }
        Ok((Commit::new(settings), Resuming {}))
    }
}

#[cfg(not(feature = "rocksdb"))]
impl Resuming {
    pub(super) async fn positions(&self, _: &Commit) -> Result<Vec<(u32, Positions)>, Error> {
        Ok(Vec::new())
    }
    pub(super) fn link(self) -> Vec<Link> {
        Vec::new()
    }
}

#[cfg(not(feature = "rocksdb"))]
#[derive(Debug)]
pub(super) struct Link;
