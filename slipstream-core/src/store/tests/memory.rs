use super::super::*;
use crate::Cache;

#[test]
fn nothing_is_evicted_from_a_cache_of_sixty_megabytes() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::<u32, Vec<u64>>::open(directory.path()).unwrap();
    // Values that do not shrink when compressed.
    let value = |key: u32| -> Vec<u64> {
        (1..=128).map(|n| (u64::from(key) << 32 | n).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
    };
    for key in 0..60_000 {
        cache.insert(&key, value(key)).unwrap();
    }
    assert_eq!(cache.get(&0).unwrap(), Some(value(0)));
    assert_eq!(cache.first_key_value().unwrap(), Some((0, value(0))));
    assert_eq!(cache.keys().count(), 60_000);
}

#[test]
fn cursors_of_a_cache_that_is_read_no_more_are_let_go() {
    let store = Store::in_memory().unwrap();
    let (idle, busy) = (store.cache::<u8, u8>("idle").unwrap(), store.cache::<u8, Vec<u8>>("busy").unwrap());
    idle.insert(&1, 1).unwrap();
    idle.as_of(&1).unwrap();
    let pooled = || store.table::<u8>("idle", ValueFormat::default()).unwrap().pool.len();
    assert_eq!(pooled(), 1);
    let value = vec![7; 1 << 20];
    for _ in 0..options::WRITE_BUFFER_BYTES >> 20 {
        busy.insert(&1, &value).unwrap();
    }
    assert_eq!(pooled(), 0);
    assert_eq!(idle.as_of(&1).unwrap(), Some((1, 1)));
}

#[test]
fn a_cache_keeps_a_bounded_number_of_cursors() {
    let cache = Cache::<u8, u8>::in_memory().unwrap();
    cache.insert(&1, 1).unwrap();
    let all: Vec<_> = (0..100).map(|_| cache.iter()).collect();
    assert_eq!(all.into_iter().map(Iterator::count).sum::<usize>(), 100);
    let pooled = cache.store().table::<u8>("default", ValueFormat::default()).unwrap().pool.len();
    assert_eq!(pooled, cache.store().kept_cursors());
}

/// The memory of this process that is not in files, measured after this many rounds of warming up
/// and again after as many as are asked for: by how many bytes it has grown.
#[cfg(target_os = "linux")]
fn growth(warm_up: u32, rounds: u32, mut round: impl FnMut(u32)) -> i64 {
    // Fields in pages: all, resident, shared (with files).
    let resident = || {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: Vec<i64> = pages.split(' ').take(3).map(|field| field.parse().unwrap()).collect();
        (pages[1] - pages[2]) * 4096
    };
    (0..warm_up).for_each(&mut round);
    let before = resident();
    (warm_up..warm_up + rounds).for_each(&mut round);
    resident() - before
}

/// Set for the processes that the tests below start, so that nothing else is measured.
#[cfg(target_os = "linux")]
const CHILD: &str = "SLIPSTREAM_TEST_MEMORY";

#[cfg(target_os = "linux")]
fn grows_at_most(bytes: i64, grown: impl FnOnce() -> i64) {
    if std::env::var_os(CHILD).is_none() {
        let output = super::child::run(CHILD, "1");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let grown = grown();
    println!("grown by {grown} bytes of {bytes}");
    assert!(grown <= bytes, "memory has grown by {grown} bytes, more than {bytes}");
}

#[test]
#[cfg(target_os = "linux")]
fn look_ups_and_scans_leave_no_memory_behind() {
    grows_at_most(1 << 20, || {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::<(String, i64), String>::open(directory.path()).unwrap();
        for n in 0..1000 {
            cache.insert(&(format!("{}", n % 7), n), "value".to_owned()).unwrap();
        }
        growth(10_000, 50_000, |round| {
            let key = ("3", i64::from(round % 1000));
            cache.get(&key).unwrap();
            cache.as_of(&key).unwrap();
            cache.nearest(&key).unwrap();
            assert!(cache.prefix("3").take(3).chain(cache.range(key..).rev().take(3)).count() > 0);
            // Now and then a write, so that the cursors are refreshed.
            if round % 100 == 0 {
                cache.insert(&key, "value".to_owned()).unwrap();
            }
        })
    });
}

#[test]
#[cfg(target_os = "linux")]
fn openings_leave_no_memory_behind() {
    grows_at_most(4 << 20, || {
        // Where there is a file system in memory: an opening waits for the disk several times.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        growth(50, 150, |round| {
            let cache = Cache::<u32, String>::open(directory.path()).unwrap();
            cache.insert(&(round % 10), "value".to_owned()).unwrap();
            assert!(cache.iter().count() > 0);
            let cache = Cache::<u32, String>::in_memory().unwrap();
            cache.insert(&1, "value".to_owned()).unwrap();
            assert_eq!(cache.iter().count(), 1);
        })
    });
}
