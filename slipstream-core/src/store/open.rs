//! Opening a store: what is checked before RocksDB touches a directory, and what is done to make it
//! a store.
//!
//! ```text
//! path ─▶ directory, absolute ─▶ claim (marked, locked) ─▶ RocksDB ─▶ catalogue
//! ```
//!
//! Invariant: RocksDB begins a new database only where there is none.
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rocksdb::{DB, Env, ReadOptions};

use super::catalogue::Catalogue;
use super::claim::Claim;
use super::database::Database;
use super::{Inner, Store, StoreError, identity, options};

/// More idle cursors than this are kept for no cache, however many processors there are.
const MOST_CURSORS: usize = 16;

impl Store {
    /// Opens the store in the directory `path`, or makes one there, with all directories above it.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when it is open already, [`StoreError::NotAStore`] when something else
    /// is there, [`StoreError::NewerVersion`] when a later version of this library wrote it,
    /// [`StoreError::Corrupt`] when it is damaged, [`StoreError::NoSpace`] and [`StoreError::Io`]
    /// when the operating system refuses.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let given = path.as_ref();
        let path = make_directory(given).map_err(|error| StoreError::from_io(given, &error))?;
        let path: Arc<Path> = Arc::from(path);
        let claim = Claim::new(&path)?;
        let db = DB::open(&options::database(None), &path)
            .map_err(|error| StoreError::from_rocksdb(&path, &error))?;
        Self::of(Database::new(db, Some(claim)), path, false)
    }

    /// Makes a store in memory, which ends with its last handle. Two are never the same.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the operating system gives RocksDB no threads or memory.
    ///
    /// ```
    /// # use slipstream_core::Store;
    /// let store = Store::in_memory()?;
    /// let counts = store.cache::<String, u64>("counts")?;
    /// counts.insert("apples", 3)?;
    /// assert_eq!(counts.get("apples")?, Some(3));
    /// # Ok::<(), slipstream_core::StoreError>(())
    /// ```
    pub fn in_memory() -> Result<Self, StoreError> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        let name: Arc<Path> = Arc::from(PathBuf::from(format!("memory:{number}")));
        // The path is one in that environment, which wants an absolute one. But the crate makes the
        // directory on disk too, so take one that is there already.
        let path =
            std::path::absolute(std::env::temp_dir()).map_err(|error| StoreError::from_io(&name, &error))?;
        let db = Env::mem_env()
            .and_then(|memory| DB::open(&options::database(Some(&memory)), path))
            .map_err(|error| StoreError::from_rocksdb(&name, &error))?;
        Self::of(Database::new(db, None), name, true)
    }

    fn of(db: Database, name: Arc<Path>, in_memory: bool) -> Result<Self, StoreError> {
        let catalogue = Mutex::new(Catalogue::open(&db, &name, in_memory)?);
        let (id, epoch) = identity::read(&db, &name, in_memory)?;
        let kept_cursors = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, MOST_CURSORS));
        let inner = Inner {
            db: Arc::new(db),
            name,
            in_memory,
            id,
            epoch: AtomicU64::new(epoch),
            read: ReadOptions::default(),
            write: options::write(in_memory),
            kept_cursors,
            unswept: AtomicUsize::new(0),
            epochs: super::epoch::Epochs::default(),
            locks: Arc::default(),
            catalogue,
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

/// Makes the directory and answers its one absolute path, which holds when the program goes to
/// another working directory.
fn make_directory(path: &Path) -> std::io::Result<PathBuf> {
    fs::create_dir_all(path)?;
    fs::canonicalize(path)
}
