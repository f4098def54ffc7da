//! Strings and bytes as keys: as they are, with a zero written 00 ff, and 00 01 at the end.
//!
//! ```text
//! "ab"    61 62 00 01             the end sorts before all that could go on,
//! "ab\0"  61 62 00 ff 00 01       so a string comes before the longer ones that begin with it
//! ```
//!
//! The end makes an encoding tell where it stops, in a tuple and alone. A prefix is the same
//! without the end.
use std::sync::Arc;

use super::{AsKey, Cow, Key, KeyError, PrefixOf, Single, take};

const END: [u8; 2] = [0, 1];
const ZERO: [u8; 2] = [0, 0xff];

#[inline]
fn escape(text: &[u8], bytes: &mut Vec<u8>) {
    bytes.reserve(text.len() + END.len());
    // Most texts hold no zero, and `contains` is the fast search of the standard library.
    if text.contains(&0) {
        escape_zeros(text, bytes);
    } else {
        bytes.extend_from_slice(text);
    }
}

#[cold]
fn escape_zeros(text: &[u8], bytes: &mut Vec<u8>) {
    for piece in text.split_inclusive(|byte| *byte == 0) {
        match piece {
            [before @ .., 0] => {
                bytes.extend_from_slice(before);
                bytes.extend_from_slice(&ZERO);
            }
            last => bytes.extend_from_slice(last),
        }
    }
}

#[inline]
fn unescape<K: Key>(bytes: &mut &[u8]) -> Result<Vec<u8>, KeyError> {
    let mut text = Vec::new();
    loop {
        let zero = bytes.iter().position(|byte| *byte == 0);
        let Some((piece, rest)) = zero.and_then(|zero| bytes.split_at_checked(zero)) else {
            return Err(KeyError::malformed::<K>("the end is missing"));
        };
        text.extend_from_slice(piece);
        *bytes = rest;
        match take::<K, 2>(bytes)? {
            END => return Ok(text),
            ZERO => text.push(0),
            _ => return Err(KeyError::malformed::<K>("a zero that is neither text nor the end")),
        }
    }
}

#[inline]
fn unescape_str<K: Key>(bytes: &mut &[u8]) -> Result<String, KeyError> {
    String::from_utf8(unescape::<K>(bytes)?).map_err(|_| KeyError::malformed::<K>("not UTF-8"))
}

macro_rules! keys {
    ($format:literal, $decode:ident: $($key:ty),*) => {$(
        impl Key for $key {
            fn format() -> Cow<'static, str> {
                Cow::Borrowed($format)
            }
            #[inline]
            fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
                $decode::<Self>(bytes).map(Into::into)
            }
        }

        impl<Q: PrefixOf<$key> + ?Sized> PrefixOf<$key> for &Q {
            #[inline]
            fn encode_prefix(&self, bytes: &mut Vec<u8>) -> Result<(), KeyError> {
                (**self).encode_prefix(bytes)
            }
        }
    )*};
}

keys!("string", unescape_str: String, Box<str>, Arc<str>);
keys!("bytes", unescape: Vec<u8>, Box<[u8]>, Arc<[u8]>);

macro_rules! forms {
    ($text:ty: $([$($generics:tt)*] $form:ty => $($key:ty),*;)*) => {$(
        impl<$($generics)*> Single for $form {}
        forms!(@keys $text, [$($generics)*] $form, [$($key),*]);
    )*};
    (@keys $text:ty, $generics:tt $form:ty, [$($key:ty),*]) => {$(
        forms!(@one $text, $generics $form, $key);
    )*};
    (@one $text:ty, [$($generics:tt)*] $form:ty, $key:ty) => {
        impl<$($generics)*> AsKey<$key> for $form {
            #[inline]
            fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
                <Self as PrefixOf<$key>>::encode_prefix(self, bytes)?;
                bytes.extend_from_slice(&END);
                Ok(0)
            }
        }

        impl<$($generics)*> PrefixOf<$key> for $form {
            #[inline]
            fn encode_prefix(&self, bytes: &mut Vec<u8>) -> Result<(), KeyError> {
                let text: &$text = self;
                escape(text.as_ref(), bytes);
                Ok(())
            }
        }
    };
}

