//! Codecs: from bytes to a value, and back.
//!
//! ```text
//! payload on the wire      null ──null()──▶ None       `decode` is not called
//!                          bytes ─decode()─▶ value
//! value                    None ─is_null()─▶ null      `encode` is not called
//!                          value ─encode()─▶ bytes      none of them is not null
//! ```
//!
//! [`read`] and [`write`](fn@write) are these pictures; what reads and writes records goes through them.
//!
//! Invariants: a null never reaches a decoder, and only a type that has a value for it can be read from one;
//! a value takes up all bytes of its payload; `decode` gives back what `encode` wrote.
use std::any::type_name;
use std::borrow::Cow;

use crate::error::BoxError;

mod own;
mod plain;
mod serde_formats;

#[cfg(test)]
mod tests;

pub use own::Nullable;
pub use plain::{KeyCodec, Raw, Text};
pub use serde_formats::{Json, MessagePack};

/// From bytes to a `T`, and back.
///
/// [`Json`] and [`MessagePack`] are codecs of what serde can write and read, [`Text`] and [`Raw`] of strings
/// and bytes as they are, [`KeyCodec`] is that of keys. Each of them knows `Option<T>`, whose `None` is a null
/// on the wire. One of your own needs two methods; [`Nullable`] makes it one of `Option<T>`:
///
/// ```
/// use slipstream_core::codec::{Codec, CodecError, Nullable, read};
///
/// /// What Java's `LongSerializer` writes.
/// #[derive(Debug)]
/// struct Long;
///
/// impl Codec<i64> for Long {
///     fn encode(&self, value: &i64, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
///         bytes.extend_from_slice(&value.to_be_bytes());
///         Ok(())
///     }
///     fn decode(&self, bytes: &[u8]) -> Result<i64, CodecError> {
///         let bytes = bytes.try_into().map_err(|cause| CodecError::decode::<i64>("Java's long", cause))?;
///         Ok(i64::from_be_bytes(bytes))
///     }
/// }
///
/// let mut bytes = Vec::new();
/// Long.encode(&-2, &mut bytes)?;
/// assert_eq!(read(&Long, Some(&bytes))?, -2);
/// assert_eq!(
///     read(&Long, Some(b"two")).unwrap_err().to_string(),
///     "these bytes are not Java's long of type `i64`"
/// );
/// assert_eq!(read(&Nullable(Long), None)?, None);
/// # Ok::<(), CodecError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a codec of `{T}`",
    label = "cannot write and read `{T}`",
    note = "`Json` and `MessagePack` need serde's `Serialize` and `Deserialize`; `Text` takes strings, `Raw` bytes, `KeyCodec` both and `()`",
    note = "a codec of your own for `T` becomes one for `Option<T>` as `Nullable(codec)`"
)]
pub trait Codec<T>: Send + Sync + 'static {
    /// Appends the value.
    ///
    /// # Errors
    /// [`CodecError::Encode`] when the format has no place for it. What was appended until then stays.
    fn encode(&self, value: &T, bytes: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Reads a value that takes up all of `bytes`.
    ///
    /// # Errors
    /// [`CodecError::Decode`] when `bytes` are not such a value.
    fn decode(&self, bytes: &[u8]) -> Result<T, CodecError>;

    /// The value that a null stands for, where the type has one: `None` of an `Option`.
    fn null(&self) -> Option<T> {
        None
    }

    /// Whether the value is written as a null: where [`null`](Codec::null) gives one, that one is.
    fn is_null(&self, _value: &T) -> bool {
        false
    }
}

/// Reads the payload of a record, which is null or bytes. The codec's decoder is not called for a null.
///
/// # Errors
/// [`CodecError::Null`] for a null where the type has no value for it, [`CodecError::Decode`] when the bytes
/// are not such a value.
pub fn read<T, C: Codec<T> + ?Sized>(codec: &C, payload: Option<&[u8]>) -> Result<T, CodecError> {
    match payload {
        Some(bytes) => codec.decode(bytes),
        None => codec.null().ok_or_else(CodecError::null::<T>),
    }
}

/// Appends the payload of a record; answers whether there is one, else it is null and nothing is appended.
/// A payload of no bytes is one. The codec's encoder is not called for a null.
///
/// # Errors
/// [`CodecError::Encode`] when the format has no place for the value.
pub fn write<T, C: Codec<T> + ?Sized>(codec: &C, value: &T, bytes: &mut Vec<u8>) -> Result<bool, CodecError> {
    if codec.is_null(value) {
        return Ok(false);
    }
    codec.encode(value, bytes).map(|()| true)
}

/// Why a value could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The format has no place for the value.
    #[error("this value of type `{type_name}` cannot be written as {format}")]
    Encode {
        /// The value's type.
        type_name: &'static str,
        /// The format.
        format: Cow<'static, str>,
        /// What does not fit.
        #[source]
        cause: BoxError,
    },
    /// The bytes are not such a value.
    #[error("these bytes are not {format} of type `{type_name}`")]
    Decode {
        /// The type that was to be read.
        type_name: &'static str,
        /// The format that was expected.
        format: Cow<'static, str>,
        /// What does not fit.
        #[source]
        cause: BoxError,
    },
    /// A null, where the type has no value for it.
    #[error("a null is not of type `{type_name}`: where nulls are meant to come, take `Option<{type_name}>`")]
    Null {
        /// The type that was to be read.
        type_name: &'static str,
    },
}

impl CodecError {
    /// This `T` cannot be written in this format, for this cause.
    #[cold]
    #[must_use]
    pub fn encode<T: ?Sized>(format: impl Into<Cow<'static, str>>, cause: impl Into<BoxError>) -> Self {
        Self::Encode { type_name: type_name::<T>(), format: format.into(), cause: cause.into() }
    }

    /// The bytes are not a `T` in this format, for this cause.
    #[cold]
    #[must_use]
    pub fn decode<T: ?Sized>(format: impl Into<Cow<'static, str>>, cause: impl Into<BoxError>) -> Self {
        Self::Decode { type_name: type_name::<T>(), format: format.into(), cause: cause.into() }
    }

    #[cold]
    fn null<T: ?Sized>() -> Self {
        Self::Null { type_name: type_name::<T>() }
    }
}
