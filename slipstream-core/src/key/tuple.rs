//! Tuples as keys: the elements one after the other, which no end needs to part, since each element
//! tells where it stops.
use super::{AsKey, Cow, Distance, Key, KeyError, PrefixOf, Single};

/// The format of a tuple of these formats.
#[doc(hidden)]
#[must_use]
pub fn tuple_format(elements: &[Cow<'static, str>]) -> Cow<'static, str> {
    Cow::Owned(format!("({})", elements.join(",")))
}

impl Key for () {
    fn format() -> Cow<'static, str> {
        Cow::Borrowed("()")
    }
    #[inline]
    fn decode(_: &mut &[u8]) -> Result<Self, KeyError> {
        Ok(())
    }
}

impl AsKey<()> for () {
    #[inline]
    fn encode(&self, _: &mut Vec<u8>) -> Result<usize, KeyError> {
        Ok(0)
    }
}

impl Single for () {}

// `$key` are the elements before the last, `$form` what they are looked up by, `$value` both as
// variables.
macro_rules! tuples {
    ($($key:ident $form:ident $value:ident,)* ; $last_key:ident $last_form:ident $last:ident) => {
        impl<$($key: Key,)* $last_key: Key> Key for ($($key,)* $last_key,) {
            fn format() -> Cow<'static, str> {
                tuple_format(&[$($key::format(),)* $last_key::format()])
            }
            #[inline]
            fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
                Ok(($($key::decode(bytes)?,)* $last_key::decode(bytes)?,))
            }
        }

        impl<$($key, $form: AsKey<$key>,)* $last_key, $last_form: AsKey<$last_key>>
            AsKey<($($key,)* $last_key,)> for ($($form,)* $last_form,)
        {
            #[inline]
            fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
                let ($($value,)* $last,) = self;
                let start = bytes.len();
                $($value.encode(bytes)?;)*
                let group = bytes.len() - start;
                $last.encode(bytes)?;
                Ok(group)
            }
        }

        impl<$($key: Key,)* $last_key: Distance> Distance for ($($key,)* $last_key,) {
            type Distance = $last_key::Distance;
            #[inline]
            #[allow(unused_variables, reason = "the elements before the last do not count")]
            fn distance(&self, other: &Self) -> Self::Distance {
                let ($($value,)* $last,) = self;
                let before = $last;
                let ($($value,)* $last,) = other;
                before.distance($last)
            }
        }
    };
}

tuples! { ; A QA a }
tuples! { A QA a, ; B QB b }
tuples! { A QA a, B QB b, ; C QC c }
tuples! { A QA a, B QB b, C QC c, ; D QD d }
tuples! { A QA a, B QB b, C QC c, D QD d, ; E QE e }
tuples! { A QA a, B QB b, C QC c, D QD d, E QE e, ; F QF f }

// For each length of prefix the tuples that it is a prefix of: those with any elements, one or
// more, after it.
macro_rules! prefixes {
    ($($elements:tt => $([$($rest:ident)+])+;)+) => {$(
        prefixes!(@each $elements $([$($rest)+])+);
    )+};
    (@each $elements:tt $([$($rest:ident)+])+) => {$(
        prefixes!(@one $elements [$($rest)+]);
    )+};
    (@one [$($key:ident $form:ident $value:ident),+] [$($rest:ident)+]) => {
        impl<$($key, $form: AsKey<$key>,)+ $($rest),+> PrefixOf<($($key,)+ $($rest,)+)> for ($($form,)+) {
            #[inline]
            fn encode_prefix(&self, bytes: &mut Vec<u8>) -> Result<(), KeyError> {
                let ($($value,)+) = self;
                $($value.encode(bytes)?;)+
                Ok(())
            }
        }
    };
}

prefixes! {
    [A QA a] => [B] [B C] [B C D] [B C D E] [B C D E F];
    [A QA a, B QB b] => [C] [C D] [C D E] [C D E F];
    [A QA a, B QB b, C QC c] => [D] [D E] [D E F];
    [A QA a, B QB b, C QC c, D QD d] => [E] [E F];
    [A QA a, B QB b, C QC c, D QD d, E QE e] => [F];
}

// `Single` keeps this apart from the tuples above: a tuple is never one.
macro_rules! bare_prefixes {
    ($([$($rest:ident)+])+) => {$(
        #[diagnostic::do_not_recommend]
        impl<A, Q: AsKey<A> + Single + ?Sized, $($rest),+> PrefixOf<(A, $($rest),+)> for Q {
            #[inline]
            fn encode_prefix(&self, bytes: &mut Vec<u8>) -> Result<(), KeyError> {
                self.encode(bytes).map(|_| ())
            }
        }
    )+};
}

bare_prefixes! { [B] [B C] [B C D] [B C D E] [B C D E F] }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests::{encode, group, prefix, under};

    type Flight = (String, u16, i64);

    #[test]
    fn the_group_is_all_but_the_last_element() {
        assert_eq!(group::<Flight, _>(&("JFK", 7, -1)), encode::<(String, u16), _>(&("JFK", 7)).len());
        assert_eq!(group::<(Flight, bool), _>(&(("JFK", 7, -1), true)), 5 + 2 + 8);
        assert_eq!(group::<(u8, Flight), _>(&(1, ("JFK", 7, -1))), 1);
        assert_eq!(group::<(i64,), _>(&(5,)), 0);
        assert_eq!(group::<i64, _>(&5), 0);
    }

    #[test]
    fn the_group_counts_from_where_the_key_was_appended() {
        let mut bytes = vec![1, 2, 3];
        let group = AsKey::<(u8, i64)>::encode(&(4, 5), &mut bytes);
        assert_eq!(group, Ok(1));
        assert_eq!(bytes.len(), 3 + 9);
    }

    #[test]
    fn a_prefix_is_the_first_elements_in_any_form() {
        let jfk = encode::<String, _>("JFK");
        let jfk_7 = encode::<(String, u16), _>(&("JFK", 7));
        assert_eq!(prefix::<Flight, _>("JFK"), jfk);
        assert_eq!(prefix::<Flight, _>(&"JFK"), jfk);
        assert_eq!(prefix::<Flight, _>(&"JFK".to_owned()), jfk);
        assert_eq!(prefix::<Flight, _>(&("JFK",)), jfk);
        assert_eq!(prefix::<Flight, _>(&("JFK", 7)), jfk_7);
        assert_eq!(prefix::<(i64, Flight), _>(&5), encode::<i64, _>(&5));
        assert_eq!(prefix::<((String, u16), i64), _>(&(("JFK", 7),)), jfk_7);
    }

    #[test]
    fn a_prefix_of_whole_elements_is_not_one_of_longer_elements() {
        assert!(under::<Flight, _>("JFK", &("JFK", 7, 1)));
        assert!(!under::<Flight, _>("JFK", &("JFK\0", 7, 1)));
        assert!(!under::<Flight, _>("JFK", &("JFKX", 7, 1)));
        assert!(!under::<Flight, _>("", &("JFK", 7, 1)));
    }

    #[test]
    fn tuples_lie_apart_by_their_last_elements() {
        assert_eq!((1_u8, -3_i64).distance(&(200, 4)), 7);
        assert_eq!(("a".to_owned(), (true, 2.5)).distance(&("b".to_owned(), (false, 1.0))), 1.5);
    }
}
