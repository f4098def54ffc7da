use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use rocksdb::DB;

use super::super::claim::MARK;
use super::super::*;
use super::child;
use crate::Cache;

/// Set for the process that `another_process_cannot_open_it` starts.
const CHILD: &str = "SLIPSTREAM_TEST_OPEN";

fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    (directory, path)
}

#[track_caller]
fn in_use(opened: Result<Store, StoreError>, path: &Path) {
    let error = opened.unwrap_err();
    assert!(matches!(&error, StoreError::InUse { path: named } if **named == *path), "{error:?}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn a_second_opening_is_refused_until_all_of_the_first_is_gone() {
    let (_directory, path) = directory();
    let store = Store::open(&path).unwrap();
    // Nor does it touch a file of the first, such as RocksDB's log.
    let before = files(&path);
    in_use(Store::open(&path), &path);
    assert_eq!(files(&path), before);

    let cache = store.cache::<i64, u8>("cache").unwrap();
    cache.insert(&1, 1).unwrap();
    drop(store);
    in_use(Store::open(&path), &path);

    let rows = cache.iter();
    drop(cache);
    in_use(Store::open(&path), &path);

    drop(rows);
    let again = Store::open(&path).unwrap();
    assert_eq!(again.cache::<i64, u8>("cache").unwrap().get(&1).unwrap(), Some(1));
    assert_eq!(again.path(), Some(&*path));
}

#[test]
fn of_threads_that_open_one_new_store_one_has_it() {
    let (_directory, path) = directory();
    for round in 0..10 {
        let path = path.join(round.to_string());
        let barrier = std::sync::Barrier::new(4);
        let opened: Vec<_> = std::thread::scope(|scope| {
            let open = || {
                barrier.wait();
                Store::open(&path)
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (opened, refused): (Vec<_>, Vec<_>) = opened.into_iter().partition(Result::is_ok);
        assert_eq!(opened.len(), 1);
        refused.into_iter().for_each(|refused| in_use(refused, &path));
    }
}

#[test]
fn another_way_to_write_the_path_is_the_same_store() {
    let (_directory, path) = directory();
    let store = Store::open(path.join("state")).unwrap();
    in_use(Store::open(path.join("state").join("..").join("state")), &path.join("state"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(path.join("state"), path.join("link")).unwrap();
        in_use(Store::open(path.join("link")), &path.join("state"));
    }
    drop(store);
    Store::open(path.join("state")).unwrap();
}

#[test]
fn a_store_opens_again_after_a_panic() {
    let (_directory, path) = directory();
    let panicked = std::panic::catch_unwind(|| {
        let cache = Cache::<i64, u8>::open(&path).unwrap();
        cache.insert(&1, 1).unwrap();
        let _rows = cache.iter();
        in_use(Store::open(&path), &path);
        panic!("in the handler");
    });
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"in the handler"));
    assert_eq!(Cache::<i64, u8>::open(&path).unwrap().get(&1).unwrap(), Some(1));
}

#[test]
fn another_process_cannot_open_it() {
    if let Some(path) = std::env::var_os(CHILD) {
        let path = PathBuf::from(path);
        in_use(Store::open(&path), &path);
        return;
    }
    let (_directory, path) = directory();
    let store = Store::open(&path).unwrap();
    let child = || child::run(CHILD, &path);
    let refused = child();
    assert!(refused.status.success(), "{refused:?}");
    drop(store);
    let allowed = child();
    assert!(!allowed.status.success(), "the other process should have opened it: {allowed:?}");
}

/// The files of a directory and what is in them.
fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

#[test]
fn what_is_not_a_store_is_refused_and_left_as_it_is() {
    let (_directory, path) = directory();
    let refused = |path: &Path| {
        let error = Store::open(path).unwrap_err();
        assert!(matches!(&error, StoreError::NotAStore { .. }), "{error:?}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    };

    let foreign = path.join("foreign");
    DB::open_default(&foreign).unwrap().put(b"a key", b"a value").unwrap();
    let before = files(&foreign);
    refused(&foreign);
    assert_eq!(files(&foreign), before);

    let logs = path.join("logs");
    fs::create_dir(&logs).unwrap();
    fs::write(logs.join("000001.log"), "a line").unwrap();
    let before = files(&logs);
    refused(&logs);
    assert_eq!(files(&logs), before);

    fs::write(path.join("file"), "text").unwrap();
    refused(&path.join("file"));

    // Files that RocksDB has no name for do no harm: a volume's `lost+found`, a `.gitkeep`.
    fs::create_dir_all(path.join("volume/lost+found")).unwrap();
    fs::write(path.join("volume/.gitkeep"), "").unwrap();
    Store::open(path.join("volume")).unwrap();
}

#[test]
fn a_store_or_a_cache_of_a_newer_layout_is_refused() {
    let (_directory, path) = directory();
    drop(Store::open(&path).unwrap().cache::<i64, i64>("old").unwrap());
    let write = |key: &[u8], value: &[u8]| {
        DB::open(&options::database(None), &path).unwrap().put(key, value).unwrap();
    };
    write(&[0, 0, 0, 0, 0], b"slipstream\x00\x00\x00\x02");
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::NewerVersion { found: 2, known: 1, .. }), "{error:?}");
    write(&[0, 0, 0, 0, 0], b"slipstream\x00\x00\x00\x01");

    let row =
        serde_json::json!({"id": 9, "layout": 2, "keys": "i64", "values": "messagepack", "later": true});
    write(b"\0\0\0\0\x01new", &rmp_serde::to_vec_named(&row).unwrap());
    let store = Store::open(&path).unwrap();
    let error = store.cache::<i64, i64>("new").unwrap_err();
    assert!(matches!(error, StoreError::NewerVersion { found: 2, known: 1, .. }), "{error:?}");
    store.cache::<i64, i64>("old").unwrap();
    // Its id is taken nevertheless.
    assert_eq!(store.table::<i64>("another", ValueFormat::Json).unwrap().id(), 10);
}

#[test]
fn an_opening_that_was_cut_short_is_taken_up_again() {
    let (_directory, path) = directory();
    fs::write(path.join(MARK), "").unwrap();
    Store::open(&path).unwrap();
    // Before there is a `CURRENT`, and before there is a row.
    let early = path.join("early");
    fs::create_dir(&early).unwrap();
    for file in [MARK, "IDENTITY"] {
        fs::copy(path.join(file), early.join(file)).unwrap();
    }
    fs::write(early.join("MANIFEST-000001"), "").unwrap();
    Store::open(&early).unwrap();
    let late = path.join("late");
    drop(DB::open(&options::database(None), &late).unwrap());
    fs::copy(path.join(MARK), late.join(MARK)).unwrap();
    Store::open(&late).unwrap();
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let error = Store::open("/proc/none/such").unwrap_err();
    assert!(matches!(&error, StoreError::Io { .. }), "{error:?}");
    assert!(error.to_string().contains("/proc/none/such"), "{error}");
}

#[test]
fn stores_in_memory_are_apart() {
    let (one, two) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
    let (a, b) = (one.cache::<i64, i64>("c").unwrap(), two.cache::<i64, i64>("c").unwrap());
    a.insert(&1, 1).unwrap();
    assert_eq!(b.get(&1).unwrap(), None);
    assert!(!one.is(&two) && one.is(&one.clone()) && one.name() != two.name());
    assert_eq!(one.path(), None);
}
