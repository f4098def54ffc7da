//! Opening a store: what is checked before RocksDB touches a directory, and what is done to make it
//! a store.
//!
//! ```text
//! path ─▶ directory, absolute ─▶ not foreign, not beheaded ─▶ RocksDB (its lock) ─▶ catalogue
//! ```
//!
//! Invariant: RocksDB begins a new database only where no files lie that it would take for its own
//! and delete.
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rocksdb::{DB, Env, ReadOptions};

use super::catalogue::Catalogue;
use super::{Inner, Store, StoreError, options};

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
        check_files(&path)?;
        let db =
            DB::open(&options::database(None), &path).map_err(|error| StoreError::at_open(&path, &error))?;
        Self::of(db, path, false)
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
            .map_err(|error| StoreError::at_open(&name, &error))?;
        Self::of(db, name, true)
    }

    fn of(db: DB, name: Arc<Path>, in_memory: bool) -> Result<Self, StoreError> {
        let catalogue = Mutex::new(Catalogue::open(&db, &name, in_memory)?);
        let kept_cursors = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, MOST_CURSORS));
        let inner = Inner {
            db: Arc::new(db),
            name,
            in_memory,
            read: ReadOptions::default(),
            write: options::write(in_memory),
            kept_cursors,
            unswept: AtomicUsize::new(0),
            catalogue,
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

/// Makes the directory and answers its one absolute path: RocksDB knows a store of this process by
/// its path's text alone, so by another text for the same directory it would open it twice.
fn make_directory(path: &Path) -> std::io::Result<PathBuf> {
    fs::create_dir_all(path)?;
    fs::canonicalize(path)
}

/// Refuses a directory without a database where RocksDB, beginning one, would delete files.
fn check_files(path: &Arc<Path>) -> Result<(), StoreError> {
    let error = |error: &std::io::Error| StoreError::from_io(path, error);
    match fs::metadata(path.join("CURRENT")) {
        Ok(_) => return Ok(()),
        Err(missing) if missing.kind() == ErrorKind::NotFound => {}
        Err(other) => return Err(error(&other)),
    }
    let (mut data, mut database) = (None, false);
    for entry in fs::read_dir(path).map_err(|e| error(&e))? {
        let name = entry.map_err(|e| error(&e))?.file_name();
        let name = name.to_string_lossy();
        // What a first opening leaves behind that was cut short before `CURRENT` is of no account.
        database |= name.starts_with("MANIFEST-") || name == "IDENTITY";
        let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
        if matches!(extension, "sst" | "ldb" | "log" | "blob")
            && stem.bytes().all(|byte| byte.is_ascii_digit())
        {
            data = Some(name.into_owned());
        }
    }
    let path = Arc::clone(path);
    match data {
        None => Ok(()),
        Some(_) if database => {
            Err(StoreError::Corrupt { path, reason: "its file CURRENT is missing".to_owned() })
        }
        Some(file) => {
            Err(StoreError::NotAStore { path, reason: format!("a file of another program, `{file}`") })
        }
    }
}
