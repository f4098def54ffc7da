//! One order of rows out of several: the layers above the database, newest first, and the
//! database's own rows.
//!
//! ```text
//!   from ─▶ ························· ◀─ to      the rows not yet taken, a half-open range of bytes
//! layers:      a=1     c=deleted
//! cursor:      a=0  b=2  c=3  d=4                 steps forward: a=1, b=2, d=4
//! ```
//!
//! Invariants: each step takes one row off one end and narrows the range past it, so both ends may
//! be stepped in any order and meet; the layers are only looked at, and the cursor is sought anew
//! only when the direction changes.
use std::cmp::Ordering;
use std::ops::Deref;

use super::Bytes;
use super::cursor::{Cursor, Lent};
use super::rows::Rows;
use super::table::Table;

/// From which end of the range the next row is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

impl Direction {
    /// How `one` lies to `other` in this direction: `Less` is met first.
    fn compare(self, one: &[u8], other: &[u8]) -> Ordering {
        match self {
            Self::Forward => one.cmp(other),
            Self::Backward => other.cmp(one),
        }
    }
}

/// A row that a step has taken.
#[derive(Debug)]
pub(crate) enum Taken {
    /// It is in a layer.
    Above(Bytes, Bytes),
    /// It is the one on which the cursor stands.
    Below,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    Anywhere,
    /// On the next row in this direction, or past the end.
    OnNext(Direction),
    /// On a row that was taken in this direction, or hidden by one that was.
    OnTaken(Direction),
}

/// The database's rows in a merge: none where a layer hides them all.
#[derive(Debug)]
pub(crate) struct Below<T: Deref<Target = Table>> {
    cursor: Option<Lent<T>>,
    stands: Stands,
}

impl<T: Deref<Target = Table>> Below<T> {
    pub(crate) fn new(cursor: Option<Lent<T>>) -> Self {
        Self { cursor, stands: Stands::Anywhere }
    }

    /// The row of [`Taken::Below`], until the next step.
    pub(crate) fn row(&self) -> Option<(&[u8], &[u8])> {
        self.cursor.as_ref()?.get()?.row()
    }

    /// The next key in the range, on which the cursor stands then.
    #[inline]
    fn peek(
        &mut self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
    ) -> Result<Option<&[u8]>, rocksdb::Error> {
        let Some(cursor) = self.cursor.as_mut().and_then(Lent::get_mut) else { return Ok(None) };
        match (direction, self.stands) {
            (_, Stands::OnNext(stands)) if stands == direction => {}
            (Direction::Forward, Stands::OnTaken(Direction::Forward)) => cursor.next()?,
            (Direction::Backward, Stands::OnTaken(Direction::Backward)) => cursor.prev()?,
            (Direction::Forward, _) => cursor.seek(from)?,
            (Direction::Backward, _) => cursor.seek_before(to)?,
        }
        self.stands = Stands::OnNext(direction);
        Ok(Cursor::key(cursor).filter(|key| match direction {
            Direction::Forward => *key < to,
            Direction::Backward => *key >= from,
        }))
    }
}

/// The layers of which a cache's rows can be seen, down to the first that hides all below it, and
/// whether one does.
#[inline]
pub(crate) fn visible<L: Deref<Target = Rows>>(layers: &[L], cache: u32) -> (&[L], bool) {
    match layers.iter().position(|layer| layer.hides(cache)) {
        Some(last) => (layers.get(..=last).unwrap_or(layers), true),
        None => (layers, false),
    }
}

/// Takes the next row of `from..to` off the end that `direction` begins at, and narrows the range.
/// The layers are the [`visible`] ones, the newest first.
#[inline]
pub(crate) fn step<L: Deref<Target = Rows>, T: Deref<Target = Table>>(
    layers: &[L],
    below: &mut Below<T>,
    from: &mut Vec<u8>,
    to: &mut Vec<u8>,
    direction: Direction,
) -> Result<Option<Taken>, rocksdb::Error> {
    while from < to {
        let above = newest(layers, from, to, direction);
        let below_key = below.peek(from, to, direction)?;
        let order = match (&above, below_key) {
            (None, None) => return Ok(None),
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some((above, _)), Some(below)) => direction.compare(above, below),
        };
        let key = match &above {
            Some((above, _)) if order.is_le() => Some(&***above),
            _ => below_key,
        };
        if let Some(key) = key {
            narrow(from, to, key, direction);
        }
        if order.is_ge() {
            below.stands = Stands::OnTaken(direction);
        }
        match above {
            Some((key, Some(value))) if order.is_le() => {
                return Ok(Some(Taken::Above(key.clone(), value.clone())));
            }
            Some((_, None)) if order.is_le() => {} // Deleted, together with the row below it.
            _ => return Ok(Some(Taken::Below)),
        }
    }
    Ok(None)
}

/// The last row of any layer in the range, where the database has none past it, so that it need not be
/// asked. Narrows the range as [`step`] does.
#[inline]
pub(crate) fn last_past<L: Deref<Target = Rows>>(
    layers: &[L],
    from: &[u8],
    to: &mut Vec<u8>,
    is_past: impl FnOnce(&[u8]) -> bool,
) -> Option<Taken> {
    let (key, value) = newest(layers, from, to, Direction::Backward)?;
    let value = value.filter(|_| is_past(key))?;
    narrow(&mut Vec::new(), to, key, Direction::Backward);
    Some(Taken::Above(key.clone(), value.clone()))
}

/// The first row of any layer in this direction; of equal keys, that of the newest layer.
#[inline]
fn newest<'l, L: Deref<Target = Rows>>(
    layers: &'l [L],
    from: &[u8],
    to: &[u8],
    direction: Direction,
) -> Option<(&'l Bytes, Option<&'l Bytes>)> {
    let rows = layers.iter().filter_map(|layer| match direction {
        Direction::Forward => layer.first(from, to),
        Direction::Backward => layer.last(from, to),
    });
    // Of equal ones `min_by` answers the first.
    rows.min_by(|(one, _), (other, _)| direction.compare(one, other))
}

#[inline]
fn narrow(from: &mut Vec<u8>, to: &mut Vec<u8>, taken: &[u8], direction: Direction) {
    match direction {
        Direction::Forward => {
            from.clear();
            from.extend_from_slice(taken);
            // The least of all that is greater.
            from.push(0);
        }
        Direction::Backward => {
            to.clear();
            to.extend_from_slice(taken);
        }
    }
}
