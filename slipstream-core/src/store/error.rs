//! What can go wrong with a store: each error names the store, the cache where there is one, and
//! the way out.
//!
//! RocksDB reports errors as text with a kind in front; [`StoreError::from_rocksdb`] is the only
//! place that reads that text.
use std::borrow::Cow;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use rocksdb::ErrorKind;

use super::ValueFormat;
use crate::key::KeyError;

/// What can go wrong with a [`Store`](crate::Store) or a [`Cache`](crate::Cache).
///
/// A store in memory has no path; `memory:1` stands for the first one of the process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store is open already, here or elsewhere: a store has one owner.
    #[error(
        "the store at `{}` is open already, in this process or another: share it by cloning its \
         `Store`, or stop the other process", path.display()
    )]
    InUse {
        /// The store's directory.
        path: Arc<Path>,
    },
    /// The directory holds something else.
    #[error("there is no store at `{}` but {reason}: choose another directory", path.display())]
    NotAStore {
        /// The directory.
        path: Arc<Path>,
        /// What is there.
        reason: String,
    },
    /// The store, or one of its caches, has a layout that this version does not know.
    #[error(
        "the store at `{}` has layout {found}, and this version of Slipstream knows layouts up to \
         {known}: update the program", path.display()
    )]
    NewerVersion {
        /// The store's directory.
        path: Arc<Path>,
        /// The layout on disk.
        found: u32,
        /// The newest layout that this version reads.
        known: u32,
    },
    /// A cache needs a name that is not empty.
    #[error("a cache of the store at `{}` was asked for with an empty name: give it one", path.display())]
    NoName {
        /// The store's directory.
        path: Arc<Path>,
    },
    /// The cache has keys of another format.
    #[error(
        "cache `{cache}` of the store at `{}` has keys of format `{stored}` and was opened for keys of \
         format `{asked}`: use the key type it was made with, or another name", path.display()
    )]
    KeyFormat {
        /// The store's directory.
        path: Arc<Path>,
        /// The cache's name.
        cache: Arc<str>,
        /// The format of the keys in the store.
        stored: String,
        /// The format of the key type that was asked for.
        asked: Cow<'static, str>,
    },
    /// The cache has values of another format.
    #[error(
        "cache `{cache}` of the store at `{}` has values of format `{stored}` and was opened for values \
         of format `{asked}`: use `cache_as` with the format it was made with, or another name",
        path.display()
    )]
    ValueFormat {
        /// The store's directory.
        path: Arc<Path>,
        /// The cache's name.
        cache: Arc<str>,
        /// The format of the values in the store.
        stored: String,
        /// The format that was asked for.
        asked: ValueFormat,
    },
    /// A file of the store is missing, cut short, or altered.
    #[error(
        "the store at `{}` is damaged ({reason}): put back a copy of the directory, or remove it and \
         let it be built anew from the sources", path.display()
    )]
    Corrupt {
        /// The store's directory.
        path: Arc<Path>,
        /// What was found.
        reason: String,
    },
    /// The disk, or the user's share of it, is full.
    #[error("no space is left for the store at `{}`: free some, then open the store again", path.display())]
    NoSpace {
        /// The store's directory.
        path: Arc<Path>,
    },
    /// The operating system refused to read or write.
    #[error(
        "the store at `{}` cannot be read or written ({reason}): check the directory, its owner and \
         its disk", path.display()
    )]
    Io {
        /// The store's directory.
        path: Arc<Path>,
        /// The operating system's reason, or RocksDB's.
        reason: String,
    },
    /// A key cannot be written, or the bytes in the store are not such a key.
    #[error("cache `{cache}` of the store at `{}` cannot take or read a key", path.display())]
    Key {
        /// The store's directory.
        path: Arc<Path>,
        /// The cache's name.
        cache: Arc<str>,
        /// What is wrong with the key.
        source: KeyError,
    },
    /// A value cannot be written in the cache's format.
    #[error("cache `{cache}` of the store at `{}` cannot write a `{value_type}` as {format}", path.display())]
    Encode {
        /// The store's directory.
        path: Arc<Path>,
        /// The cache's name.
        cache: Arc<str>,
        /// The Rust type of the value.
        value_type: &'static str,
        /// The cache's value format.
        format: ValueFormat,
        /// What the format, or the type's own `Serialize`, has to say.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A value in the store is not one of the type that was asked for.
    #[error(
        "cache `{cache}` of the store at `{}` has, under the key {key} of type `{key_type}`, {format} \
         that is not a `{value_type}`: read it with the type it was written with, or give fields that \
         are new a default", path.display()
    )]
    Decode {
        /// The store's directory.
        path: Arc<Path>,
        /// The cache's name.
        cache: Arc<str>,
        /// The key as it is stored, unprintable bytes escaped; at most its first 64 bytes.
        key: String,
        /// The Rust type of the key.
        key_type: &'static str,
        /// The Rust type of the value that was asked for.
        value_type: &'static str,
        /// The cache's value format.
        format: ValueFormat,
        /// What does not fit.
        source: Box<dyn Error + Send + Sync>,
    },
    /// One message wrote to two stores, which cannot be one transaction.
    #[error(
        "a message that wrote to the store at `{}` may not write to the one at `{}`: keep the caches \
         of one flow in one store", first.display(), second.display()
    )]
    TwoStores {
        /// The store that the message wrote to first.
        first: Arc<Path>,
        /// The other one.
        second: Arc<Path>,
    },
    /// A message locks once, so that no two messages wait for each other.
    #[error(
        "a message that has a lock, or waits for one, asked for another in cache `{cache}` of the store at \
         `{}`: lock all keys in one call of `lock_all`", path.display()
    )]
    SecondLock {
        /// The store's directory.
        path: Arc<Path>,
        /// The cache in which the second was asked for.
        cache: Arc<str>,
    },
    /// Two flows may not run over one store: each would commit the other's messages.
    #[error(
        "a flow is running over the store at `{}` already: put the handlers into one flow, or give the \
         other its own store", path.display()
    )]
    Running {
        /// The store's directory.
        path: Arc<Path>,
    },
    /// The handlers mounted on a cache are behind with what was written to it from outside of messages.
    #[error(
        "{waiting} changes of a cache of the store at `{}` wait for the handlers that read it: write more \
         slowly, or from a handler", path.display()
    )]
    Behind {
        /// The store's directory.
        path: Arc<Path>,
        /// How many changes wait.
        waiting: usize,
    },
    /// A commit has failed, and what came after the last good one was dropped.
    #[error(
        "a commit to the store at `{}` has failed, so nothing more is stored: the flow ends with the \
         reason", path.display()
    )]
    CommitFailed {
        /// The store's directory.
        path: Arc<Path>,
    },
}

