//! `Option` and `Reverse` of a key.
use std::cmp::Reverse;

use super::{AsKey, Cow, Distance, Key, KeyError, Single, take};

impl<K: Key> Key for Option<K> {
    fn format() -> Cow<'static, str> {
        Cow::Owned(format!("option<{}>", K::format()))
    }
    #[inline]
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        match take::<Self, 1>(bytes)? {
            [0] => Ok(None),
            [1] => K::decode(bytes).map(Some),
            _ => Err(KeyError::malformed::<Self>("neither none nor some")),
        }
    }
}

impl<K, Q: AsKey<K>> AsKey<Option<K>> for Option<Q> {
    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
        bytes.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.encode(bytes)?;
        }
        Ok(0)
    }
}

impl<Q> Single for Option<Q> {}

// No encoding is a prefix of another, so two differ at some byte, and that byte's complement turns
// their order.
impl<K: Key> Key for Reverse<K> {
    fn format() -> Cow<'static, str> {
        Cow::Owned(format!("reverse<{}>", K::format()))
    }
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        // Where the value ends only its decoder knows, so all is turned; most keys are short.
        let mut short = [0; 64];
        let mut long = Vec::new();
        let turned = match short.get_mut(..bytes.len()) {
            Some(turned) => {
                turned.copy_from_slice(bytes);
                turned
            }
            None => {
                long.extend_from_slice(bytes);
                long.as_mut_slice()
            }
        };
        complement(turned);
        let mut rest = &*turned;
        let value = K::decode(&mut rest)?;
        *bytes = bytes.get(bytes.len() - rest.len()..).unwrap_or_default();
        Ok(Self(value))
    }
}

impl<K, Q: AsKey<K>> AsKey<Reverse<K>> for Reverse<Q> {
    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
        let start = bytes.len();
        self.0.encode(bytes)?;
        complement(bytes.get_mut(start..).unwrap_or_default());
        Ok(0)
    }
}

#[inline]
fn complement(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

impl<Q> Single for Reverse<Q> {}

impl<K: Distance> Distance for Reverse<K> {
    type Distance = K::Distance;
    #[inline]
    fn distance(&self, other: &Self) -> K::Distance {
        self.0.distance(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests::{decode, encode};

    #[test]
    fn reverse_turns_the_order_of_strings_of_any_length() {
        let long = "a".repeat(100);
        let mut keys = ["", "a", "a\0", "ab", &long].map(Reverse);
        keys.sort_by_key(encode::<Reverse<String>, _>);
        assert_eq!(keys, ["ab", &long, "a\0", "a", ""].map(Reverse));
        for key in keys {
            assert_eq!(decode(&encode::<Reverse<String>, _>(&key)), Ok(Reverse(key.0.to_owned())));
        }
    }

    #[test]
    fn reverse_leaves_what_follows_it_in_a_tuple() {
        let key = (Reverse("a".to_owned()), "b".repeat(100));
        assert_eq!(decode(&encode::<(Reverse<String>, String), _>(&key)), Ok(key));
    }
}
