//! A batch: the bytes of some messages of one topic, one after the other in one arena, and where each lies.
//!
//! ```text
//! bytes    │ key │ value │ headers │ key │ value │ …
//! records  │ partition, offset, time, lengths │ partition, … │
//! headers  │ length, name │ length, value │ length, name │ …
//! ```
//!
//! Invariants: nothing is allocated for a message once the arena is warm; null and empty are told apart; headers
//! are read only when somebody asks for them.
use crate::Timestamp;

/// The bytes of some messages of one topic.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    records: Vec<Record>,
}

/// Where a message lies in its batch, and what it is called by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) partition: i32,
    pub(super) offset: i64,
    /// In milliseconds; `NO_TIME` where it has none.
    millis: i64,
    begins_at: usize,
    key: u32,
    value: u32,
    headers: u32,
}

/// The length of what is null.
const NULL: u32 = u32::MAX;
/// The time of a message that has none.
pub(super) const NO_TIME: i64 = i64::MIN;
/// An arena larger than this is not kept for the next batch.
const KEPT_BYTES: usize = 4 << 20;

impl Batch {
    /// Makes it empty, and keeps its memory for the next messages unless that is much.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }

    /// Adds a message. Its headers follow by [`header`](Batch::header).
    #[inline]
    pub(super) fn push(
        &mut self,
        (partition, offset, millis): (i32, i64, i64),
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) {
        let begins_at = self.bytes.len();
        self.bytes.reserve(key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len));
        let (key, value) = (self.put(key), self.put(value));
        self.records.push(Record { partition, offset, millis, begins_at, key, value, headers: 0 });
    }

    /// Adds a header to the message that was added last.
    pub(super) fn header(&mut self, name: &[u8], value: Option<&[u8]>) {
        let before = self.bytes.len();
        for part in [Some(name), value] {
            let at = self.bytes.len();
            self.bytes.extend_from_slice(&NULL.to_le_bytes());
            let length = self.put(part);
            if let Some(place) = self.bytes.get_mut(at..at + size_of::<u32>()) {
                place.copy_from_slice(&length.to_le_bytes());
            }
        }
        let grown = self.bytes.len() - before;
        if let Some(last) = self.records.last_mut() {
            last.headers = last.headers.saturating_add(u32::try_from(grown).unwrap_or(u32::MAX));
        }
    }

    /// Appends a part, and answers its length.
    #[inline]
    fn put(&mut self, part: Option<&[u8]>) -> u32 {
        let Some(part) = part else { return NULL };
        self.bytes.extend_from_slice(part);
        // Kafka's own lengths have 31 bits.
        u32::try_from(part.len()).unwrap_or(NULL - 1)
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<&Record> {
        self.records.get(at)
    }

    #[inline]
    pub(super) fn key(&self, record: &Record) -> Option<&[u8]> {
        self.part(record.begins_at, record.key)
    }

    #[inline]
    pub(super) fn value(&self, record: &Record) -> Option<&[u8]> {
        self.part(record.begins_at + taken(record.key), record.value)
    }

    fn part(&self, begins_at: usize, length: u32) -> Option<&[u8]> {
        if length == NULL { None } else { self.bytes.get(begins_at..begins_at + length as usize) }
    }

    /// The headers of a message, in the order written. A null value is one of no bytes.
    pub(super) fn headers(&self, record: &Record) -> impl Iterator<Item = (&str, &[u8])> {
        let begins_at = record.begins_at + taken(record.key) + taken(record.value);
        let mut rest = self.part(begins_at, record.headers).unwrap_or_default();
        std::iter::from_fn(move || {
            let name = next_part(&mut rest)?.unwrap_or_default();
            let value = next_part(&mut rest)?.unwrap_or_default();
            // Java writes nothing else.
            Some((str::from_utf8(name).unwrap_or_default(), value))
        })
    }
}

impl Record {
    pub(super) fn timestamp(&self) -> Option<Timestamp> {
        if self.millis == NO_TIME { None } else { Timestamp::from_millis(self.millis) }
    }
}

/// How many bytes a part of this length takes up.
fn taken(length: u32) -> usize {
    if length == NULL { 0 } else { length as usize }
}

/// The next part of a list of headers; `None` at its end.
fn next_part<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let (length, bytes) = rest.split_first_chunk()?;
    let length = u32::from_le_bytes(*length);
    let (part, after) = bytes.split_at_checked(taken(length))?;
    *rest = after;
    Some((length != NULL).then_some(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key, value and headers.
    type Read<'a> = (Option<&'a [u8]>, Option<&'a [u8]>, Vec<(&'a str, &'a [u8])>);

    fn read(batch: &Batch, at: usize) -> Read<'_> {
        let record = batch.get(at).unwrap();
        (batch.key(record), batch.value(record), batch.headers(record).collect())
    }

    #[test]
    fn null_and_empty_are_told_apart_and_headers_keep_their_order() {
        let mut batch = Batch::default();
        batch.push((0, 7, 1_500), None, Some(b""));
        batch.push((3, 8, NO_TIME), Some(b""), None);
        batch.header(b"b", Some(b"two"));
        batch.header(b"", None);
        batch.header(b"b", Some(b""));
        batch.push((3, 9, 0), Some(b"key"), Some(b"value"));
        assert_eq!(read(&batch, 0), (None, Some(&b""[..]), vec![]));
        assert_eq!(read(&batch, 1), (Some(&b""[..]), None, vec![("b", &b"two"[..]), ("", b""), ("b", b"")]));
        assert_eq!(read(&batch, 2), (Some(&b"key"[..]), Some(&b"value"[..]), vec![]));
        assert_eq!(batch.len(), 3);
        let times = [0, 1, 2].map(|at| batch.get(at).unwrap().timestamp());
        assert_eq!(times, [Timestamp::from_millis(1_500), None, Timestamp::from_millis(0)]);
    }

    #[test]
    fn a_batch_that_is_cleared_is_empty() {
        let mut batch = Batch::default();
        batch.push((0, 0, 0), None, Some(&vec![1; KEPT_BYTES * 2]));
        batch.clear();
        assert!(batch.len() == 0 && batch.get(0).is_none() && batch.bytes.capacity() <= KEPT_BYTES);
        batch.push((0, 1, 0), Some(b"a"), None);
        assert_eq!(read(&batch, 0), (Some(&b"a"[..]), None, vec![]));
    }
}