impl StoreError {
    /// Reads an error of RocksDB.
    #[cold]
    pub(crate) fn from_rocksdb(path: &Arc<Path>, error: &rocksdb::Error) -> Self {
        Self::from_text(path, &error.kind(), error.as_ref())
    }

    fn from_text(path: &Arc<Path>, kind: &ErrorKind, text: &str) -> Self {
        let (path, reason) = (Arc::clone(path), text.to_owned());
        let says = |signs: &[&str]| signs.iter().any(|sign| text.contains(sign));
        if says(&["No space left on device", "Disk quota exceeded"]) {
            return Self::NoSpace { path };
        }
        // RocksDB's own word for "twice in this process", and the system's for another process.
        if says(&["/LOCK"]) && says(&["lock hold by current process", "Resource temporarily unavailable"]) {
            return Self::InUse { path };
        }
        match kind {
            ErrorKind::Corruption => Self::Corrupt { path, reason },
            ErrorKind::IOError if says(&["No such file or directory"]) => Self::Corrupt { path, reason },
            // Column families, a comparator, a compression or a merge operator that a store never has.
            ErrorKind::InvalidArgument | ErrorKind::NotSupported => Self::Corrupt { path, reason },
            _ => Self::Io { path, reason },
        }
    }

    /// Reads an error of the operating system.
    #[cold]
    pub(crate) fn from_io(path: &Path, error: &std::io::Error) -> Self {
        let path = Arc::from(path);
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::NoSpace { path },
            std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::NotADirectory => {
                Self::NotAStore { path, reason: "a file".to_owned() }
            }
            _ => Self::Io { path, reason: error.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_rocksdb_are_told_apart() {
        use ErrorKind::{Corruption, IOError, InvalidArgument, TimedOut};
        let path: Arc<Path> = Arc::from(Path::new("state"));
        let read = |kind, text: &str| StoreError::from_text(&path, &kind, text);
        let full = "IO error: No space left on device: While appending to file: state/8.log: No space left on device";
        assert!(matches!(read(IOError, full), StoreError::NoSpace { .. }));
        let held = "IO error: lock hold by current process, acquire time 1 acquiring thread 2: state/LOCK: No locks available";
        assert!(matches!(read(IOError, held), StoreError::InUse { .. }));
        let elsewhere = "IO error: While lock file: state/LOCK: Resource temporarily unavailable";
        assert!(matches!(read(IOError, elsewhere), StoreError::InUse { .. }));
        let missing = "IO error: No such file or directory: While open a file for random read: state/9.sst";
        assert!(matches!(read(IOError, missing), StoreError::Corrupt { .. }));
        let altered = "Corruption: block checksum mismatch in state/9.sst offset 0 size 722";
        assert!(matches!(read(Corruption, altered), StoreError::Corrupt { .. }));
        let families = "Invalid argument: Column families not opened: another";
        assert!(matches!(read(InvalidArgument, families), StoreError::Corrupt { .. }));
        let refused = "IO error: While open a file for lock: state/LOCK: Permission denied";
        assert!(matches!(read(IOError, refused), StoreError::Io { .. }));
        assert!(matches!(read(TimedOut, "Operation timed out"), StoreError::Io { .. }));
    }

    #[test]
    fn an_error_is_small_enough_to_be_returned_by_every_look_up() {
        assert!(size_of::<StoreError>() <= 112, "{} bytes", size_of::<StoreError>());
    }
}
