//! A database used by hand, as a program without Slipstream would keep its state.
use rocksdb::{DB, DBRawIterator, ReadOptions, WriteBatch, WriteOptions};
use serde::{Serialize, de::DeserializeOwned};
use slipstream::Key;
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::Result;

mod options;

use options::options;

/// How rows get to RocksDB, and what a look-up asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Puts,
    Batches,
    Map,
    MapAndBelow,
}

/// In front of each key, as a store has it.
const ID: [u8; 4] = [0, 0, 0, 1];
const PAST_ID: [u8; 4] = [0, 0, 0, 2];

/// Rows to a batch.
const AT_ONCE: usize = 1_000;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// For a key and a value.
pub(crate) type Buffers = (Vec<u8>, Vec<u8>);

pub(crate) struct Bare {
    db: DB,
    way: Way,
    /// Not written yet, where a map is in front.
    rows: RwLock<Rows>,
    /// Not written yet, where there are batches alone.
    batch: Mutex<WriteBatch>,
    /// How often something was written, so that a reader knows when it is behind.
    written: AtomicU64,
    sync_every: Duration,
    synced: Mutex<Instant>,
}

impl Bare {
    pub(crate) fn open(path: &Path, way: Way, sync_every: Duration) -> Result<Self> {
        Ok(Bare {
            db: DB::open(&options(), path)?,
            way,
            rows: RwLock::default(),
            batch: Mutex::default(),
            written: AtomicU64::new(0),
            sync_every,
            synced: Mutex::new(Instant::now()),
        })
    }

    fn encode_key(key: &impl Key, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.clear();
        bytes.extend_from_slice(&ID);
        key.encode(bytes)?;
        Ok(())
    }

    pub(crate) fn insert(&self, key: &impl Key, value: &impl Serialize, buffers: &mut Buffers) -> Result<()> {
        let (key_bytes, value_bytes) = buffers;
        Self::encode_key(key, key_bytes)?;
        value_bytes.clear();
        value.serialize(&mut rmp_serde::Serializer::new(&mut *value_bytes).with_struct_map())?;
        match self.way {
            Way::Puts => {
                self.db.put_opt(key_bytes, value_bytes, &self.write_options(false))?;
                self.written.fetch_add(1, Ordering::Release);
            }
            Way::Batches => {
                let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
                batch.put(key_bytes, value_bytes);
                if batch.len() >= AT_ONCE {
                    self.write(std::mem::take(&mut batch), false)?;
                }
            }
            Way::Map | Way::MapAndBelow => {
                let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
                rows.insert(key_bytes.clone(), value_bytes.clone());
                if rows.len() >= AT_ONCE {
                    self.write_rows(&mut rows, false)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn get<V: DeserializeOwned>(
        &self,
        key: &impl Key,
        (bytes, _): &mut Buffers,
    ) -> Result<Option<V>> {
        Self::encode_key(key, bytes)?;
        if let Some(value) = self.rows.read().unwrap_or_else(PoisonError::into_inner).get(&*bytes) {
            return Ok(Some(rmp_serde::from_slice(value)?));
        }
        let value = self.db.get_pinned(bytes)?;
        Ok(value.map(|value| rmp_serde::from_slice(&value)).transpose()?)
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(ID);
        options.set_iterate_upper_bound(PAST_ID);
        let rows = self.db.raw_iterator_opt(options);
        Reader { bare: self, rows, seen: 0, bytes: Vec::new() }
    }

    /// Writes what is left, and syncs.
    pub(crate) fn finish(&self) -> Result<()> {
        let batch = std::mem::take(&mut *self.batch.lock().unwrap_or_else(PoisonError::into_inner));
        self.write(batch, true)?;
        self.write_rows(&mut self.rows.write().unwrap_or_else(PoisonError::into_inner), true)
    }

    fn write_rows(&self, rows: &mut Rows, last: bool) -> Result<()> {
        let mut batch = WriteBatch::default();
        for (key, value) in std::mem::take(rows) {
            batch.put(key, value);
        }
        self.write(batch, last)
    }

    fn write(&self, batch: WriteBatch, last: bool) -> Result<()> {
        self.db.write_opt(batch, &self.write_options(last))?;
        self.written.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// With a sync when one is due.
    fn write_options(&self, last: bool) -> WriteOptions {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        let mut options = WriteOptions::default();
        if last || synced.elapsed() >= self.sync_every {
            *synced = Instant::now();
            options.set_sync(true);
        }
        options
    }
}

/// Looks up by time, with an iterator that is kept.
pub(crate) struct Reader<'b> {
    bare: &'b Bare,
    rows: DBRawIterator<'b>,
    seen: u64,
    bytes: Vec<u8>,
}

impl Reader<'_> {
    pub(crate) fn as_of<K: Key, V: DeserializeOwned>(&mut self, at: &K) -> Result<Option<(K, V)>> {
        Bare::encode_key(at, &mut self.bytes)?;
        let front = self.bare.rows.read().unwrap_or_else(PoisonError::into_inner);
        let above = front.range::<Vec<u8>, _>(..=&self.bytes).next_back();
        if let Some(above) = above
            && self.bare.way == Way::Map
        {
            return Self::read(above).map(Some);
        }
        let written = self.bare.written.load(Ordering::Acquire);
        if self.seen != written {
            self.rows.refresh()?;
            self.seen = written;
        }
        self.rows.seek_for_prev(&self.bytes);
        let below = self.rows.item();
        if let Some((key, value)) = above
            && below.is_none_or(|(below, _)| below <= key.as_slice())
        {
            return Self::read((key, value)).map(Some);
        }
        drop(front);
        match below {
            Some(row) => Self::read(row).map(Some),
            None => Ok(self.rows.status().map(|()| None)?),
        }
    }

    fn read<K: Key, V: DeserializeOwned>(
        (key, value): (impl AsRef<[u8]>, impl AsRef<[u8]>),
    ) -> Result<(K, V)> {
        let key = K::decode(&mut key.as_ref().get(ID.len()..).unwrap_or_default())?;
        Ok((key, rmp_serde::from_slice(value.as_ref())?))
    }
}
