//! The formats of serde's values, and how an `Option` is told from other types.
//!
//! A type is an `Option` when it asks a deserializer for one, and a value is `None` when it tells a serializer
//! so. Neither answers anything else here: `()` and a JSON null are values, with bytes of their own.
use std::fmt;

use serde::de::value::Error as Probed;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny, Visitor};
use serde::ser::Impossible;
use serde::{Deserialize, Deserializer, Serialize, Serializer, forward_to_deserialize_any};

use super::{Codec, CodecError};
use crate::error::BoxError;

/// JSON, in one line when written. `None` is a null on the wire, and not the text `null`; that text is read as
/// `None` too.
///
/// ```
/// use slipstream_core::codec::{CodecError, Json, read, write};
///
/// let mut bytes = Vec::new();
/// assert!(write(&Json, &("JFK".to_owned(), 72.5), &mut bytes)?);
/// assert_eq!(bytes, br#"["JFK",72.5]"#);
/// assert_eq!(read::<(String, f64), _>(&Json, Some(&bytes))?, ("JFK".to_owned(), 72.5));
///
/// assert!(!write(&Json, &None::<f64>, &mut bytes)?);
/// assert_eq!(read::<Option<f64>, _>(&Json, None)?, None);
/// assert!(matches!(read::<f64, _>(&Json, None), Err(CodecError::Null { .. })));
/// # Ok::<(), CodecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Json;

/// MessagePack with named fields, as caches have it unless told otherwise: a struct may gain fields that have a
/// default, lose fields, and change their order. `None` is a null on the wire; MessagePack's nil is read as
/// `None` too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessagePack;

fn write_json<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), BoxError> {
    Ok(serde_json::to_writer(bytes, value)?)
}

fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BoxError> {
    Ok(serde_json::from_slice(bytes)?)
}

fn write_message_pack<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), BoxError> {
    Ok(value.serialize(&mut rmp_serde::Serializer::new(bytes).with_struct_map())?)
}

fn read_message_pack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BoxError> {
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
    let value = T::deserialize(&mut deserializer)?;
    // The deserializer does not tell where it stands; only at the end there is no next marker.
    match IgnoredAny::deserialize(&mut deserializer) {
        Err(rmp_serde::decode::Error::InvalidMarkerRead(_)) => Ok(value),
        _ => Err("bytes are left over after the value".into()),
    }
}

macro_rules! codecs {
    ($($codec:ident, $format:literal, $write:ident, $read:ident;)*) => {$(
        impl<T: Serialize + DeserializeOwned> Codec<T> for $codec {
            fn encode(&self, value: &T, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
                $write(value, bytes).map_err(|cause| CodecError::encode::<T>($format, cause))
            }

            fn decode(&self, bytes: &[u8]) -> Result<T, CodecError> {
                $read(bytes).map_err(|cause| CodecError::decode::<T>($format, cause))
            }

            fn null(&self) -> Option<T> {
                T::deserialize(OnlyNone).ok()
            }

            fn is_null(&self, value: &T) -> bool {
                value.serialize(IsNone).is_ok()
            }
        }
    )*};
}

codecs! {
    Json, "JSON", write_json, read_json;
    MessagePack, "MessagePack", write_message_pack, read_message_pack;
}

/// Gives `None` to a type that asks for an option, and an error to all others.
struct OnlyNone;

impl<'de> Deserializer<'de> for OnlyNone {
    type Error = Probed;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Probed> {
        Err(Probed::custom("not an option"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Probed> {
        visitor.visit_none()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// `Ok` for `None`, an error for every other value, at its first word.
struct IsNone;

/// What [`IsNone`] says of a value.
#[derive(Debug)]
struct Other;

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not `None`")
    }
}

impl std::error::Error for Other {}

impl serde::ser::Error for Other {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Other
    }
}

/// `method(arguments) -> what`: an error.
macro_rules! others {
    ($($method:ident $([$generic:ident])? ($($argument:ty),*) -> $what:ty;)*) => {$(
        fn $method $(<$generic: Serialize + ?Sized>)? (self, $(_: $argument),*) -> Result<$what, Other> {
            Err(Other)
        }
    )*};
}

impl Serializer for IsNone {
    type Ok = ();
    type Error = Other;
    type SerializeSeq = Impossible<(), Other>;
    type SerializeTuple = Impossible<(), Other>;
    type SerializeTupleStruct = Impossible<(), Other>;
    type SerializeTupleVariant = Impossible<(), Other>;
    type SerializeMap = Impossible<(), Other>;
    type SerializeStruct = Impossible<(), Other>;
    type SerializeStructVariant = Impossible<(), Other>;

    fn serialize_none(self) -> Result<(), Other> {
        Ok(())
    }

    // The text of what is displayed need not be made.
    fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> Result<(), Other> {
        Err(Other)
    }

    others! {
        serialize_bool(bool) -> ();
        serialize_i8(i8) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_i128(i128) -> ();
        serialize_u8(u8) -> ();
        serialize_u16(u16) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_u128(u128) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_str(&str) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_some[T](&T) -> ();
        serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_newtype_struct[T](&'static str, &T) -> ();
        serialize_newtype_variant[T](&'static str, u32, &'static str, &T) -> ();
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }
}
