//! What a source is told of a commit, so that it knows at the next start whether the store is the one
//! it was read into.
use crate::position::Positions;
use serde::{Deserialize, Serialize};

/// What a source with positions is told of each commit
/// ([`Seekable::committed`](crate::Seekable::committed)), and asked for at the start of a flow: into which
/// store it was read, and how far. It is what Kafka keeps beside a group's offsets; a source of your own may
/// keep it in any format of serde, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Mark {
    /// The flow's name, if it has one.
    pub flow: Option<String>,
    /// The store's identity, as text: made once, when the store was, and in no other store.
    pub store: String,
    /// The number of the commit in that store.
    pub epoch: u64,
    /// Where this source's partitions go on after it.
    pub positions: Positions,
}

impl Mark {
    /// The mark of a commit of `flow` into the store of identity `store`.
    #[must_use]
    pub fn new(flow: Option<String>, store: impl Into<String>, epoch: u64, positions: Positions) -> Self {
        Mark { flow, store: store.into(), epoch, positions }
    }
}
