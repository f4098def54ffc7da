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
//!
//! What is written, and the name it is known by ([`Key::format`]); both are on disk, so they never
//! change:
//!
//! | type | format | bytes |
//! |---|---|---|
//! | `u8` … `u128`, `usize` | `u8` … `u128`, `u64` | big-endian |
//! | `i8` … `i128`, `isize` | `i8` … `i128`, `i64` | big-endian, sign bit flipped |
//! | `f32`, `f64` | `f32`, `f64` | big-endian; sign bit flipped, all bits of a negative |
//! | `bool` | `bool` | 00 or 01 |
//! | `char` | `char` | its number, as `u32` |
//! | `String`, `Box<str>`, `Arc<str>` | `string` | UTF-8, 00 written 00 ff, then 00 01 |
//! | `Vec<u8>`, `Box<[u8]>`, `Arc<[u8]>` | `bytes` | the same of the bytes |
//! | `[u8; N]` | `bytes[N]` | as they are |
//! | `Ipv4Addr`, `Ipv6Addr` | `ipv4`, `ipv6` | the octets |
//! | `IpAddr` | `ip` | 04 or 06, the octets |
//! | [`Timestamp`](crate::timestamp::Timestamp) | `timestamp` | microseconds, as `i64` |
//! | `SystemTime`, instants of the time crates | `instant` | seconds since 1970 as `i64`, nanoseconds as `u32` |
//! | `NaiveDateTime` | `datetime` | the same of the time without a zone |
//! | `NaiveDate` | `date` | days since 1970, as `i32` |
//! | `Duration` | `duration` | seconds as `u64`, nanoseconds as `u32` |
//! | `Option<T>` | `option<T>` | 00, or 01 and the value |
//! | `Reverse<T>` | `reverse<T>` | the complement of each byte |
//! | `()`, `(A,)`, `(A, B)` … six | `()`, `(A)`, `(A,B)` … | the elements, one after the other |
use std::borrow::Cow;

mod net;
mod number;
mod text;
mod time;
#[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
mod time_crates;
mod tuple;
mod wrap;

#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use tuple::tuple_format;

/// A type whose values can be keys of a cache.
///
/// Invariants: `decode` gives back what [`AsKey::encode`] wrote and takes exactly those bytes; for
/// any two values the order of their encodings, byte by byte, equals `Ord` (for floats
/// `total_cmp`, with -0.0 taken as 0.0); no encoding is a proper prefix of another. That last one
/// is what lets a key be an element of a tuple.
///
/// `derive(Key)` writes the implementation for a struct of keys. By hand it is made of the keys
/// that exist:
///
/// ```
/// # use slipstream_core::__private::key::{AsKey, Key, KeyError};
/// # use std::borrow::Cow;
/// /// A port number, with the smallest first.
/// struct Port(u16);
///
/// impl Key for Port {
///     fn format() -> Cow<'static, str> {
///         u16::format()
///     }
///     fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
///         u16::decode(bytes).map(Port)
///     }
/// }
///
/// impl AsKey<Port> for Port {
///     fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
///         self.0.encode(bytes)
///     }
/// }
/// # let mut bytes = Vec::new();
/// # assert_eq!(Port(80).encode(&mut bytes), Ok(0));
/// # assert_eq!(bytes, [0, 80]);
/// # assert_eq!(Port::decode(&mut &bytes[..]).map(|port| port.0), Ok(80));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "not a key",
    note = "keys are integers, floats, `bool`, `char`, strings, bytes, times, and `Option`, `Reverse` and tuples of these",
    note = "a struct of yours becomes one with `#[derive(Key)]`; it owns what it holds (`String`, not `&str`)",
    note = "the times of the crates `chrono`, `jiff` and `time` are keys with Slipstream's feature of that name"
)]
pub trait Key: AsKey<Self> + Send + Sync + Sized + 'static {
    /// The encoding's name, remembered by a store: two types with one format can read each other.
    fn format() -> Cow<'static, str>;
    /// Takes one value off the front of `bytes`.
    ///
    /// # Errors
    /// [`KeyError::Malformed`] when `bytes` do not begin with such a value. What is left of `bytes`
    /// is then of no use.
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError>;
}

/// What a key `K` can be looked up by: `K` itself, or a borrowed form of it (`str` for `String`,
/// `(&str, i64)` for `(String, i64)`), so that a look-up allocates nothing.
#[diagnostic::on_unimplemented(
    message = "a key `{K}` cannot be looked up by `{Self}`",
    label = "not a form of `{K}`",
    note = "it is looked up by `&{K}`, or by a borrowed form of it: `str` for `String`, `[u8]` for `Vec<u8>`; in a tuple, by a form of each element"
)]
pub trait AsKey<K: ?Sized> {
    /// Appends the encoding, the same for every form of one key. Answers the length of the
    /// *group*: how many of the appended bytes lie before the last element (0 for a single value).
    ///
    /// # Errors
    /// [`KeyError::NotANumber`] for a float that is NaN, [`KeyError::OutOfRange`] for a time that
    /// its type cannot hold in UTC. What was appended until then stays.
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError>;
}

