//! The claim on a directory: a file of ours that marks it as a store and is locked while the store is
//! open.
//!
//! A directory is known for a store by that file, since to ask RocksDB is to change what it finds:
//! it writes a new manifest, compacts, and deletes what that does not name. And the file's lock is
//! asked before RocksDB's own, which knows a store of this process by the text of its path alone,
//! and is asked only after RocksDB has moved its log away from under the owner.
//!
//! Invariants: another program's files are neither read nor changed; the mark is on disk before the
//! first file of the database, so no crash leaves a database that nobody owns.
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use super::StoreError;

/// The file that marks a store.
pub(super) const MARK: &str = "SLIPSTREAM";
const MARK_TEXT: &[u8] =
    b"This directory is a store of Slipstream. Its files belong together: move or copy all of them,\n\
    and only while no program has it open.\n";
/// RocksDB's file that leads to all others.
const HEAD: &str = "CURRENT";

/// The lock on a store's directory, until it is dropped.
#[derive(Debug)]
pub(super) struct Claim(File);

impl Claim {
    /// Claims the directory, or refuses it: where RocksDB would take another program's files for its
    /// own, where it would begin anew beside rows that are there, and where the store is open.
    pub(super) fn new(path: &Arc<Path>) -> Result<Self, StoreError> {
        let found = Found::look(path).map_err(|error| StoreError::from_io(path, &error))?;
        let path = Arc::clone(path);
        if let Found { marked: true, headed: false, data: Some(_) } = found {
            return Err(StoreError::Corrupt { path, reason: format!("its file {HEAD} is missing") });
        }
        if let Found { marked: false, headed, data } = found
            && let Some(file) = data.or_else(|| headed.then(|| HEAD.to_owned()))
        {
            let reason = format!("a file `{file}` without the file {MARK} that marks a store");
            return Err(StoreError::NotAStore { path, reason });
        }
        let file = mark(&path).map_err(|error| StoreError::from_io(&path, &error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path }),
            // A file system without such locks leaves it to RocksDB's.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Self(file)),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // To close the file is not enough while a process that is being started has a copy of it.
        let _ = self.0.unlock();
    }
}

/// What is in a directory.
struct Found {
    /// A file that RocksDB would take for one with rows.
    data: Option<String>,
    headed: bool,
    marked: bool,
}

impl Found {
    fn look(path: &Path) -> io::Result<Self> {
        // In the opposite order to that in which they are made, so that another opening at the same
        // time is never met half done.
        let data = find_data(path)?;
        let headed = fs::exists(path.join(HEAD))?;
        let marked = fs::exists(path.join(MARK))?;
        Ok(Self { data, headed, marked })
    }
}

fn find_data(path: &Path) -> io::Result<Option<String>> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
        if matches!(extension, "sst" | "ldb" | "log" | "blob")
            && stem.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Ok(Some(name.into_owned()));
        }
    }
    Ok(None)
}

/// Opens the file that marks a store, or makes it.
fn mark(path: &Path) -> io::Result<File> {
    let mark = path.join(MARK);
    match File::create_new(&mark) {
        Ok(mut file) => {
            file.write_all(MARK_TEXT)?;
            file.sync_all()?;
            #[cfg(unix)]
            File::open(path)?.sync_all()?;
            Ok(file)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            OpenOptions::new().read(true).write(true).open(mark)
        }
        Err(error) => Err(error),
    }
}
