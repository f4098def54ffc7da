//! A store with a file that was altered, cut short, or lost: it opens with what it had, or with what
//! it had at an earlier moment, or it says that it is damaged. It never reads a wrong row.
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::super::*;
use crate::Cache;

type Map = BTreeMap<u32, String>;

/// What is done to one file.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Flip(usize),
    Cut(usize),
    Remove,
}

/// Positions of a file that are tried: all of a short one, else so many spread over it.
const POSITIONS: usize = 20;

/// A store with rows in files and in the log, and what it held after each write.
fn store(path: &Path) -> Vec<Map> {
    let cache = Cache::<u32, String>::open(path).unwrap();
    let mut states = vec![Map::new()];
    for n in 0..400_u32 {
        let mut map = states.last().unwrap().clone();
        let key = n * 7 % 120;
        match n {
            150 => {
                cache.clear().unwrap();
                map.clear();
            }
            100 | 200 => cache.store().flush(),
            250 => cache.store().compact(),
            _ if n % 5 == 4 => {
                cache.remove(&key).unwrap();
                map.remove(&key);
            }
            _ => {
                let value = format!("{n} ").repeat(20);
                cache.insert(&key, &value).unwrap();
                map.insert(key, value);
            }
        }
        states.push(map);
    }
    states
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn damage(file: &Path, damage: Damage) {
    if let Damage::Remove = damage {
        return fs::remove_file(file).unwrap();
    }
    let mut bytes = fs::read(file).unwrap();
    match damage {
        Damage::Flip(at) => bytes[at] ^= 1 << (at % 8),
        Damage::Cut(at) => bytes.truncate(at),
        Damage::Remove => {}
    }
    fs::write(file, bytes).unwrap();
}

/// Reads all there is, up to the first error, and what the error says.
fn read(path: &Path) -> (Map, Option<StoreError>) {
    let mut map = Map::new();
    let mut read = || {
        let cache = Cache::<u32, String>::open(path)?;
        for row in &cache {
            let (key, value) = row?;
            map.insert(key, value);
        }
        // The same by look-ups, which go through the filters.
        for key in 0..120 {
            assert_eq!(cache.get(&key)?.as_ref(), map.get(&key));
        }
        Ok(())
    };
    let error = read().err();
    (map, error)
}

fn check(states: &[Map], path: &Path, what: &str) {
    let (map, error) = read(path);
    match error {
        None => assert!(states.contains(&map), "{what}: opens with a state that never was: {map:?}"),
        Some(error) => {
            // What was read before the error is right too.
            let last = map.keys().next_back().copied();
            let begins = |state: &Map| last.is_none_or(|last| state.range(..=last).eq(map.iter()));
            assert!(states.iter().any(begins), "{what}: read wrong rows before {error:?}");
            let shown = error.to_string();
            assert!(shown.contains(path.to_str().unwrap()), "{what}: {shown}");
            let unmarked =
                what.starts_with("SLIPSTREAM, Remove") && matches!(error, StoreError::NotAStore { .. });
            assert!(unmarked || matches!(error, StoreError::Corrupt { .. }), "{what}: {error:?}");
        }
    }
}

#[test]
fn a_damaged_file_is_noticed_or_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().canonicalize().unwrap();
    let (good, bad) = (directory.join("good"), directory.join("bad"));
    let states = store(&good);
    let files: Vec<PathBuf> = fs::read_dir(&good).unwrap().map(|entry| entry.unwrap().path()).collect();
    let has = |extension| files.iter().any(|file| file.extension().is_some_and(|has| has == extension));
    assert!(has("sst") && has("log"), "{files:?}");

    copy(&good, &bad);
    assert_eq!(read(&bad).0, *states.last().unwrap());
    for file in &files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let length = usize::try_from(fs::metadata(file).unwrap().len()).unwrap();
        let positions = (0..length).step_by(length.div_ceil(POSITIONS).max(1));
        // The last bytes of a table lead to all others.
        let positions = positions.chain((length.saturating_sub(60)..length).step_by(7));
        let kinds = positions.flat_map(|at| [Damage::Flip(at), Damage::Cut(at)]).chain([Damage::Remove]);
        for kind in kinds {
            copy(&good, &bad);
            damage(&bad.join(name), kind);
            check(&states, &bad, &format!("{name}, {kind:?} of {length}"));
        }
    }
}