/// What the keys `K` can be narrowed to.
///
/// | keys | prefixes |
/// |---|---|
/// | `String` | `str`, `String`: the strings that begin with it |
/// | `Vec<u8>` | `[u8]`, `[u8; N]`, `Vec<u8>`: the bytes that begin with it |
/// | `(A, B)` | `(a,)`, or `a` without parentheses |
/// | `(A, B, C)` | `(a,)` or `a`; `(a, b)` |
/// | … | and so on: any first elements, each whole, in any form of theirs ([`AsKey`]) |
///
/// Only a first element that is itself a tuple needs its parentheses: `((a, b),)` for
/// `((A, B), C)`.
#[diagnostic::on_unimplemented(
    message = "keys `{K}` cannot be narrowed to those under a prefix `{Self}`",
    label = "not a prefix of `{K}`",
    note = "a prefix of a string or of bytes is its beginning (`str`, `[u8]`); of a tuple it is its first elements, without the last: `a`, `(a,)` or `(a, b)` for `(A, B, C)`; a first element that is a tuple keeps its parentheses, `((a, b),)`",
    note = "of other keys take a `range`"
)]
pub trait PrefixOf<K: ?Sized> {
    /// Appends what the encodings of all keys under this prefix, and of no others, begin with.
    ///
    /// # Errors
    /// As [`AsKey::encode`].
    fn encode_prefix(&self, bytes: &mut Vec<u8>) -> Result<(), KeyError>;
}

/// A form of a key that is not a tuple: as the first element of one it is a prefix without
/// parentheses. Implement it beside [`AsKey`] for a key of your own; `derive(Key)` does.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prefix without parentheses",
    note = "write the first elements as a tuple: `(a,)`"
)]
pub trait Single {}

/// A key whose values lie apart by a distance (the last element of a tuple decides): what
/// `nearest` needs.
#[diagnostic::on_unimplemented(
    message = "between keys `{Self}` there is no distance",
    label = "`nearest` needs a distance",
    note = "integers, floats, times and durations have one, and tuples that end in one of these; `as_of` and `after` need none"
)]
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
    /// A time near the end of its type's years lies, in UTC, past it and could not be read back.
    #[error("this time cannot be a key: in UTC it lies outside of the years that its type can hold")]
    OutOfRange,
    /// The bytes are not an encoding of this type.
    #[error("these bytes are not a key of format `{format}`: {reason}")]
    Malformed {
        /// The format that was expected.
        format: Cow<'static, str>,
        /// What is wrong with them.
        reason: &'static str,
    },
}

impl KeyError {
    /// The bytes are not a `K`, for this reason.
    #[cold]
    #[must_use]
    pub fn malformed<K: Key>(reason: &'static str) -> Self {
        Self::Malformed { format: K::format(), reason }
    }
}

impl<K: ?Sized, Q: AsKey<K> + ?Sized> AsKey<K> for &Q {
    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
        (**self).encode(bytes)
    }
}

impl<Q: Single + ?Sized> Single for &Q {}

/// Takes `N` bytes off the front.
#[inline]
fn take<K: Key, const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], KeyError> {
    match bytes.split_first_chunk::<N>() {
        Some((first, rest)) => {
            *bytes = rest;
            Ok(*first)
        }
        None => Err(KeyError::malformed::<K>("they are too few")),
    }
}

/// The traits as bounds that the compiler proves where they are used, and not where they are
/// written: `where for<'a> Inner: lazily::Distance<'a>` in what `derive(Key)` writes is no error
/// when `Inner` has no distance; only `nearest` is.
#[doc(hidden)]
pub mod lazily {
    pub trait Key<'a>: super::Key {}
    impl<K: super::Key> Key<'_> for K {}

    pub trait AsKey<'a, K: ?Sized>: super::AsKey<K> {}
    impl<K: ?Sized, Q: super::AsKey<K> + ?Sized> AsKey<'_, K> for Q {}

    pub trait PrefixOf<'a, K: ?Sized>: super::PrefixOf<K> {}
    impl<K: ?Sized, Q: super::PrefixOf<K> + ?Sized> PrefixOf<'_, K> for Q {}

    pub trait Distance<'a>: super::Distance {}
    impl<K: super::Distance> Distance<'_> for K {}
}
