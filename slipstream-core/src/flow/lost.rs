//! State that was lost: a store that is not the one its sources were read into, and what a flow does
//! then.
//!
//! Each commit tells its sources the flow's name, the store's identity and the number of the commit. At
//! the start they tell it back:
//!
//! | the source heard | the store is | |
//! |---|---|---|
//! | nothing | any | go on |
//! | this flow, this store, a commit that it has | | go on |
//! | this flow, this store, a later commit | an older copy (without sync: what a power loss left) | lost (go on) |
//! | this flow, another store | new, or swapped | lost |
//! | another flow | any | lost |
//!
//! A flow without a name cannot be told from another one: names are compared where there are two.
use crate::{
    error::Error,
    source::Mark,
    store::{Store, StoreId},
};
use std::{path::Path, sync::Arc};

/// What a flow does when its store is not the one that its sources were read into: the store was lost,
/// put back from an older copy, swapped, or is another flow's. See [`LostState`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLostState {
    /// It does not start, and ends with an error that names both sides and these choices.
    #[default]
    Stop,
    /// It goes on from this store's positions, or where the sources begin: the messages since then are
    /// handled again, and build the state anew.
    Rebuild,
    /// It goes on where the sources were, with the state as it is: what the messages before had written
    /// is missing.
    Accept,
}

impl OnLostState {
    /// An error, or on with a line in the log.
    pub(super) fn go_on(self, lost: LostState) -> Result<Self, Error> {
        match self {
            OnLostState::Stop => return Err(Error::LostState { cause: lost.into() }),
            OnLostState::Rebuild => tracing::warn!("going on from the positions of this store: {lost}"),
            OnLostState::Accept => tracing::warn!("going on where the source was: {lost}"),
        }
        Ok(self)
    }
}

/// The choices that each error names.
macro_rules! choices {
    () => {
        "; put it right, or choose: `.on_lost_state(OnLostState::Rebuild)` goes on from this store's positions \
         and builds the state anew, `.on_lost_state(OnLostState::Accept)` goes on where the sources were, without \
         what they had made"
    };
}

/// In what way the state is not that of the sources: the cause of [`Error::LostState`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LostState {
    /// The source was read into another store.
    #[error(
        "source `{origin}` was read into store {heard} up to its commit {heard_epoch}, but the store at `{}` \
         is {id}, at commit {epoch}: it was lost or swapped, or another process that shares the source has no \
         `.instance(…)` of its own{}", path.display(), choices!()
    )]
    AnotherStore {
        /// The source, as the attribute names it.
        origin: String,
        /// The identity of the store that the source was told of.
        heard: String,
        /// The number of the commit that the source was last told of.
        heard_epoch: u64,
        /// The store that there is.
        path: Arc<Path>,
        /// Its identity.
        id: StoreId,
        /// The number of its last commit.
        epoch: u64,
    },
    /// The source was told of commits that the store does not have.
    #[error(
        "source `{origin}` was read into store {id} up to its commit {heard_epoch}, but the store at `{}` is at \
         commit {epoch}: it is an older copy{}", path.display(), choices!()
    )]
    OlderStore {
        /// The source, as the attribute names it.
        origin: String,
        /// The number of the commit that the source was last told of.
        heard_epoch: u64,
        /// The store.
        path: Arc<Path>,
        /// Its identity.
        id: StoreId,
        /// The number of its last commit.
        epoch: u64,
    },
    /// The source was read by another flow.
    #[error(
        "source `{origin}` was read by flow `{heard}` into store {heard_store} up to its commit {heard_epoch}, but \
         this is flow `{flow}`, and the store at `{}` is {id}, at commit {epoch}{}", path.display(), choices!()
    )]
    AnotherFlow {
        /// The source, as the attribute names it.
        origin: String,
        /// The flow that the source was told of.
        heard: String,
        /// The identity of the store that the source was told of.
        heard_store: String,
        /// The number of the commit that the source was last told of.
        heard_epoch: u64,
        /// This flow.
        flow: String,
        /// Its store.
        path: Arc<Path>,
        /// The store's identity.
        id: StoreId,
        /// The number of its last commit.
        epoch: u64,
    },
    /// The store belongs to another flow.
    #[error(
        "the store at `{}` belongs to flow `{owner}`, and this is flow `{flow}`{}", path.display(), choices!()
    )]
    AnotherOwner {
        /// The store.
        path: Arc<Path>,
        /// The flow that it belongs to: the first one with a name that ran over it.
        owner: String,
        /// This flow.
        flow: String,
    },
}

/// This side of the comparison: the flow and its store.
pub(super) struct Side<'a> {
    flow: Option<&'a str>,
    path: Arc<Path>,
    id: StoreId,
    epoch: u64,
    sync: bool,
}

impl<'a> Side<'a> {
    pub(super) fn of(store: &Store, flow: Option<&'a str>, sync: bool) -> Self {
        Side { flow, path: store.name(), id: store.id(), epoch: store.epoch(), sync }
    }

    /// Whether the store is the one that the source `origin` was told of, in `mark`.
    pub(super) fn judge(&self, origin: &str, mark: &Mark) -> Option<LostState> {
        let (origin, path, id, epoch) = (origin.to_owned(), Arc::clone(&self.path), self.id, self.epoch);
        let (heard, heard_epoch) = (mark.store.clone(), mark.epoch);
        if let (Some(flow), Some(other)) = (self.flow, &mark.flow)
            && flow != other
        {
            let (flow, heard_store, heard) = (flow.to_owned(), heard, other.clone());
            return Some(LostState::AnotherFlow {
                origin,
                heard,
                heard_store,
                heard_epoch,
                flow,
                path,
                id,
                epoch,
            });
        }
        if heard != id.to_string() {
            return Some(LostState::AnotherStore { origin, heard, heard_epoch, path, id, epoch });
        }
        if heard_epoch <= epoch {
            return None;
        }
        let older = LostState::OlderStore { origin, heard_epoch, path, id, epoch };
        if self.sync {
            return Some(older);
        }
        tracing::warn!("without sync a power loss may have taken the last commits: {older}");
        None
    }
}
