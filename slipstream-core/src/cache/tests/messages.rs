//! Several messages in hand at once, over epochs that are committed and crash, against maps: a read sees
//! other messages whole and one's own writes, an iterator what it saw when it was made, and no change by
//! `update` is lost.
use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::model::cases;
use super::*;
use crate::position::Position;
use crate::store::{Rows, TurnNumber};

type Map = BTreeMap<u8, u32>;

const MESSAGES: usize = 3;
const KEYS: u8 = 5;
/// The caches: one in which all is done, and one that is only incremented.
const ROWS: usize = 0;
const COUNTS: usize = 1;

/// Something that a handler does, or a task outside.
#[derive(Debug, Clone, Copy)]
enum Call {
    Insert(u8, u32),
    Remove(u8),
    Clear,
    Add(u8, u32),
    /// By `update` too.
    RemoveEven(u8),
    Increment(u8),
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// In this message, or outside of all.
    Call(Option<usize>, Call),
    Look(Option<usize>),
    Open(Option<usize>, u8, u8),
    /// The next row of an open iterator, from the back where `true`.
    Next(usize, bool),
    Publish(usize),
    RollBack(usize),
    Savepoint(usize),
    RollBackTo(usize),
    /// Freeze, write or thaw.
    Commit,
    Crash,
    Flush,
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS;
    let call = prop_oneof![
        4 => (key(), 0..9_u32).prop_map(|(key, value)| Call::Insert(key, value)),
        3 => key().prop_map(Call::Remove),
        1 => Just(Call::Clear),
        5 => (key(), 0..3_u32).prop_map(|(key, add)| Call::Add(key, add)),
        2 => key().prop_map(Call::RemoveEven),
        6 => key().prop_map(Call::Increment),
    ];
    let message = || 0..MESSAGES;
    let place = || prop_oneof![3 => message().prop_map(Some), 1 => Just(None)];
    prop_oneof![
        24 => (place(), call).prop_map(|(place, call)| Step::Call(place, call)),
        4 => place().prop_map(Step::Look),
        4 => (place(), key(), 0..=KEYS).prop_map(|(place, from, to)| Step::Open(place, from, to)),
        12 => (any::<usize>(), any::<bool>()).prop_map(|(open, back)| Step::Next(open, back)),
        8 => message().prop_map(Step::Publish),
        1 => message().prop_map(Step::RollBack),
        2 => message().prop_map(Step::Savepoint),
        2 => message().prop_map(Step::RollBackTo),
        10 => Just(Step::Commit),
        1 => Just(Step::Crash),
        1 => Just(Step::Flush),
        1 => Just(Step::Compact),
    ]
}

/// What is visible to all at a moment.
#[derive(Debug, Clone, Default, PartialEq)]
struct State {
    caches: [Map; 2],
    /// By key, how often it was incremented: counted apart from the values.
    increments: Map,
    /// By partition, the next offset; each message has its own.
    positions: BTreeMap<i32, i64>,
}

/// What a message has done to one cache.
#[derive(Debug, Clone, Default)]
struct Own {
    is_cleared: bool,
    rows: BTreeMap<u8, Option<u32>>,
}

impl Own {
    fn over(&self, below: &Map) -> Map {
        let mut map = if self.is_cleared { Map::new() } else { below.clone() };
        for (key, value) in &self.rows {
            match value {
                Some(value) => map.insert(*key, *value),
                None => map.remove(key),
            };
        }
        map
    }
}

/// What a message has done so far.
#[derive(Debug, Clone, Default)]
struct Done {
    calls: Vec<Call>,
    own: [Own; 2],
    /// The keys that were changed by what they held below the message's own rows.
    reads: Vec<(usize, u8, Option<u32>)>,
}

#[derive(Default)]
struct InHand {
    message: Message,
    done: Done,
    savepoint: Option<(Savepoint, Done)>,
    next_offset: i64,
}

/// What a row becomes, by what it was.
type Becomes = Box<dyn Fn(Option<u32>) -> Option<u32>>;

