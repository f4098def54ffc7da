//! Loops with state: rows not yet written are in an ordered map, which is asked first. Each 100 ms outputs are
//! acknowledged, then rows and positions are written in one synced batch, and the map is empty again.
use super::{
    COMMIT_EVERY, Result,
    cluster::{Cluster, Filled},
    consume::queue,
    data::{Joined, Now, Order, Purchase, Update, Weather, user},
    meter::Meter,
    native::{Lent, Queue},
    produce::Producer,
};
use crate::{bare_options, twin::clock::Took};
use rdkafka::{
    consumer::{BaseConsumer, Consumer},
    producer::BaseRecord,
};
use rocksdb::{DB, DBRawIterator, WriteBatch, WriteOptions};
use serde::{Serialize, de::DeserializeOwned};
use slipstream::Key;
use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// In front of each key, as a store has it, and another in front of positions.
const ID: [u8; 4] = [0, 0, 0, 1];
const POSITIONS: [u8; 4] = [0, 0, 0, 0];

/// The rows of a database, and those not yet written.
struct Rows<'d, K, V> {
    db: &'d DB,
    new: BTreeMap<K, V>,
    /// The next offset of each partition.
    positions: BTreeMap<i32, i64>,
    bytes: Vec<u8>,
}

impl<'d, K: Key + Ord, V: Serialize + DeserializeOwned> Rows<'d, K, V> {
    fn new(db: &'d DB) -> Self {
        Rows { db, new: BTreeMap::new(), positions: BTreeMap::new(), bytes: Vec::new() }
    }

    /// What was written under the key.
    fn below(&mut self, key: &K) -> Result<Option<V>> {
        encode(key, &mut self.bytes)?;
        let value = self.db.get_pinned(&self.bytes)?;
        Ok(value.map(|value| rmp_serde::from_slice(&value)).transpose()?)
    }

    fn at(&mut self, partition: i32, offset: i64) {
        self.positions.insert(partition, offset + 1);
    }

    fn commit(&mut self) -> Result<()> {
        let (mut batch, mut value_bytes) = (WriteBatch::default(), Vec::new());
        for (key, value) in &self.new {
            encode(key, &mut self.bytes)?;
            value_bytes.clear();
            value.serialize(&mut rmp_serde::Serializer::new(&mut value_bytes).with_struct_map())?;
            batch.put(&self.bytes, &value_bytes);
        }
        for (partition, offset) in &self.positions {
            batch.put([POSITIONS, partition.to_be_bytes()].concat(), offset.to_be_bytes());
        }
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.db.write_opt(batch, &options)?;
        self.new.clear();
        Ok(())
    }
}

fn encode(key: &impl Key, bytes: &mut Vec<u8>) -> Result<()> {
    bytes.clear();
    bytes.extend_from_slice(&ID);
    key.encode(bytes)?;
    Ok(())
}

/// When the next commit is due.
struct Due(Instant);

impl Due {
    fn is_now(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now - self.0 >= COMMIT_EVERY;
        if is_due {
            self.0 = now;
        }
        is_due
    }
}

/// For how long a queue is drained before the next has its turn: as long as a source keeps its worker. With turns
/// of so many messages the two topics of a join would end together here, and not in a flow.
const TURN: Duration = Duration::from_millis(1);

/// What is done with each message.
type Each<'e, R> = &'e mut dyn FnMut(&mut R, Lent<'_>) -> Result<()>;

/// Drains the queues by turns, and calls `commit` when it is due, and at the end.
fn run<R>(
    consumer: &BaseConsumer,
    meter: &Meter,
    queues: &mut [(Queue<'_>, Each<'_, R>)],
    rows: &mut R,
    mut commit: impl FnMut(&mut R) -> Result<()>,
) -> Result<()> {
    let mut due = Due(Instant::now());
    while !meter.is_done() {
        let mut taken = 0;
        for (queue, each) in &mut *queues {
            let turn = Instant::now();
            loop {
                let now = queue.drain(|message| {
                    each(rows, message)?;
                    meter.message();
                    Ok(())
                })?;
                taken += now;
                if now == 0 || turn.elapsed() >= TURN {
                    break;
                }
            }
        }
        consumer.poll(Duration::ZERO).transpose()?;
        if due.is_now() {
            commit(rows)?;
        }
        if taken == 0
            && let Some((queue, _)) = queues.first()
        {
            queue.wait();
        }
    }
    commit(rows)
}

fn open() -> Result<(TempDir, DB)> {
    let directory = TempDir::new()?;
    let db = DB::open(&bare_options::options(), directory.path())?;
    Ok((directory, db))
}

/// Keeps each message's text under one of 100,000 keys.
pub(crate) fn texts(filled: &Filled) -> Result<Took> {
    let (_directory, db) = open()?;
    let consumer: BaseConsumer = filled.consuming().create()?;
    let queue = queue(&consumer, filled)?;
    consumer.assign(&filled.assignment()?)?;
    let meter = Meter::new(filled.count);
    let mut each = |rows: &mut Rows<'_, u64, String>, message: Lent<'_>| {
        let text = str::from_utf8(message.payload)?.to_owned();
        rows.new.insert(user(message.offset.unsigned_abs()), text);
        rows.at(message.partition, message.offset);
        Ok(())
    };
    run(&consumer, &meter, &mut [(queue, &mut each)], &mut Rows::new(&db), Rows::commit)?;
    meter.took()
}

/// Counts purchases by user.
pub(crate) fn count(filled: &Filled) -> Result<Took> {
    let (_directory, db) = open()?;
    let consumer: BaseConsumer = filled.consuming().create()?;
    let queue = queue(&consumer, filled)?;
    consumer.assign(&filled.assignment()?)?;
    let meter = Meter::new(filled.count);
    let mut each = |rows: &mut Rows<'_, u64, u64>, message: Lent<'_>| {
        let purchase: Purchase = serde_json::from_slice(message.payload)?;
        match rows.new.get_mut(&purchase.user) {
            Some(count) => *count += 1,
            None => {
                let before = rows.below(&purchase.user)?.unwrap_or(0);
                rows.new.insert(purchase.user, before + 1);
            }
        }
        rows.at(message.partition, message.offset);
        Ok(())
    };
    run(&consumer, &meter, &mut [(queue, &mut each)], &mut Rows::new(&db), Rows::commit)?;
    meter.took()
}

/// All counts, and those of them that are not yet written.
struct Counts<'d> {
    all: HashMap<u64, (u64, bool)>,
    changed: Vec<u64>,
    rows: Rows<'d, u64, u64>,
}

