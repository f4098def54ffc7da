const _: () = {
    use crate::stream::__private::key as __key;
    #[automatically_derived]
    #[allow(trivial_bounds)]
    impl __key::Key for Nested
    where
        (u8, u8): __key::Key,
        bool: __key::Key,
        i64: __key::Key,
    {
        fn format() -> ::std::borrow::Cow<'static, str> {
            __key::tuple_format(
                &[
                    <(u8, u8) as __key::Key>::format(),
                    <bool as __key::Key>::format(),
                    <i64 as __key::Key>::format(),
                ],
            )
        }
        #[inline]
        fn decode(bytes: &mut &[u8]) -> ::core::result::Result<Self, __key::KeyError> {
            ::core::result::Result::Ok(Self {
                0: <(u8, u8) as __key::Key>::decode(bytes)?,
                1: <bool as __key::Key>::decode(bytes)?,
                2: <i64 as __key::Key>::decode(bytes)?,
            })
        }
    }
    #[automatically_derived]
    impl __key::Single for Nested {}
    #[automatically_derived]
    impl __key::AsKey<Nested> for Nested
    where
        for<'key> (u8, u8): __key::lazily::AsKey<'key, (u8, u8)>,
        for<'key> bool: __key::lazily::AsKey<'key, bool>,
        for<'key> i64: __key::lazily::AsKey<'key, i64>,
    {
        #[inline]
        fn encode(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<usize, __key::KeyError> {
            <(
                &(u8, u8),
                &bool,
                &i64,
            ) as __key::AsKey<
                ((u8, u8), bool, i64),
            >>::encode(&(&self.0, &self.1, &self.2), bytes)
        }
    }
    #[automatically_derived]
    impl<Q0, Q1, Q2> __key::AsKey<Nested> for (Q0, Q1, Q2)
    where
        (Q0, Q1, Q2): __key::AsKey<((u8, u8), bool, i64)>,
    {
        #[inline]
        fn encode(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<usize, __key::KeyError> {
            <(Q0, Q1, Q2) as __key::AsKey<((u8, u8), bool, i64)>>::encode(self, bytes)
        }
    }
    #[automatically_derived]
    impl<Q0> __key::PrefixOf<Nested> for (Q0,)
    where
        (Q0,): __key::PrefixOf<((u8, u8), bool, i64)>,
    {
        #[inline]
        fn encode_prefix(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<(), __key::KeyError> {
            <(Q0,) as __key::PrefixOf<((u8, u8), bool, i64)>>::encode_prefix(self, bytes)
        }
    }
    #[automatically_derived]
    impl<Q0, Q1> __key::PrefixOf<Nested> for (Q0, Q1)
    where
        (Q0, Q1): __key::PrefixOf<((u8, u8), bool, i64)>,
    {
        #[inline]
        fn encode_prefix(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<(), __key::KeyError> {
            <(
                Q0,
                Q1,
            ) as __key::PrefixOf<((u8, u8), bool, i64)>>::encode_prefix(self, bytes)
        }
    }
    #[automatically_derived]
    impl __key::PrefixOf<Nested> for str
    where
        for<'key> str: __key::lazily::PrefixOf<'key, ((u8, u8), bool, i64)>,
    {
        #[inline]
        fn encode_prefix(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<(), __key::KeyError> {
            <str as __key::PrefixOf<((u8, u8), bool, i64)>>::encode_prefix(self, bytes)
        }
    }
    #[automatically_derived]
    impl __key::PrefixOf<Nested> for [u8]
    where
        for<'key> [u8]: __key::lazily::PrefixOf<'key, ((u8, u8), bool, i64)>,
    {
        #[inline]
        fn encode_prefix(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<(), __key::KeyError> {
            <[u8] as __key::PrefixOf<((u8, u8), bool, i64)>>::encode_prefix(self, bytes)
        }
    }
    #[automatically_derived]
    impl __key::Distance for Nested
    where
        for<'key> Nested: __key::lazily::Key<'key>,
        for<'key> i64: __key::lazily::Distance<'key>,
    {
        type Distance = <i64 as __key::Distance>::Distance;
        #[inline]
        fn distance(&self, other: &Self) -> Self::Distance {
            <i64 as __key::Distance>::distance(&self.2, &other.2)
        }
    }
};
