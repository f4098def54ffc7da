//! What a cache adds to RocksDB: each call against bare `rocksdb` with the same options, over a copy
//! of the same files, with keys and values in the same bytes.
//!
//! `cargo bench --bench cache -- as_of`; see `twin` for the arguments.
#[path = "bare/options.rs"]
mod bare_options;
mod twin;

use rocksdb::{
    DB, DBRawIterator, Env, Options, ReadOptions, WaitForCompactOptions, WriteBatch, WriteOptions,
};
use serde::{Deserialize, Serialize};
use slipstream::{AsKey, Cache, Flow, Key, iter, source};
use std::{
    cell::RefCell,
    error::Error,
    fs,
    hint::black_box,
    ops::Range,
    path::Path,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use twin::Twins;

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// The group and the time, as in an as-of join.
type At = (u32, i64);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Price {
    bid: f64,
    ask: f64,
    volume: u64,
}

fn price(n: u64) -> Price {
    Price { bid: n as f64, ask: n as f64 + 0.5, volume: n }
}

const GROUPS: u64 = 64;
/// Between two times of a group, so that a look-up in the middle meets no key.
const STEP: i64 = 10;

/// The rows that a store has at first.
#[derive(Clone, Copy)]
struct Rows {
    count: u64,
}

impl Rows {
    /// The key of the nth in order.
    fn ascending(self, n: u64) -> At {
        let (n, in_group) = (n % self.count, self.count / GROUPS);
        ((n / in_group) as u32, (n % in_group) as i64 * STEP)
    }
    /// Each once, in no order: the count is a power of two, and the factor is odd.
    fn shuffled(self, n: u64) -> At {
        self.ascending(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
    /// Any of them (splitmix64).
    fn random(self, n: u64) -> At {
        let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.ascending(n ^ (n >> 31))
    }
    /// The nth that is written when a store is filled.
    fn row(self, n: u64) -> (At, Price) {
        (self.shuffled(n), price(n))
    }
}

const AT_ONCE: u64 = 1_000;

/// After this key, and before the next.
fn between((group, time): At) -> At {
    (group, time + STEP / 2)
}

/// The options of a store, perhaps one in memory.
fn options(memory: Option<&Env>) -> Options {
    let mut options = bare_options::options();
    if let Some(memory) = memory {
        options.set_env(memory);
    }
    options
}

/// The id of a store's first cache, in front of each of its keys.
const ID: [u8; 4] = [0, 0, 0, 1];
const PAST_ID: [u8; 4] = [0, 0, 0, 2];

/// A database, used by hand.
struct Bare {
    db: DB,
    write: WriteOptions,
    buffers: RefCell<(Vec<u8>, Vec<u8>)>,
}

impl Bare {
    fn new(db: DB, in_memory: bool) -> Self {
        let mut write = WriteOptions::default();
        write.disable_wal(in_memory);
        Bare { db, write, buffers: RefCell::default() }
    }

    fn encode(key: &At, bytes: &mut Vec<u8>) -> Result<usize> {
        bytes.clear();
        bytes.extend_from_slice(&ID);
        Ok(ID.len() + key.encode(bytes)?)
    }

    fn encode_row(
        (key, value): (&At, &Price),
        (key_bytes, value_bytes): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Result<()> {
        Self::encode(key, key_bytes)?;
        value_bytes.clear();
        value.serialize(&mut rmp_serde::Serializer::new(value_bytes).with_struct_map())?;
        Ok(())
    }

    fn insert(&self, key: &At, value: &Price) -> Result<()> {
        let (key_bytes, value_bytes) = &mut *self.buffers.borrow_mut();
        Self::encode_row((key, value), (key_bytes, value_bytes))?;
        Ok(self.db.put_opt(key_bytes, value_bytes, &self.write)?)
    }

    fn insert_all(&self, rows: impl Iterator<Item = (At, Price)>) -> Result<()> {
        let (key_bytes, value_bytes) = &mut *self.buffers.borrow_mut();
        let mut batch = WriteBatch::default();
        for (key, value) in rows {
            Self::encode_row((&key, &value), (key_bytes, value_bytes))?;
            batch.put(&*key_bytes, &*value_bytes);
        }
        Ok(self.db.write_opt(batch, &self.write)?)
    }

    fn get(&self, key: &At) -> Result<Option<Price>> {
        let (bytes, _) = &mut *self.buffers.borrow_mut();
        Self::encode(key, bytes)?;
        let value = self.db.get_pinned(bytes)?;
        Ok(value.map(|value| rmp_serde::from_slice(&value)).transpose()?)
    }

    fn iterator(&self) -> DBRawIterator<'_> {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(ID);
        options.set_iterate_upper_bound(PAST_ID);
        self.db.raw_iterator_opt(options)
    }

    fn as_of(&self, rows: &mut DBRawIterator<'_>, at: &At) -> Result<Option<(At, Price)>> {
        let (bytes, _) = &mut *self.buffers.borrow_mut();
        let group = Self::encode(at, bytes)?;
        rows.seek_for_prev(&*bytes);
        let Some((key, value)) = rows.item() else { return Ok(rows.status().map(|()| None)?) };
        if key.get(..group) != bytes.get(..group) {
            return Ok(None);
        }
        let key = At::decode(&mut key.get(ID.len()..).unwrap_or_default())?;
        Ok(Some((key, rmp_serde::from_slice(value)?)))
    }
}

/// A store with a cache, and its twin.
struct Pair {
    place: &'static str,
    cache: Cache<At, Price>,
    bare: Bare,
    rows: Rows,
}

impl Pair {
    fn on_disk(rows: Rows, directory: &Path) -> Result<Self> {
        let (ours, copy) = (directory.join("store"), directory.join("copy"));
        let cache = Cache::open(&ours)?;
        (0..rows.count).map(|n| rows.row(n)).try_for_each(|(key, value)| cache.insert(&key, value))?;
        drop(cache);
        // Both begin with the same files, and with no work to be done on them.
        let db = DB::open(&options(None), &ours)?;
        db.flush()?;
        db.wait_for_compact(&WaitForCompactOptions::default())?;
        drop(db);
        fs::create_dir_all(&copy)?;
        for entry in fs::read_dir(&ours)? {
            let file = entry?.path();
            fs::copy(&file, copy.join(file.file_name().unwrap_or_default()))?;
        }
        let bare = Bare::new(DB::open(&options(None), copy)?, false);
        Ok(Pair { place: "on disk", cache: Cache::open(ours)?, bare, rows })
    }

    fn in_memory(rows: Rows, directory: &Path) -> Result<Self> {
        let cache = Cache::in_memory()?;
        let bare = Bare::new(DB::open(&options(Some(&Env::mem_env()?)), directory)?, true);
        // One by one into both, so that both put the same rows into the same files.
        for (key, value) in (0..rows.count).map(|n| rows.row(n)) {
            cache.insert(&key, &value)?;
            bare.insert(&key, &value)?;
        }
        bare.db.wait_for_compact(&WaitForCompactOptions::default())?;
        // The store cannot be asked; by now it has had as long.
        std::thread::sleep(Duration::from_millis(rows.count / 1_000));
        Ok(Pair { place: "in memory", cache, bare, rows })
    }

    fn look_ups(&self, twins: &mut Twins) {
        let Pair { place, cache, bare, rows } = self;
        let count = twins.size(4_000, 2_000, 10);
        for (order, pick) in [("random", Rows::random as fn(Rows, u64) -> At), ("ascending", Rows::ascending)]
        {
            let each = |round, look_up: &mut dyn FnMut(At) -> bool| {
                timed(round, count, |n| assert!(look_up(pick(*rows, n)), "the row is there"))
            };
            twins.compare(
                &format!("get, {order}, {place}"),
                count,
                |round| each(round, &mut |key| black_box(cache.get(&key).expect("reads")).is_some()),
                |round| each(round, &mut |key| black_box(bare.get(&key).expect("reads")).is_some()),
            );
            let as_of = |round| {
                each(round, &mut |key| black_box(cache.as_of(&between(key)).expect("reads")).is_some())
            };
            let by_hand = |at: At, rows: &mut DBRawIterator<'_>| {
                black_box(bare.as_of(rows, &between(at)).expect("reads")).is_some()
            };
            let mut kept = bare.iterator();
            twins.compare(&format!("as_of, {order}, {place}"), count, as_of, |round| {
                each(round, &mut |key| by_hand(key, &mut kept))
            });
            twins.compare(
                &format!("as_of, {order}, {place}, against a new iterator each"),
                count,
                as_of,
                |round| each(round, &mut |key| by_hand(key, &mut bare.iterator())),
            );
        }
    }

    fn writes(&self, twins: &mut Twins, runtime: &Runtime) {
        let Pair { place, cache, bare, rows } = self;
        let count = twins.size(4_000, 2_000, 10);
        let random = |n| (rows.random(n), price(n));
        let put = |(key, value): (At, Price)| bare.insert(&key, &value).expect("writes");
        let mut kept = bare.iterator();
        twins.compare(
            &format!("insert, then as_of, {place}"),
            count,
            |round| {
                timed(round, count, |n| {
                    let (key, value) = appended::<0>(n);
                    cache.insert(&key, value).expect("writes");
                    assert!(black_box(cache.as_of(&between(key)).expect("reads")).is_some());
                })
            },
            |round| {
                timed(round, count, |n| {
                    let (key, value) = appended::<0>(n);
                    put((key, value));
                    kept.refresh().expect("sees what was written");
                    assert!(black_box(bare.as_of(&mut kept, &between(key)).expect("reads")).is_some());
                })
            },
        );
        // It would keep what it sees from being let go.
        drop(kept);
        twins.compare(
            &format!("insert, random, {place}"),
            count,
            |round| {
                timed(round, count, |n| {
                    let (key, value) = random(n);
                    cache.insert(&key, value).expect("writes");
                })
            },
            |round| timed(round, count, |n| put(random(n))),
        );
        twins.compare(
            &format!("insert, ascending, {place}"),
            count,
            |round| {
                timed(round, count, |n| {
                    let (key, value) = appended::<1>(n);
                    cache.insert(&key, value).expect("writes");
                })
            },
            |round| timed(round, count, |n| put(appended::<1>(n))),
        );
        twins.compare(
            &format!("insert, one in a message, {place}"),
            count,
            |round| {
                let row = source(&iter(part(round, count))).handle(appended::<2>).sink(cache);
                run(runtime, Flow::new().with(row))
            },
            |round| timed(round, count, |n| put(appended::<2>(n))),
        );
        let mut kept = bare.iterator();
        twins.compare(
            &format!("as_of, random, then insert, in a message, {place}"),
            count,
            |round| {
                let looked_up = cache.clone();
                let rows = *rows;
                let join = source(&iter(part(round, count))).handle(move |n| {
                    let held = looked_up.as_of(&between(rows.random(n))).expect("reads");
                    held.map(|(_, held)| (appended::<3>(n).0, held))
                });
                run(runtime, Flow::new().with(join.sink(cache)))
            },
            |round| {
                timed(round, count, |n| {
                    let held = bare.as_of(&mut kept, &between(rows.random(n))).expect("reads");
                    let (_, held) = held.expect("the row is there");
                    put((appended::<3>(n).0, held));
                    kept.refresh().expect("sees what was written");
                })
            },
        );
        drop(kept);
        let count_at_once = count.next_multiple_of(AT_ONCE);
        let firsts = |round| part(round, count_at_once).step_by(AT_ONCE as usize);
        twins.compare(
            &format!("insert, 1,000 in a message, {place}, against a batch"),
            count_at_once,
            |round| {
                let rows =
                    source(&iter(firsts(round))).handle(|first| some_appended(first).collect::<Vec<_>>());
                run(runtime, Flow::new().with(rows.sink(cache)))
            },
            |round| {
                let start = Instant::now();
                firsts(round).for_each(|first| bare.insert_all(some_appended(first)).expect("writes"));
                start.elapsed()
            },
        );
    }
}

/// Rows beyond those that are there, each case's in a group of its own.
fn appended<const CASE: u32>(n: u64) -> (At, Price) {
    ((GROUPS as u32 + CASE, n as i64 * STEP), price(n))
}

fn some_appended(first: u64) -> impl Iterator<Item = (At, Price)> {
    (first..first + AT_ONCE).map(appended::<4>)
}

/// The numbers of a round.
fn part(round: u64, count: u64) -> Range<u64> {
    round * count..(round + 1) * count
}

fn timed(round: u64, count: u64, each: impl FnMut(u64)) -> Duration {
    let start = Instant::now();
    part(round, count).for_each(each);
    start.elapsed()
}

/// Runs on the one worker, which is timed: waking another thread at both ends is not.
fn run(runtime: &Runtime, flow: Flow<()>) -> Duration {
    let timed = async {
        let start = Instant::now();
        flow.run(()).await.expect("no handler fails");
        start.elapsed()
    };
    runtime.block_on(runtime.spawn(timed)).expect("it does not panic")
}

fn main() -> Result<()> {
    let mut twins = Twins::from_args();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build()?;
    let rows = Rows { count: twins.size(1 << 20, 1 << 17, 1 << 10) };
    let directory = TempDir::new()?;
    for place in [Pair::on_disk, Pair::in_memory] {
        let pair = place(rows, directory.path())?;
        pair.look_ups(&mut twins);
        pair.writes(&mut twins, &runtime);
    }
    Ok(())
}
