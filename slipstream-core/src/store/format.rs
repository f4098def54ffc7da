//! The formats of values: which bytes stand for a value of serde's.
//!
//! Invariant: a value takes up all bytes of its row. Bytes left over mean another type, and are an
//! error rather than half a value.
use std::error::Error;
use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

/// How the values of a cache are written; a store remembers it with the cache.
///
/// ```
/// use slipstream_core::{Cache, Store, ValueFormat};
///
/// let store = Store::in_memory()?;
/// let notes: Cache<i64, String> = store.cache_as("notes", ValueFormat::Json)?;
/// notes.insert(&1, "first".to_string())?;
/// assert_eq!(notes.get(&1)?.as_deref(), Some("first"));
/// # Ok::<(), slipstream_core::StoreError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ValueFormat {
    /// MessagePack with named fields: a struct may gain fields that have a default (`Option` or
    /// `#[serde(default)]`), lose fields, and change their order.
    #[default]
    MessagePack,
    /// MessagePack with fields by position: the smallest and fastest. A struct may gain fields with
    /// a `#[serde(default)]` at its end, and change in no other way.
    Compact,
    /// JSON: for state that people read with other tools.
    Json,
}

impl ValueFormat {
    /// The name that a store remembers.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::MessagePack => "messagepack",
            Self::Compact => "messagepack-compact",
            Self::Json => "json",
        }
    }

    /// Appends a value.
    pub(crate) fn encode<V: Serialize>(
        self,
        value: &V,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        match self {
            Self::MessagePack => {
                value.serialize(&mut rmp_serde::Serializer::new(bytes).with_struct_map())?;
            }
            Self::Compact => value.serialize(&mut rmp_serde::Serializer::new(bytes))?,
            Self::Json => serde_json::to_writer(bytes, value)?,
        }
        Ok(())
    }

    /// Reads a value that takes up all of `bytes`.
    pub(crate) fn decode<V: DeserializeOwned>(self, bytes: &[u8]) -> Result<V, Box<dyn Error + Send + Sync>> {
        match self {
            Self::MessagePack | Self::Compact => {
                let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
                let value = V::deserialize(&mut deserializer)?;
                // The deserializer does not tell where it stands; only at the end there is no next marker.
                match IgnoredAny::deserialize(&mut deserializer) {
                    Err(rmp_serde::decode::Error::InvalidMarkerRead(_)) => Ok(value),
                    _ => Err("bytes are left over after the value".into()),
                }
            }
            Self::Json => Ok(serde_json::from_slice(bytes)?),
        }
    }
}

impl fmt::Display for ValueFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ValueFormat; 3] = [ValueFormat::MessagePack, ValueFormat::Compact, ValueFormat::Json];

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Sky {
        Clear,
        Clouds { oktas: u8 },
        Unknown(Option<String>),
    }

    #[test]
    fn each_format_gives_back_what_it_wrote() {
        for format in ALL {
            for sky in
                [Sky::Clear, Sky::Clouds { oktas: 7 }, Sky::Unknown(None), Sky::Unknown(Some("?".into()))]
            {
                let mut bytes = Vec::new();
                format.encode(&sky, &mut bytes).unwrap();
                assert_eq!(format.decode::<Sky>(&bytes).unwrap(), sky, "{format}");
            }
        }
    }

    #[test]
    fn a_value_that_leaves_bytes_over_is_not_taken_for_a_shorter_one() {
        for format in ALL {
            let mut bytes = Vec::new();
            format.encode(&(1, 2, 3), &mut bytes).unwrap();
            assert!(format.decode::<(i32, i32)>(&bytes).is_err(), "{format}");
            bytes.push(b'1');
            assert!(format.decode::<(i32, i32, i32)>(&bytes).is_err(), "{format}");
        }
    }

    #[test]
    fn a_value_that_is_cut_short_is_an_error() {
        for format in ALL {
            let mut bytes = Vec::new();
            format.encode(&Sky::Unknown(Some("clouds".into())), &mut bytes).unwrap();
            for end in 0..bytes.len() {
                assert!(format.decode::<Sky>(&bytes[..end]).is_err(), "{format} cut at {end}");
            }
        }
    }
}