/// What a call does to a row of which cache. None for `clear`.
fn change(call: Call) -> Option<(usize, u8, Becomes)> {
    Some(match call {
        Call::Insert(key, value) => (ROWS, key, Box::new(move |_| Some(value))),
        Call::Remove(key) => (ROWS, key, Box::new(|_| None)),
        Call::Clear => return None,
        Call::Add(key, add) => (ROWS, key, Box::new(move |old| Some(old.unwrap_or(0) + add))),
        Call::RemoveEven(key) => (ROWS, key, Box::new(|old| old.filter(|old| old % 2 == 1))),
        Call::Increment(key) => (COUNTS, key, Box::new(|old| Some(old.unwrap_or(0) + 1))),
    })
}

/// Makes a call on the caches, and checks what it answers by what is seen where it is made.
fn make(caches: &[Cache<u8, u32>], call: Call, seen: [&Map; 2]) {
    let Some((cache, key, new)) = change(call) else { return caches[ROWS].clear().unwrap() };
    match call {
        Call::Insert(_, value) => caches[ROWS].insert(&key, value).unwrap(),
        Call::Remove(_) => caches[ROWS].remove(&key).unwrap(),
        _ => {
            let old = seen[cache].get(&key).copied();
            let changed = caches[cache].update(&key, |found| {
                assert_eq!(found, old, "{call:?}");
                new(found)
            });
            assert_eq!(changed.unwrap(), new(old));
        }
    }
}

impl InHand {
    fn call(&mut self, caches: &[Cache<u8, u32>], call: Call, below: &State) {
        let seen: Vec<Map> = (0..2).map(|cache| self.done.own[cache].over(&below.caches[cache])).collect();
        self.message.handle(|| make(caches, call, [&seen[0], &seen[1]]));
        self.done.calls.push(call);
        let Some((cache, key, new)) = change(call) else {
            self.done.own[ROWS] = Own { is_cleared: true, rows: BTreeMap::new() };
            return;
        };
        let own = &mut self.done.own[cache];
        if !matches!(call, Call::Insert(..) | Call::Remove(_))
            && !own.is_cleared
            && !own.rows.contains_key(&key)
        {
            self.done.reads.push((cache, key, below.caches[cache].get(&key).copied()));
        }
        own.rows.insert(key, new(seen[cache].get(&key).copied()));
    }

    fn roll_back(&mut self) -> Vec<Call> {
        self.message.roll_back();
        self.savepoint = None;
        std::mem::take(&mut self.done).calls
    }

    fn seen(&self, below: &State) -> [Map; 2] {
        [ROWS, COUNTS].map(|cache| self.done.own[cache].over(&below.caches[cache]))
    }

    /// Answers false where it has to run again.
    fn publish(
        &mut self,
        store: &Store,
        turn: Option<TurnNumber>,
        partition: i32,
    ) -> Result<bool, StoreError> {
        let staged = self.message.0.as_mut().unwrap().staged.as_mut();
        let moved = turn.map(|_| ((0, partition), Position::new(partition, self.next_offset)));
        let Some(staged) = staged else { return store.publish(turn, &[], Rows::default(), moved) };
        let rows = staged.take();
        store.publish(turn, staged.reads(), rows, moved)
    }
}

/// An open iterator, and what it has left to give.
type Open = (Range<u8, u32>, VecDeque<(u8, u32)>);

struct Run {
    path: Option<tempfile::TempDir>,
    caches: Vec<Cache<u8, u32>>,
    /// The running flow, if the test has one.
    turn: Option<TurnNumber>,
    messages: [InHand; MESSAGES],
    published: State,
    frozen: Option<(Frozen, State)>,
    is_written: bool,
    written: State,
    epoch: u64,
    open: Vec<Open>,
}

fn open(path: Option<&Path>) -> Vec<Cache<u8, u32>> {
    let store = path.map_or_else(Store::in_memory, Store::open).unwrap();
    ["rows", "counts"].map(|name| store.cache(name).unwrap()).into()
}

impl Run {
    fn new(path: Option<tempfile::TempDir>, has_flow: bool) -> Self {
        let caches = open(path.as_ref().map(tempfile::TempDir::path));
        let turn = has_flow.then(|| begin(caches[0].store()));
        Run {
            path,
            caches,
            turn,
            messages: Default::default(),
            published: State::default(),
            frozen: None,
            is_written: false,
            written: State::default(),
            epoch: 0,
            open: Vec::new(),
        }
    }

