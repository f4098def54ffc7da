//! A cache is a `BTreeMap`: random calls on two caches of a store, in messages and outside of them,
//! give what they give on maps; also where the rows have been written to files, are opened again, or
//! are read by an iterator that is older than they.
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

use proptest::prelude::*;

use super::*;

type At = (String, i8);
type Map = BTreeMap<At, u32>;

#[derive(Debug, Clone)]
enum Call {
    Insert(At, u32),
    Remove(At),
    Clear,
    Get(At),
    /// Bounds, and at each step which end is read: `true` is the back.
    Range(Bound<At>, Bound<At>, Vec<bool>),
    Prefix(String, Vec<bool>),
    AsOf(At),
    After(At),
    Nearest(At),
    Ends,
    /// Make an iterator and read it at the end of the test.
    Hold(Bound<At>, Bound<At>, Vec<bool>),
    Publish,
    RollBack,
    /// The next step of a commit: freeze, write or thaw.
    Commit,
    /// Write the rows in memory to a file; all files into one.
    Flush,
    Compact,
    Reopen,
}

#[derive(Debug, Clone)]
struct Step {
    cache: usize,
    in_message: bool,
    call: Call,
}

fn at() -> impl Strategy<Value = At> {
    // Few, so that they meet; the texts are such that one is the beginning of another.
    (prop::sample::select(vec!["", "a", "a\0", "a\0\u{1}", "b"]).prop_map(str::to_owned), -3..4_i8)
}

fn bound() -> impl Strategy<Value = Bound<At>> {
    prop_oneof![Just(Bound::Unbounded), at().prop_map(Bound::Included), at().prop_map(Bound::Excluded)]
}

fn ends() -> impl Strategy<Value = Vec<bool>> {
    prop_oneof![Just(vec![]), Just(vec![true; 40]), prop::collection::vec(any::<bool>(), 0..20)]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        12 => (at(), any::<u32>()).prop_map(|(key, value)| Call::Insert(key, value)),
        5 => at().prop_map(Call::Remove),
        1 => Just(Call::Clear),
        3 => at().prop_map(Call::Get),
        4 => (bound(), bound(), ends()).prop_map(|(from, to, ends)| Call::Range(from, to, ends)),
        2 => (at(), ends()).prop_map(|(key, ends)| Call::Prefix(key.0, ends)),
        4 => at().prop_map(Call::AsOf),
        4 => at().prop_map(Call::After),
        4 => at().prop_map(Call::Nearest),
        2 => Just(Call::Ends),
        1 => (bound(), bound(), ends()).prop_map(|(from, to, ends)| Call::Hold(from, to, ends)),
        2 => Just(Call::Publish),
        1 => Just(Call::RollBack),
        3 => Just(Call::Commit),
        1 => Just(Call::Flush),
        1 => Just(Call::Compact),
        1 => Just(Call::Reopen),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    (0..2_usize, prop::bool::weighted(0.7), call()).prop_map(|(cache, in_message, call)| Step {
        cache,
        in_message,
        call,
    })
}

/// Reads an iterator to its end, from these ends first and then from the front.
fn read<T, E: fmt::Debug>(mut rows: impl DoubleEndedIterator<Item = Result<T, E>>, ends: &[bool]) -> Vec<T> {
    let mut ends = ends.iter();
    std::iter::from_fn(|| match ends.next() {
        Some(true) => rows.next_back(),
        _ => rows.next(),
    })
    .map(Result::unwrap)
    .collect()
}

fn expected(map: &Map, from: &Bound<At>, to: &Bound<At>, ends: &[bool]) -> Vec<(At, u32)> {
    let rows: Vec<_> = map
        .iter()
        .filter(|(key, _)| (from.as_ref(), Bound::Unbounded).contains(*key))
        .filter(|(key, _)| (Bound::Unbounded, to.as_ref()).contains(*key))
        .map(|(key, value)| Ok::<_, ()>((key.clone(), *value)))
        .collect();
    read(rows.into_iter(), ends)
}

