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
            is_typed(&error, path, what);
        }
    }
}

/// Damages a copy of a store, file by file and place by place, and calls `check` with the copy and what
/// was done to it.
fn damage_each(good: &Path, bad: &Path, positions: usize, mut check: impl FnMut(&str)) {
    let files: Vec<PathBuf> = fs::read_dir(good).unwrap().map(|entry| entry.unwrap().path()).collect();
    let has = |extension| files.iter().any(|file| file.extension().is_some_and(|has| has == extension));
    assert!(has("sst") && has("log"), "{files:?}");
    for file in &files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let length = usize::try_from(fs::metadata(file).unwrap().len()).unwrap();
        let step = length.div_ceil(positions).max(1);
        // The last bytes of a table lead to all others.
        let places = (0..length).step_by(step).chain((length.saturating_sub(60)..length).step_by(7));
        let kinds = places.flat_map(|at| [Damage::Flip(at), Damage::Cut(at)]).chain([Damage::Remove]);
        for kind in kinds {
            copy(good, bad);
            damage(&bad.join(name), kind);
            check(&format!("{name}, {kind:?} of {length}"));
        }
    }
}

#[track_caller]
fn is_typed(error: &StoreError, path: &Path, what: &str) {
    let shown = error.to_string();
    assert!(shown.contains(path.to_str().unwrap()), "{what}: {shown}");
    let unmarked = what.starts_with("SLIPSTREAM, Remove") && matches!(error, StoreError::NotAStore { .. });
    assert!(unmarked || matches!(error, StoreError::Corrupt { .. }), "{what}: {error:?}");
}

fn directories() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    (directory, path.join("good"), path.join("bad"))
}

#[test]
fn a_damaged_file_is_noticed_or_does_no_harm() {
    let (_directory, good, bad) = directories();
    let states = store(&good);
    copy(&good, &bad);
    assert_eq!(read(&bad).0, *states.last().unwrap());
    damage_each(&good, &bad, POSITIONS, |what| check(&states, &bad, what));
}

/// What one commit makes durable, all of which a store has or nothing of it: its number, where the source
/// stands, and the rows.
#[derive(Debug, Clone, Default, PartialEq)]
struct Committed {
    epoch: u64,
    positions: BTreeMap<i32, i64>,
    rows: Map,
}

const SOURCE: &str = "source";
const COMMITS: u64 = 48;
/// Those of each log and table that are tried for it: a cut in each commit of the log is among them.
const COMMIT_POSITIONS: usize = 60;

/// One commit of a flow over the store, of two messages.
fn commit(store: &Store, now: &mut Committed) {
    let cache = store.cache::<u32, String>("rows").unwrap();
    let turn = store.begin_epochs(vec![SOURCE.into()]).unwrap();
    now.epoch += 1;
    let epoch = u32::try_from(now.epoch).unwrap();
    if epoch.is_multiple_of(17) {
        cache.clear().unwrap();
        now.rows.clear();
    }
    for message in 0..2 {
        let (key, value) = ((epoch * 7 + message) % 50, format!("{epoch} ").repeat(8));
        cache.insert(&key, &value).unwrap();
        now.rows.insert(key, value);
        cache.remove(&((epoch + message) % 50)).unwrap();
        now.rows.remove(&((epoch + message) % 50));
        let partition = i32::try_from((epoch + message) % 3).unwrap();
        let next = now.positions.entry(partition).or_default();
        let at = crate::Position::new(partition, *next).with_check(now.epoch);
        assert!(store.publish(Some(turn), &[], Rows::default(), Some(((0, partition), at))).unwrap());
        *next += 1;
    }
    let frozen = store.freeze().unwrap();
    store.write_frozen(&frozen, now.epoch.is_multiple_of(8)).unwrap();
    store.thaw(frozen);
    assert!(store.end_epochs());
}

/// What could be read of a store before an error, if there was one.
#[derive(Debug, Default)]
struct Found {
    epoch: Option<u64>,
    positions: Option<BTreeMap<i32, i64>>,
    rows: Map,
    error: Option<StoreError>,
}

impl Found {
    fn read(path: &Path, id: StoreId) -> Self {
        let mut found = Self::default();
        found.error = found.read_all(path, id).err();
        found
    }

    fn read_all(&mut self, path: &Path, id: StoreId) -> Result<(), StoreError> {
        let store = Store::open(path)?;
        self.epoch = Some(store.epoch());
        // The identity is on the disk before the first commit.
        assert!(store.id() == id || store.epoch() == 0);
        self.positions = Some(store.positions(SOURCE)?.iter().collect());
        for row in &store.cache::<u32, String>("rows")? {
            let (key, value) = row?;
            self.rows.insert(key, value);
        }
        Ok(())
    }

    /// Whether this is what a commit has left, as far as it was read.
    fn is_of(&self, state: &Committed) -> bool {
        let last = self.rows.keys().next_back();
        let has_rows = match self.error {
            None => state.rows == self.rows,
            Some(_) => last.is_none_or(|last| state.rows.range(..=last).eq(&self.rows)),
        };
        has_rows
            && self.epoch.is_none_or(|epoch| epoch == state.epoch)
            && self.positions.as_ref().is_none_or(|positions| *positions == state.positions)
    }
}

// Never state without its position, nor a position without its state: after a power loss the log ends
// anywhere.
#[test]
fn a_damaged_store_of_a_flow_is_an_earlier_commit_whole_or_an_error() {
    let (_directory, good, bad) = directories();
    let mut states = vec![Committed::default()];
    let id = {
        let store = Store::open(&good).unwrap();
        for number in 1..=COMMITS {
            let mut next = states.last().unwrap().clone();
            commit(&store, &mut next);
            states.push(next);
            match number {
                8 | 16 | 24 => store.flush(),
                20 => store.compact(),
                _ => {}
            }
        }
        store.id()
    };
    let mut epochs = std::collections::BTreeSet::new();
    damage_each(&good, &bad, COMMIT_POSITIONS, |what| {
        let found = Found::read(&bad, id);
        let state = states.iter().find(|state| found.is_of(state));
        let state = state.unwrap_or_else(|| panic!("{what}: no commit left this: {found:?}"));
        if let Some(error) = found.error {
            return is_typed(&error, &bad, what);
        }
        // From there it goes on, and the next opening finds that.
        if epochs.insert(state.epoch) {
            let mut next = state.clone();
            commit(&Store::open(&bad).unwrap(), &mut next);
            let found = Found::read(&bad, id);
            assert!(found.error.is_none() && found.is_of(&next), "{what}: {next:?}, {found:?}");
        }
    });
    assert!(epochs.len() > 15, "only {epochs:?}: the test no longer cuts the log between its commits");
}
