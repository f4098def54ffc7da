//! The bytes of a key or a value in memory: short ones in place, so that they need no memory of their own
//! and a map compares them where they lie; longer ones shared, so that none is copied.
//!
//! ```text
//! 00 00 00 07 80 05 8f …  (12 bytes)   in place: most keys, numbers
//! 00 00 00 09 a long text …         ──▶ shared
//! ```
//!
//! Invariant: all that is compared are the bytes, wherever they lie.
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// As much as finds room in three words, with its length and the mark of its kind.
const IN_PLACE: usize = 22;

/// Bytes that cost little to clone.
#[derive(Clone)]
pub(crate) struct Bytes(Kind);

#[derive(Clone)]
enum Kind {
    InPlace { len: u8, bytes: [u8; IN_PLACE] },
    Shared(Arc<[u8]>),
}

impl From<&[u8]> for Bytes {
    #[inline]
    fn from(from: &[u8]) -> Self {
        let mut bytes = [0; IN_PLACE];
        match (bytes.get_mut(..from.len()), u8::try_from(from.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(from);
                Bytes(Kind::InPlace { len, bytes })
            }
            _ => Bytes(Kind::Shared(Arc::from(from))),
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kind::InPlace { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Kind::Shared(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for Bytes {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Shared(one), Kind::Shared(other)) => Arc::ptr_eq(one, other) || one == other,
            _ => **self == **other,
        }
    }
}

impl Eq for Bytes {}

impl PartialOrd for Bytes {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bytes {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_length_are_what_they_were_made_of_and_in_the_order_of_slices() {
        let all: Vec<u8> = (0..60).collect();
        let slices: Vec<&[u8]> = (0..60).flat_map(|len| [&all[..len], &all[60 - len..]]).collect();
        for one in &slices {
            assert_eq!(&*Bytes::from(*one), *one);
            for other in &slices {
                assert_eq!(Bytes::from(*one).cmp(&Bytes::from(*other)), one.cmp(other));
                assert_eq!(Bytes::from(*one) == Bytes::from(*other), one == other);
            }
        }
    }

    // The maps are made of them.
    #[test]
    fn they_take_three_words_also_where_there_may_be_none() {
        assert_eq!(size_of::<Option<Bytes>>(), 3 * size_of::<usize>());
    }
}
