//! Order-preserving keys: the order of the bytes is the order of the values, so that a range of
//! keys is a range of bytes.
//!
//! ```text
//! ("JFK", 10:00)  ──encode──▶  J F K 00 01 │ 80 05 e3 …      ──▶ RocksDB, in byte order
//!                              group       │ order
//! ```
//!
//! In a tuple the last element is the *order*, those before it are the *group*: look-ups by
//! nearness (`as_of`, `after`, `nearest`) never leave the group.
use std::borrow::Cow;

/// A type whose values can be keys of a cache.
///
/// Invariants: `decode` gives back what [`AsKey::encode`] wrote and takes exactly those bytes; for
/// any two values the order of their encodings, byte by byte, equals `Ord`; no encoding is a
/// proper prefix of another.
pub trait Key: AsKey<Self> + Send + Sync + Sized + 'static {
    /// The encoding's name, remembered by a store: two types with one format can read each other.
    fn format() -> Cow<'static, str>;
    /// Takes one value off the front of `bytes`.
    ///
    /// # Errors
    /// [`KeyError::Malformed`] when `bytes` do not begin with such a value.
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError>;
}

/// What a key `K` can be looked up by: `K` itself, or a borrowed form of it (`str` for `String`,
/// `(&str, i64)` for `(String, i64)`).
pub trait AsKey<K: ?Sized> {
    /// Appends the encoding, the same for every form of one key. Answers the length of the
    /// *group*: how many of the appended bytes lie before the last element (0 for a single value).
    ///
    /// # Errors
    /// [`KeyError::NotANumber`] for a float that is NaN.
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError>;
}

/// What the keys `K` can be narrowed to: the beginning of a string or of bytes, or the first
/// elements of a tuple.
pub trait PrefixOf<K: ?Sized> {
    /// Appends what the encodings of all keys under this prefix, and of no others, begin with.
    ///
    /// # Errors
    /// As [`AsKey::encode`].
    fn encode_prefix(&self, bytes: &mut Vec<u8>) -> Result<(), KeyError>;
}

/// A key whose values lie apart by a distance (the last element of a tuple decides): what
/// `nearest` needs.
pub trait Distance: Key {
    /// How far apart two values are.
    type Distance: PartialOrd;
    /// The distance between `self` and `other`, never negative.
    fn distance(&self, other: &Self) -> Self::Distance;
}

/// Why a key could not be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A float that is not a number has no place in an order.
    #[error("NaN cannot be a key: it has no place in the order")]
    NotANumber,
    /// The bytes are not an encoding of this type.
    #[error("these bytes are not a key of format `{format}`: {reason}")]
    Malformed {
        /// The format that was expected.
        format: Cow<'static, str>,
        /// What is wrong with them.
        reason: &'static str,
    },
}
