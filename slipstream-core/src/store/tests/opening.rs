use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::super::*;
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
    in_use(Store::open(&path), &path);

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
    let child = || {
        let name = std::thread::current().name().unwrap().to_owned();
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name, "--nocapture"])
            .env(CHILD, &path)
            .output()
            .unwrap()
    };
    let refused = child();
    assert!(refused.status.success(), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stdout).contains("1 passed"), "{refused:?}");
    drop(store);
    let allowed = child();
    assert!(!allowed.status.success(), "the other process should have opened it: {allowed:?}");
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
    drop({
        let db = DB::open_default(&foreign).unwrap();
        db.put(b"a key", b"a value").unwrap();
        db
    });
    refused(&foreign);
    assert_eq!(DB::open_default(&foreign).unwrap().get(b"a key").unwrap().unwrap(), b"a value");

    let families = path.join("families");
    drop({
        let mut options = options::database(None);
        options.create_missing_column_families(true);
        DB::open_cf(&options, &families, ["another"]).unwrap()
    });
    refused(&families);

    let logs = path.join("logs");
    fs::create_dir(&logs).unwrap();
    fs::write(logs.join("000001.log"), "a line").unwrap();
    refused(&logs);
    assert_eq!(fs::read_to_string(logs.join("000001.log")).unwrap(), "a line");

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
    // A database with no row yet, and the files that come before it has a `CURRENT`.
    drop(DB::open(&options::database(None), path.join("a")).unwrap());
    Store::open(path.join("a")).unwrap();
    fs::create_dir(path.join("b")).unwrap();
    fs::copy(path.join("a/IDENTITY"), path.join("b/IDENTITY")).unwrap();
    fs::write(path.join("b/MANIFEST-000001"), "").unwrap();
    Store::open(path.join("b")).unwrap();
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let error = Store::open("/proc/none/such").unwrap_err();
    assert!(matches!(&error, StoreError::Io { .. }), "{error:?}");
    assert!(error.to_string().contains("/proc/none/such"), "{error}");
}

#[test]
fn stores_in_memory_are_apart_and_leave_nothing_on_disk() {
    let (one, two) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
    let (a, b) = (one.cache::<i64, i64>("c").unwrap(), two.cache::<i64, i64>("c").unwrap());
    a.insert(&1, 1).unwrap();
    assert_eq!(b.get(&1).unwrap(), None);
    assert!(!one.is(&two) && one.is(&one.clone()) && one.name() != two.name());
    assert_eq!(one.path(), None);
}