/// The two caches and what they should hold; a message's rows are those of all it has done.
struct Run {
    path: Option<tempfile::TempDir>,
    caches: Vec<Cache<At, u32>>,
    message: Message,
    published: [Map; 2],
    seen_in_message: [Map; 2],
    /// Whether the message has written; if not it sees what others do.
    wrote: bool,
    held: Vec<Held>,
    /// Where a flow runs: the commit that is under way, and what the last one has made durable.
    epochs: Option<Epochs>,
}

#[derive(Default)]
struct Epochs {
    frozen: Option<(Frozen, [Map; 2])>,
    is_written: bool,
    committed: [Map; 2],
}

/// An iterator that is read later, what it should give, and from which ends.
type Held = (Range<At, u32>, Vec<(At, u32)>, Vec<bool>);

fn open(path: Option<&Path>) -> Vec<Cache<At, u32>> {
    let store = path.map_or_else(Store::in_memory, Store::open).unwrap();
    vec![store.cache("one").unwrap(), store.cache_as("two", ValueFormat::Compact).unwrap()]
}

impl Run {
    fn new(path: Option<tempfile::TempDir>, epochs: bool) -> Self {
        let caches = open(path.as_ref().map(tempfile::TempDir::path));
        if epochs {
            caches[0].store().begin_epochs(vec![]).unwrap();
        }
        Self {
            epochs: epochs.then(Epochs::default),
            caches,
            path,
            message: Message::new(),
            published: Default::default(),
            seen_in_message: Default::default(),
            wrote: false,
            held: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match &step.call {
            Call::Publish => {
                self.message.publish().unwrap();
                if std::mem::take(&mut self.wrote) {
                    self.published = self.seen_in_message.clone();
                }
            }
            Call::RollBack => {
                self.message.roll_back();
                self.wrote = false;
            }
            Call::Commit => self.commit(),
            Call::Flush => self.caches[0].store().flush(),
            Call::Compact => self.caches[0].store().compact(),
            Call::Reopen => self.reopen(),
            call => self.call(step, call),
        }
    }

    fn call(&mut self, step: &Step, call: &Call) {
        if !self.wrote {
            self.seen_in_message = self.published.clone();
        }
        let cache = self.caches[step.cache].clone();
        let write = matches!(call, Call::Insert(..) | Call::Remove(_) | Call::Clear);
        // What others write meanwhile would have to be merged into what the message sees.
        let in_message = step.in_message || (write && self.wrote);
        self.wrote |= write && in_message;
        let maps = if in_message { &mut self.seen_in_message } else { &mut self.published };
        let map = &mut maps[step.cache];
        let held = &mut self.held;
        let mut check = || check(&cache, map, call, held);
        if in_message { self.message.handle(check) } else { check() }
    }

    fn commit(&mut self) {
        let (Some(epochs), store) = (&mut self.epochs, self.caches[0].store()) else { return };
        match epochs.frozen.take() {
            None => epochs.frozen = store.freeze().map(|frozen| (frozen, self.published.clone())),
            Some((frozen, maps)) if !epochs.is_written => {
                store.write_frozen(&frozen, false).unwrap();
                epochs.committed.clone_from(&maps);
                epochs.is_written = true;
                epochs.frozen = Some((frozen, maps));
            }
            Some((frozen, _)) => {
                store.thaw(frozen);
                epochs.is_written = false;
            }
        }
    }

    /// Where a flow runs this is a crash: what was not committed is gone.
    fn reopen(&mut self) {
        self.read_held();
        let Some(path) = &self.path else { return };
        self.message = Message::new();
        self.wrote = false;
        // All handles go before the store can be opened again.
        self.caches.clear();
        self.caches = open(Some(path.path()));
        if let Some(epochs) = &mut self.epochs {
            self.published.clone_from(&epochs.committed);
            *epochs = Epochs { committed: self.published.clone(), ..Epochs::default() };
            self.caches[0].store().begin_epochs(vec![]).unwrap();
        }
    }

    fn read_held(&mut self) {
        for (rows, expected, ends) in self.held.drain(..) {
            assert_eq!(read(rows, &ends), expected, "an iterator from before");
        }
    }
}

fn check(cache: &Cache<At, u32>, map: &mut Map, call: &Call, held: &mut Vec<Held>) {
    let row = |(key, value): (&At, &u32)| (key.clone(), *value);
    let group =
        |map: &Map, at: &At| -> Map { map.iter().filter(|(key, _)| key.0 == at.0).map(row).collect() };
    match call {
        Call::Insert(key, value) => {
            cache.insert(key, value).unwrap();
            map.insert(key.clone(), *value);
        }
        Call::Remove(key) => {
            cache.remove(&(key.0.as_str(), key.1)).unwrap();
            map.remove(key);
        }
        Call::Clear => {
            cache.clear().unwrap();
            map.clear();
        }
        Call::Get(key) => {
            assert_eq!(cache.get(key).unwrap().as_ref(), map.get(key));
            assert_eq!(cache.contains_key(key).unwrap(), map.contains_key(key));
        }
        Call::Range(from, to, ends) => {
            let rows = cache.range((from.as_ref(), to.as_ref()));
            assert_eq!(read(rows, ends), expected(map, from, to, ends));
        }
        Call::Prefix(prefix, ends) => {
            let rows: Map = group(map, &(prefix.clone(), 0));
            let rows = expected(&rows, &Bound::Unbounded, &Bound::Unbounded, ends);
            assert_eq!(read(cache.prefix(prefix), ends), rows);
        }
        Call::AsOf(at) => {
            let found = group(map, at).range(..=at).next_back().map(row);
            assert_eq!(cache.as_of(at).unwrap(), found);
        }
        Call::After(at) => {
            let group = group(map, at);
            let found = group.range((Bound::Excluded(at), Bound::Unbounded)).next().map(row);
            assert_eq!(cache.after(at).unwrap(), found);
        }
        Call::Nearest(at) => {
            let group = group(map, at);
            // Of several least ones `min_by_key` answers the first.
            let found = group.iter().min_by_key(|(key, _)| key.1.abs_diff(at.1)).map(row);
            assert_eq!(cache.nearest(at).unwrap(), found);
        }
        Call::Ends => {
            assert_eq!(cache.first_key_value().unwrap(), map.first_key_value().map(row));
            assert_eq!(cache.last_key_value().unwrap(), map.last_key_value().map(row));
            assert_eq!(cache.is_empty().unwrap(), map.is_empty());
            assert_eq!(read(cache.keys(), &[]), map.keys().cloned().collect::<Vec<_>>());
            assert_eq!(read(cache.values(), &[]), map.values().copied().collect::<Vec<_>>());
        }
        Call::Hold(from, to, ends) => {
            let rows = cache.range((from.as_ref(), to.as_ref()));
            held.push((rows, expected(map, from, to, ends), ends.clone()));
        }
        Call::Publish | Call::RollBack | Call::Commit | Call::Flush | Call::Compact | Call::Reopen => {}
    }
}

fn run(path: Option<tempfile::TempDir>, epochs: bool, steps: &[Step]) {
    let mut run = Run::new(path, epochs);
    for step in steps {
        run.step(step);
    }
    run.read_held();
}

/// So many cases, unless the environment asks for another number.
pub(super) fn cases(usual: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(usual),
    }
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn a_cache_in_memory_is_a_map(steps in prop::collection::vec(step(), 1..150)) {
        run(None, false, &steps);
    }

    #[test]
    fn so_it_is_while_epochs_are_committed(steps in prop::collection::vec(step(), 1..150)) {
        run(None, true, &steps);
    }
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn a_cache_on_disk_is_a_map(steps in prop::collection::vec(step(), 1..150)) {
        run(Some(tempfile::tempdir().unwrap()), false, &steps);
    }

    #[test]
    fn after_a_crash_it_is_the_map_of_the_last_commit(steps in prop::collection::vec(step(), 1..150)) {
        run(Some(tempfile::tempdir().unwrap()), true, &steps);
    }
}
