//! What can go wrong with a store: each error names the store, the cache where there is one, and
//! the way out.
//!
//! RocksDB reports errors as text with a kind in front; [`StoreError::while_open`] and
//! [`StoreError::at_open`] are the only places that read that text.
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
}

impl StoreError {
    /// Reads an error of RocksDB that came up in an open store.
    #[cold]
    pub(crate) fn while_open(path: &Arc<Path>, error: &rocksdb::Error) -> Self {
        let (path, text) = (Arc::clone(path), error.as_ref());
        if text.contains("No space left on device") || text.contains("Disk quota exceeded") {
            return Self::NoSpace { path };
        }
        let reason = text.to_owned();
        match error.kind() {
            ErrorKind::Corruption => Self::Corrupt { path, reason },
            ErrorKind::IOError if text.contains("No such file or directory") => {
                Self::Corrupt { path, reason }
            }
            _ => Self::Io { path, reason },
        }
    }

    /// Reads an error of RocksDB that came up when a store was opened.
    #[cold]
    pub(crate) fn at_open(path: &Arc<Path>, error: &rocksdb::Error) -> Self {
        let text = error.as_ref();
        // The first is RocksDB's own word for "twice in this process", the second the system's for another.
        let in_use = ["lock hold by current process", "Resource temporarily unavailable"];
        if text.contains("/LOCK") && in_use.iter().any(|sign| text.contains(sign)) {
            return Self::InUse { path: Arc::clone(path) };
        }
        match error.kind() {
            // Column families, a comparator, a compression or a merge operator that we never use.
            ErrorKind::InvalidArgument | ErrorKind::NotSupported => Self::NotAStore {
                path: Arc::clone(path),
                reason: format!("another program's RocksDB database ({text})"),
            },
            _ => Self::while_open(path, error),
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
    fn an_error_is_small_enough_to_be_returned_by_every_look_up() {
        assert!(size_of::<StoreError>() <= 112, "{} bytes", size_of::<StoreError>());
    }
}