forms! { str:
    [] str => String, Box<str>, Arc<str>;
    [] String => String, Box<str>, Arc<str>;
    [] Cow<'_, str> => String, Box<str>, Arc<str>;
    [] Box<str> => Box<str>;
    [] Arc<str> => Arc<str>;
}

forms! { [u8]:
    [] [u8] => Vec<u8>, Box<[u8]>, Arc<[u8]>;
    [const N: usize] [u8; N] => Vec<u8>, Box<[u8]>, Arc<[u8]>;
    [] Vec<u8> => Vec<u8>, Box<[u8]>, Arc<[u8]>;
    [] Cow<'_, [u8]> => Vec<u8>, Box<[u8]>, Arc<[u8]>;
    [] Box<[u8]> => Box<[u8]>;
    [] Arc<[u8]> => Arc<[u8]>;
}

// Of one length all of them, so they need no end.
impl<const N: usize> Key for [u8; N] {
    fn format() -> Cow<'static, str> {
        Cow::Owned(format!("bytes[{N}]"))
    }
    #[inline]
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        take::<Self, N>(bytes)
    }
}

impl<const N: usize> AsKey<[u8; N]> for [u8; N] {
    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
        bytes.extend_from_slice(self);
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests::{decode, encode, under};

    const KEYS: [&str; 8] = ["boo/0", "foo/0", "foo/1", "foo0", "foo", "", "foo/\0", "zoo/0"];

    #[test]
    fn a_prefix_of_strings_finds_those_that_begin_with_it() {
        let found =
            |prefix: &str| KEYS.into_iter().filter(|key| under::<String, _>(prefix, key)).collect::<Vec<_>>();
        assert_eq!(found("foo/"), ["foo/0", "foo/1", "foo/\0"]);
        assert_eq!(found("foo"), ["foo/0", "foo/1", "foo0", "foo", "foo/\0"]);
        assert_eq!(found("foo/\0"), ["foo/\0"]);
        assert_eq!(found(""), KEYS);
        assert_eq!(found("\u{10ffff}"), [""; 0]);
    }

    #[test]
    fn a_prefix_of_bytes_finds_those_that_begin_with_it() {
        let keys: [&[u8]; 6] = [b"", b"\0", b"\0\xff", b"foo\xff", b"\xff", b"\xff\xff\x01"];
        let found = |prefix: &[u8]| {
            keys.into_iter().filter(|key| under::<Vec<u8>, _>(prefix, *key)).collect::<Vec<_>>()
        };
        assert_eq!(found(b""), keys);
        assert_eq!(found(b"\0"), [&b"\0"[..], b"\0\xff"]);
        assert_eq!(found(b"\xff"), [&b"\xff"[..], b"\xff\xff\x01"]);
        assert_eq!(found(b"\xff\xff"), [b"\xff\xff\x01"]);
        assert_eq!(found(b"foo"), [b"foo\xff"]);
    }

    #[test]
    fn a_string_comes_before_the_longer_ones_that_begin_with_it() {
        let mut keys = KEYS;
        keys.sort_by_key(|key| encode::<String, _>(*key));
        assert_eq!(keys, ["", "boo/0", "foo", "foo/\0", "foo/0", "foo/1", "foo0", "zoo/0"]);
    }

    #[test]
    fn bytes_without_an_end_are_no_string() {
        for bytes in [&b""[..], b"a", b"a\0", b"a\0\xff", b"a\0\x02", b"\xc3\0\x01"] {
            assert!(matches!(decode::<String>(bytes), Err(KeyError::Malformed { .. })), "{bytes:?}");
        }
        assert_eq!(decode::<Vec<u8>>(b"\xc3\0\x01"), Ok(b"\xc3".to_vec()));
    }
}
