//! Strings and bytes as they are, and the codec of keys.
//!
//! Invariant: no bytes are an empty text or empty bytes, not a null. An empty key is a key: it chooses its
//! partition, and a record without one goes to any.
use std::sync::Arc;

use super::{Codec, CodecError, Nullable};

/// Strings as they are, in UTF-8: `String`, `Box<str>`, `Arc<str>`, and `Option` of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Text;

/// Bytes as they are: `Vec<u8>`, `Box<[u8]>`, `Arc<[u8]>`, and `Option` of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Raw;

/// The codec of keys unless another is chosen: strings and bytes as they are ([`Text`], [`Raw`]), and `()`,
/// which is no key. What is read as `()` may have any key, and it is left out.
///
/// ```
/// use slipstream_core::codec::{CodecError, KeyCodec, read, write};
///
/// let mut bytes = Vec::new();
/// assert!(!write(&KeyCodec, &(), &mut bytes)?); // no key
/// assert!(write(&KeyCodec, &String::new(), &mut bytes)?); // an empty one
/// assert_eq!(read::<Option<String>, _>(&KeyCodec, Some(b""))?, Some(String::new()));
/// assert_eq!(read::<Option<String>, _>(&KeyCodec, None)?, None);
/// # Ok::<(), CodecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyCodec;

fn text<T: for<'a> From<&'a str>>(bytes: &[u8]) -> Result<T, CodecError> {
    str::from_utf8(bytes).map(T::from).map_err(|cause| CodecError::decode::<T>("text", cause))
}

fn raw<T: for<'a> From<&'a [u8]>>(bytes: &[u8]) -> Result<T, CodecError> {
    Ok(T::from(bytes))
}

macro_rules! codecs {
    ($($codec:ident, $bytes:expr, $read:ident: $($value:ty),*;)*) => {$($(
        impl Codec<$value> for $codec {
            fn encode(&self, value: &$value, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
                bytes.extend_from_slice($bytes(value));
                Ok(())
            }

            fn decode(&self, bytes: &[u8]) -> Result<$value, CodecError> {
                $read(bytes)
            }
        }

        impl Codec<Option<$value>> for $codec {
            fn encode(&self, value: &Option<$value>, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
                Nullable(*self).encode(value, bytes)
            }

            fn decode(&self, bytes: &[u8]) -> Result<Option<$value>, CodecError> {
                Nullable(*self).decode(bytes)
            }

            fn null(&self) -> Option<Option<$value>> {
                Some(None)
            }

            fn is_null(&self, value: &Option<$value>) -> bool {
                value.is_none()
            }
        }
    )*)*};
}

codecs! {
    Text, str::as_bytes, text: String, Box<str>, Arc<str>;
    Raw, <[u8]>::as_ref, raw: Vec<u8>, Box<[u8]>, Arc<[u8]>;
    KeyCodec, str::as_bytes, text: String, Box<str>, Arc<str>;
    KeyCodec, <[u8]>::as_ref, raw: Vec<u8>, Box<[u8]>, Arc<[u8]>;
}

impl Codec<()> for KeyCodec {
    fn encode(&self, (): &(), _: &mut Vec<u8>) -> Result<(), CodecError> {
        Ok(())
    }

    fn decode(&self, _: &[u8]) -> Result<(), CodecError> {
        Ok(())
    }

    fn null(&self) -> Option<()> {
        Some(())
    }

    fn is_null(&self, (): &()) -> bool {
        true
    }
}
