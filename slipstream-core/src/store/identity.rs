//! Who a store is: its identity, the number of its last commit, and the flow that it belongs to.
//!
//! ```text
//! 00 00 00 00 │ 04 00  ──▶  identity, 16 random bytes
//! 00 00 00 00 │ 04 01  ──▶  epoch of the last commit, u64
//! 00 00 00 00 │ 04 02  ──▶  name of the flow, UTF-8
//! ```
//!
//! What lies outside of the store (the offsets of a consumer group) names identity and epoch, so that
//! a store that was lost, swapped or set back is told from the one that it belongs to.
//!
//! Invariants: the identity is written with the first row of a store, and never changes; the epoch is
//! written in the batch of its commit, and grows by one with each.
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rocksdb::{DB, WriteBatch};
use serde::{Deserialize, Serialize};

use super::catalogue::damaged;
use super::rows::Rows;
use super::{ID_BYTES, Store, StoreError, options};

const IDENTITY_ROW: [u8; ID_BYTES + 2] = [0, 0, 0, 0, 4, 0];
const EPOCH_ROW: [u8; ID_BYTES + 2] = [0, 0, 0, 0, 4, 1];
const OWNER_ROW: [u8; ID_BYTES + 2] = [0, 0, 0, 0, 4, 2];

/// The identity of a [`Store`]: 128 random bits, drawn when the store is made.
///
/// As text it is 32 hexadecimal digits, which `parse` reads again; serde writes that text too.
///
/// ```
/// use slipstream_core::{Store, store::StoreId};
///
/// let store = Store::in_memory()?;
/// let text = store.id().to_string();
/// assert_eq!(text.len(), 32);
/// assert_eq!(text.parse::<StoreId>()?, store.id());
/// assert_ne!(Store::in_memory()?.id(), store.id());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct StoreId(u128);

impl StoreId {
    fn random(path: &Path) -> Result<Self, StoreError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| StoreError::Io {
            path: Arc::from(path),
            reason: format!("the operating system gave no random numbers: {error}"),
        })?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }

    fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreId({self})")
    }
}

impl From<StoreId> for String {
    fn from(id: StoreId) -> Self {
        id.to_string()
    }
}

/// A text that is not a [`StoreId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not the identity of a store, which is 32 hexadecimal digits")]
pub struct StoreIdError {
    text: String,
}

impl FromStr for StoreId {
    type Err = StoreIdError;

    fn from_str(text: &str) -> Result<Self, StoreIdError> {
        // Without this a sign in front, or fewer digits, would do.
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        number.map(Self).ok_or_else(|| StoreIdError { text: text.to_owned() })
    }
}

impl TryFrom<String> for StoreId {
    type Error = StoreIdError;

    fn try_from(text: String) -> Result<Self, StoreIdError> {
        text.parse()
    }
}

/// Adds an identity to the first batch of a new store.
pub(super) fn begin(batch: &mut WriteBatch, path: &Path) -> Result<(), StoreError> {
    batch.put(IDENTITY_ROW, StoreId::random(path)?.to_bytes());
    Ok(())
}

/// The identity of a database, which gets one if an earlier version, that had none, has made it; and
/// the epoch of its last commit.
pub(super) fn read(db: &DB, path: &Arc<Path>, in_memory: bool) -> Result<(StoreId, u64), StoreError> {
    let error = |error: rocksdb::Error| StoreError::from_rocksdb(path, &error);
    let id = match db.get_pinned(IDENTITY_ROW).map_err(error)? {
        Some(row) => row.as_ref().try_into().map(|bytes| StoreId(u128::from_be_bytes(bytes))),
        None => {
            let id = StoreId::random(path)?;
            db.put_opt(IDENTITY_ROW, id.to_bytes(), &options::durable(in_memory)).map_err(error)?;
            Ok(id)
        }
    };
    let id = id.map_err(|_| damaged(path, "the row of its identity has not 16 bytes".to_owned()))?;
    let epoch = match db.get_pinned(EPOCH_ROW).map_err(error)? {
        Some(row) => row.as_ref().try_into().map(u64::from_be_bytes),
        None => Ok(0),
    };
    let epoch = epoch.map_err(|_| damaged(path, "the row of its epoch has not 8 bytes".to_owned()))?;
    Ok((id, epoch))
}

/// The row that gives a commit its number.
pub(super) fn numbered(epoch: u64) -> Rows {
    let mut rows = Rows::default();
    rows.set(&EPOCH_ROW, Some(&epoch.to_be_bytes()));
    rows
}

