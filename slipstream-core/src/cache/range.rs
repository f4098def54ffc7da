//! Ranges of keys, in the forms in which Rust writes ranges, as half-open ranges of bytes.
//!
//! Invariant: no encoding of a key is a prefix of another's, so a key with a zero byte behind it lies
//! past that key and before the next.
use std::ops::{Bound, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::key::{AsKey, KeyError};

/// A range of keys `K`: `a..b`, `a..=b`, `a..`, `..b`, `..=b`, `..`, or a pair of [`Bound`]s, of keys
/// or of borrowed forms of them.
///
/// ```
/// use slipstream_core::Cache;
///
/// let stock = Cache::<String, u32>::in_memory()?;
/// stock.insert("apples", 3)?;
/// stock.insert("pears", 5)?;
/// assert_eq!(stock.range(..).count(), 2);
/// assert_eq!(stock.range("b"..).count(), 1);
/// assert_eq!(stock.range("z".."b").count(), 0);
/// # Ok::<(), slipstream_core::StoreError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a range of keys `{K}`",
    label = "not a range of `{K}`",
    note = "a range is `a..b`, `a..=b`, `a..`, `..b`, `..` or a pair of `Bound`s; `a` and `b` are keys, references to them, or borrowed forms such as `&str` for `String`"
)]
pub trait KeyRange<K>: Sized {
    /// Appends the encodings of the keys at the start and at the end, as far as there are such, and
    /// answers what they mean.
    ///
    /// # Errors
    /// As [`AsKey::encode`].
    fn encode_range(self, start: &mut Vec<u8>, end: &mut Vec<u8>)
    -> Result<(Bound<()>, Bound<()>), KeyError>;
}

impl<K> KeyRange<K> for RangeFull {
    fn encode_range(self, _: &mut Vec<u8>, _: &mut Vec<u8>) -> Result<(Bound<()>, Bound<()>), KeyError> {
        Ok((Bound::Unbounded, Bound::Unbounded))
    }
}

macro_rules! ranges {
    ($($range:ty),+) => {$(
        impl<K, Q: AsKey<K>> KeyRange<K> for $range {
            fn encode_range(
                self,
                start: &mut Vec<u8>,
                end: &mut Vec<u8>,
            ) -> Result<(Bound<()>, Bound<()>), KeyError> {
                Ok((encode(self.start_bound(), start)?, encode(self.end_bound(), end)?))
            }
        }
    )+};
}

ranges! {
    std::ops::Range<Q>, RangeFrom<Q>, RangeInclusive<Q>, RangeTo<Q>, RangeToInclusive<Q>, (Bound<Q>, Bound<Q>)
}

fn encode<K, Q: AsKey<K>>(bound: Bound<&Q>, bytes: &mut Vec<u8>) -> Result<Bound<()>, KeyError> {
    if let Bound::Included(key) | Bound::Excluded(key) = bound {
        key.encode(bytes)?;
    }
    Ok(bound.map(|_| ()))
}

/// Makes a prefix the end of the range of all that begin with it. It begins with a cache's id, which
/// is never all ones, so there is such an end.
pub(super) fn past_prefix(prefix: &mut Vec<u8>) {
    while let Some(last) = prefix.pop() {
        if let Some(next) = last.checked_add(1) {
            prefix.push(next);
            return;
        }
    }
}