/// Counts purchases by user, with all counts in memory: fast, while there is memory for them.
pub(crate) fn count_in_memory(filled: &Filled) -> Result<Took> {
    let (_directory, db) = open()?;
    let consumer: BaseConsumer = filled.consuming().create()?;
    let queue = queue(&consumer, filled)?;
    consumer.assign(&filled.assignment()?)?;
    let meter = Meter::new(filled.count);
    let mut each = |counts: &mut Counts<'_>, message: Lent<'_>| {
        let purchase: Purchase = serde_json::from_slice(message.payload)?;
        let (count, is_changed) = match counts.all.entry(purchase.user) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(place) => place.insert((counts.rows.below(&purchase.user)?.unwrap_or(0), false)),
        };
        *count += 1;
        if !std::mem::replace(is_changed, true) {
            counts.changed.push(purchase.user);
        }
        counts.rows.at(message.partition, message.offset);
        Ok(())
    };
    let mut counts = Counts { all: HashMap::new(), changed: Vec::new(), rows: Rows::new(&db) };
    run(&consumer, &meter, &mut [(queue, &mut each)], &mut counts, |counts| {
        for user in counts.changed.drain(..) {
            if let Some((count, is_changed)) = counts.all.get_mut(&user) {
                *is_changed = false;
                counts.rows.new.insert(user, *count);
            }
        }
        counts.rows.commit()
    })?;
    meter.took()
}

/// Weather by time, and an iterator over what is written, which is kept.
struct Forecast<'d> {
    rows: Rows<'d, i64, Weather>,
    written: DBRawIterator<'d>,
    /// The newest that is written: what is newer than this in the map has nothing in between.
    newest: Option<i64>,
}

impl Forecast<'_> {
    fn as_of(&mut self, time: i64) -> Result<Option<f64>> {
        let new = self.rows.new.range(..=time).next_back();
        if let Some((at, weather)) = new
            && self.newest.is_none_or(|newest| newest <= *at)
        {
            return Ok(Some(weather.celsius));
        }
        encode(&time, &mut self.rows.bytes)?;
        self.written.seek_for_prev(&self.rows.bytes);
        let Some((mut key, value)) =
            self.written.item().and_then(|(key, value)| Some((key.strip_prefix(&ID)?, value)))
        else {
            self.written.status()?;
            return Ok(new.map(|(_, weather)| weather.celsius));
        };
        if let Some((at, weather)) = new
            && *at >= i64::decode(&mut key)?
        {
            return Ok(Some(weather.celsius));
        }
        let weather: Weather = rmp_serde::from_slice(value)?;
        Ok(Some(weather.celsius))
    }

    fn commit(&mut self) -> Result<()> {
        self.newest = self.newest.max(self.rows.new.last_key_value().map(|(time, _)| *time));
        self.rows.commit()?;
        Ok(self.written.refresh()?)
    }
}

/// Joins each order to the weather as of its time, into a third topic.
pub(crate) fn join(cluster: &Cluster, updates: &Filled, orders: &Filled, out: &str) -> Result<Took> {
    let (_directory, db) = open()?;
    let producer = Producer::new(&cluster.producing(), 100_000)?;
    let consumer: BaseConsumer = updates.consuming().create()?;
    let (updated, ordered) = (queue(&consumer, updates)?, queue(&consumer, orders)?);
    let mut assignment = updates.assignment()?;
    for partition in orders.assignment()?.elements() {
        assignment.add_partition_offset(partition.topic(), partition.partition(), partition.offset())?;
    }
    consumer.assign(&assignment)?;
    let meter = Meter::new(updates.count + orders.count);
    let now = Now::default();
    let mut keep = |forecast: &mut Forecast<'_>, message: Lent<'_>| {
        let Update { time, celsius, wind } = serde_json::from_slice(message.payload)?;
        now.updated(time);
        forecast.rows.new.insert(time, Weather { celsius, wind });
        forecast.rows.at(message.partition, message.offset);
        Ok(())
    };
    let mut bytes = Vec::new();
    let mut look_up = |forecast: &mut Forecast<'_>, message: Lent<'_>| {
        let Order { order, count, .. } = serde_json::from_slice(message.payload)?;
        // Positions of the second topic after those of the first.
        forecast.rows.at(updates.partitions + message.partition, message.offset);
        let Some(celsius) = forecast.as_of(now.asked(order))? else { return Ok(()) };
        bytes.clear();
        serde_json::to_writer(&mut bytes, &Joined { order, count, celsius })?;
        producer.send(BaseRecord::<(), _>::to(out).payload(&bytes))
    };
    let mut forecast = Forecast { rows: Rows::new(&db), written: db.raw_iterator(), newest: None };
    run(
        &consumer,
        &meter,
        &mut [(updated, &mut keep), (ordered, &mut look_up)],
        &mut forecast,
        |forecast| {
            producer.drain()?;
            forecast.commit()
        },
    )?;
    meter.took()
}
