//! A codec of `T` as one of `Option<T>`: the null is handled before it.
use super::{Codec, CodecError};

/// Makes a codec of `T` one of `Option<T>`, whose `None` is a null on the wire. The codec within never sees one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nullable<C>(
    /// The codec of what is not null.
    pub C,
);

impl<T, C: Codec<T>> Codec<Option<T>> for Nullable<C> {
    fn encode(&self, value: &Option<T>, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        match value {
            Some(value) => self.0.encode(value, bytes),
            None => Err(CodecError::encode::<Option<T>>("bytes", "it is null")),
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<Option<T>, CodecError> {
        self.0.decode(bytes).map(Some)
    }

    fn null(&self) -> Option<Option<T>> {
        Some(None)
    }

    fn is_null(&self, value: &Option<T>) -> bool {
        value.is_none()
    }
}