impl Store {
    /// The store's identity: drawn at random when it was made, and the same for ever, also in a copy
    /// of its directory. A store in memory has one for its life.
    #[must_use]
    pub fn id(&self) -> StoreId {
        self.inner.id
    }

    /// The number of the last commit of a flow over this store; 0 before the first. It is written in
    /// the same batch as the commit's rows and positions and grows by one with each, so of two copies
    /// of a store the one with the lower number is the older. What a program writes while no flow runs
    /// is not a commit and is not counted.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.inner.epoch.load(Ordering::Acquire)
    }

    /// The name of the flow that the store belongs to; `None` until one is set.
    ///
    /// # Errors
    /// Those of a read, and [`StoreError::Corrupt`] when the name is not text.
    pub(crate) fn owner(&self) -> Result<Option<String>, StoreError> {
        let Some(row) = self.get(&OWNER_ROW)? else { return Ok(None) };
        let name = String::from_utf8(row.to_vec())
            .map_err(|_| damaged(&self.inner.name, "the name of the flow that it belongs to".to_owned()))?;
        Ok(Some(name))
    }

    /// Says which flow the store belongs to. It is on the disk when this returns, which blocks until
    /// then.
    ///
    /// # Errors
    /// Those of a write.
    pub(crate) fn set_owner(&self, flow: &str) -> Result<(), StoreError> {
        let mut batch = WriteBatch::new();
        batch.put(OWNER_ROW, flow);
        self.write_with(batch, &options::durable(self.inner.in_memory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Position;

    fn commit(store: &Store, offset: i64) {
        let turn = store.begin_epochs(vec![Arc::from("source")]).unwrap();
        store.publish(Some(turn), &[], Rows::default(), Some(((0, 3), Position::new(3, offset)))).unwrap();
        let frozen = store.freeze().unwrap();
        store.write_frozen(&frozen, true).unwrap();
        store.thaw(frozen);
        assert!(store.end_epochs());
    }

    #[test]
    fn identity_epoch_and_owner_outlast_the_process() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let id = store.id();
        assert_eq!((store.epoch(), store.owner().unwrap()), (0, None));
        commit(&store, 7);
        commit(&store, 8);
        store.set_owner("sky").unwrap();
        drop(store);
        let store = Store::open(directory.path()).unwrap();
        assert_eq!((store.id(), store.epoch(), store.owner().unwrap()), (id, 2, Some("sky".to_owned())));
        commit(&store, 9);
        assert_eq!(store.epoch(), 3);
        assert_eq!(store.positions("source").unwrap().next(3), Some(10));
    }

    #[test]
    fn a_store_of_an_earlier_version_gets_an_identity_and_keeps_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let before = store.id();
        store.set(&IDENTITY_ROW, None).unwrap();
        drop(store);
        let store = Store::open(directory.path()).unwrap();
        let id = store.id();
        assert_ne!(id, before);
        drop(store);
        assert_eq!(Store::open(directory.path()).unwrap().id(), id);
    }

    #[test]
    fn a_row_that_is_not_one_is_an_error_that_names_the_store() {
        for row in [IDENTITY_ROW, EPOCH_ROW] {
            let directory = tempfile::tempdir().unwrap();
            Store::open(directory.path()).unwrap().set(&row, Some(b"none")).unwrap();
            let error = Store::open(directory.path()).unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
        }
    }

    #[test]
    fn a_commit_that_fails_has_no_number() {
        let store = Store::in_memory().unwrap();
        let turn = store.begin_epochs(vec![]).unwrap();
        let mut rows = Rows::default();
        rows.set(&[0, 0, 0, 1, 7], Some(&[1]));
        store.publish(Some(turn), &[], rows, None).unwrap();
        store.fail_at(1);
        store.write_frozen(&store.freeze().unwrap(), false).unwrap_err();
        assert_eq!(store.epoch(), 0);
    }

    #[test]
    fn an_identity_is_its_text() {
        let id = Store::in_memory().unwrap().id();
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, format!("\"{id}\""));
        assert_eq!(serde_json::from_str::<StoreId>(&json).unwrap(), id);
        assert_eq!("0000000000000000000000000000002a".parse(), Ok(StoreId(42)));
        for text in ["", "2a", "+000000000000000000000000000002a", "g000000000000000000000000000002a"] {
            let error = text.parse::<StoreId>().unwrap_err();
            assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }
}