    fn step(&mut self, step: Step) {
        let store = self.caches[0].store().clone();
        match step {
            Step::Call(Some(message), call) => {
                self.messages[message].call(&self.caches, call, &self.published);
            }
            Step::Call(None, call) => self.outside(call),
            Step::Look(place) => self.look(place),
            Step::Open(place, from, to) => self.open(place, from, to),
            Step::Next(number, back) => self.next(number, back),
            Step::Publish(message) => self.publish(message),
            Step::RollBack(message) => drop(self.messages[message].roll_back()),
            Step::Savepoint(message) => {
                let message = &mut self.messages[message];
                message.savepoint = Some((message.message.savepoint(), message.done.clone()));
            }
            Step::RollBackTo(message) => {
                let message = &mut self.messages[message];
                if let Some((savepoint, done)) = &message.savepoint {
                    message.message.roll_back_to(savepoint);
                    message.done.clone_from(done);
                }
            }
            Step::Commit => self.commit(&store),
            Step::Crash => self.crash(store),
            Step::Flush => store.flush(),
            Step::Compact => store.compact(),
        }
    }

    fn outside(&mut self, call: Call) {
        let State { caches: [rows, counts], increments, .. } = &mut self.published;
        make(&self.caches, call, [rows, counts]);
        let Some((cache, key, new)) = change(call) else { return rows.clear() };
        let map = if cache == ROWS { rows } else { counts };
        match new(map.get(&key).copied()) {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
        if let Call::Increment(key) = call {
            *increments.entry(key).or_default() += 1;
        }
    }

    fn look(&mut self, place: Option<usize>) {
        let look = |caches: &[Cache<u8, u32>], seen: &[Map; 2]| {
            for (cache, map) in caches.iter().zip(seen) {
                assert_eq!(rows(|| cache.iter()), map.clone().into_iter().collect::<Vec<_>>());
                for key in 0..KEYS {
                    assert_eq!(cache.get(&key).unwrap(), map.get(&key).copied());
                    let at = map.range(..=key).next_back().map(|(key, value)| (*key, *value));
                    assert_eq!(cache.as_of(&key).unwrap(), at);
                }
            }
        };
        match place {
            Some(message) => {
                let message = &mut self.messages[message];
                let seen = message.seen(&self.published);
                message.message.handle(|| look(&self.caches, &seen));
            }
            None => look(&self.caches, &self.published.caches),
        }
        self.check_stored();
    }

    /// What a restart would find is the last written epoch, whole.
    fn check_stored(&self) {
        let store = self.caches[0].store();
        assert_eq!(self.published.caches[COUNTS], self.published.increments);
        if self.turn.is_none() {
            return;
        }
        let positions = |positions: crate::Positions| positions.iter().collect::<BTreeMap<i32, i64>>();
        assert_eq!(positions(store.published(0, "source").unwrap()), self.published.positions);
        assert_eq!(positions(store.positions("source").unwrap()), self.written.positions);
        assert_eq!(store.epoch(), self.epoch);
    }

    fn open(&mut self, place: Option<usize>, from: u8, to: u8) {
        let cache = &self.caches[ROWS];
        let (range, map) = match place {
            Some(message) => {
                let message = &mut self.messages[message];
                let map = message.seen(&self.published)[ROWS].clone();
                (message.message.handle(|| cache.range(from..to)), map)
            }
            None => (cache.range(from..to), self.published.caches[ROWS].clone()),
        };
        self.open.push((range, map.into_iter().filter(|(key, _)| (from..to).contains(key)).collect()));
    }

    fn next(&mut self, number: usize, back: bool) {
        if self.open.is_empty() {
            return;
        }
        let number = number % self.open.len();
        let (range, left) = &mut self.open[number];
        let (found, expected) =
            if back { (range.next_back(), left.pop_back()) } else { (range.next(), left.pop_front()) };
        assert_eq!(found.map(Result::unwrap), expected, "an iterator from before");
        if expected.is_none() {
            drop(self.open.swap_remove(number));
        }
    }

    fn publish(&mut self, number: usize) {
        let store = self.caches[0].store().clone();
        let partition = i32::try_from(number).unwrap();
        let conflicts = {
            let changed = |(cache, key, old): &(usize, u8, Option<u32>)| {
                self.published.caches[*cache].get(key).copied() != *old
            };
            self.messages[number].done.reads.iter().any(changed)
        };
        let message = &mut self.messages[number];
        let is_whole = message.publish(&store, self.turn, partition).unwrap();
        assert_eq!(is_whole, !conflicts, "{:?}", message.done);
        if conflicts {
            // Nothing has moved, and the message runs again from its start.
            self.look(None);
            let message = &mut self.messages[number];
            for call in message.roll_back() {
                message.call(&self.caches, call, &self.published);
            }
            assert!(message.publish(&store, self.turn, partition).unwrap(), "with nobody in between");
        }
        let message = &mut self.messages[number];
        self.published.caches = message.seen(&self.published);
        for call in message.roll_back() {
            if let Call::Increment(key) = call {
                *self.published.increments.entry(key).or_default() += 1;
            }
        }
        message.next_offset += 1;
        if self.turn.is_some() {
            self.published.positions.insert(partition, message.next_offset);
        }
    }

    fn commit(&mut self, store: &Store) {
        if self.turn.is_none() {
            return;
        }
        match self.frozen.take() {
            None => self.frozen = store.freeze().map(|frozen| (frozen, self.published.clone())),
            Some((frozen, state)) if !self.is_written => {
                store.write_frozen(&frozen, false).unwrap();
                self.epoch += 1;
                self.written.clone_from(&state);
                (self.frozen, self.is_written) = (Some((frozen, state)), true);
            }
            Some((frozen, _)) => {
                store.thaw(frozen);
                self.is_written = false;
            }
        }
    }

    /// The flow is dropped in the middle of what it does; on disk, so is the store.
    fn crash(&mut self, store: Store) {
        let frozen = self.frozen.take().filter(|_| !self.is_written);
        self.is_written = false;
        if let Some(turn) = self.turn {
            self.published = self.written.clone();
            store.drop_epochs(turn);
            if let Some((frozen, _)) = frozen {
                store.write_frozen(&frozen, false).unwrap_err();
            }
            for message in &mut self.messages {
                message.publish(&store, self.turn, 0).unwrap_err();
            }
        }
        // The handles of what is in hand go before the store can be opened again.
        self.messages = Default::default();
        drop(store);
        if self.path.is_some() {
            self.reopen();
        }
        self.turn = self.turn.map(|_| begin(self.caches[0].store()));
        for (partition, message) in (0..).zip(&mut self.messages) {
            message.next_offset = self.published.positions.get(&partition).copied().unwrap_or(0);
        }
        self.look(None);
    }

    fn reopen(&mut self) {
        self.finish();
        let path = self.path.as_ref().map(tempfile::TempDir::path);
        // All handles go before the store can be opened again.
        let id = self.caches[0].store().id();
        self.caches.clear();
        self.caches = open(path);
        assert_eq!(self.caches[0].store().id(), id);
    }

    /// Reads what the open iterators have left.
    fn finish(&mut self) {
        for (range, left) in self.open.drain(..) {
            let found: Vec<_> = range.map(Result::unwrap).collect();
            assert_eq!(found, Vec::from(left), "an iterator from before");
        }
    }
}

fn begin(store: &Store) -> TurnNumber {
    store.begin_epochs(vec![Arc::from("source")]).unwrap()
}

fn run(path: Option<tempfile::TempDir>, has_flow: bool, steps: &[Step]) {
    let mut run = Run::new(path, has_flow);
    for step in steps {
        run.step(*step);
    }
    for message in 0..MESSAGES {
        run.look(Some(message));
        run.publish(message);
    }
    run.look(None);
    run.finish();
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..150)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn messages_in_hand_are_isolated_and_no_update_is_lost(steps in steps()) {
        run(None, true, &steps);
    }

    #[test]
    fn so_it_is_while_no_flow_runs(steps in steps()) {
        run(None, false, &steps);
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn a_crash_leaves_the_last_written_epoch_on_disk(steps in steps()) {
        run(Some(tempfile::tempdir().unwrap()), true, &steps);
    }
}
