const _: () = {
    use ::slipstream::__private::key as __key;
    #[automatically_derived]
    #[allow(trivial_bounds)]
    impl __key::Key for Departure
    where
        Origin: __key::Key,
        Timestamp: __key::Key,
    {
        fn format() -> ::std::borrow::Cow<'static, str> {
            __key::tuple_format(
                &[<Origin as __key::Key>::format(), <Timestamp as __key::Key>::format()],
            )
        }
        #[inline]
        fn decode(bytes: &mut &[u8]) -> ::core::result::Result<Self, __key::KeyError> {
            ::core::result::Result::Ok(Self {
                origin: <Origin as __key::Key>::decode(bytes)?,
                time: <Timestamp as __key::Key>::decode(bytes)?,
            })
        }
    }
    #[automatically_derived]
    impl __key::Single for Departure {}
    #[automatically_derived]
    impl __key::AsKey<Departure> for Departure
    where
        for<'key> Origin: __key::lazily::AsKey<'key, Origin>,
        for<'key> Timestamp: __key::lazily::AsKey<'key, Timestamp>,
    {
        #[inline]
        fn encode(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<usize, __key::KeyError> {
            <(
                &Origin,
                &Timestamp,
            ) as __key::AsKey<
                (Origin, Timestamp),
            >>::encode(&(&self.origin, &self.time), bytes)
        }
    }
    #[automatically_derived]
    impl<Q0, Q1> __key::AsKey<Departure> for (Q0, Q1)
    where
        (Q0, Q1): __key::AsKey<(Origin, Timestamp)>,
    {
        #[inline]
        fn encode(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<usize, __key::KeyError> {
            <(Q0, Q1) as __key::AsKey<(Origin, Timestamp)>>::encode(self, bytes)
        }
    }
    #[automatically_derived]
    impl<Q0> __key::PrefixOf<Departure> for (Q0,)
    where
        (Q0,): __key::PrefixOf<(Origin, Timestamp)>,
    {
        #[inline]
        fn encode_prefix(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<(), __key::KeyError> {
            <(Q0,) as __key::PrefixOf<(Origin, Timestamp)>>::encode_prefix(self, bytes)
        }
    }
    #[automatically_derived]
    impl __key::PrefixOf<Departure> for Origin
    where
        for<'key> Origin: __key::lazily::PrefixOf<'key, (Origin, Timestamp)>,
    {
        #[inline]
        fn encode_prefix(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<(), __key::KeyError> {
            <Origin as __key::PrefixOf<(Origin, Timestamp)>>::encode_prefix(self, bytes)
        }
    }
    #[automatically_derived]
    impl __key::PrefixOf<Departure> for str
    where
        for<'key> str: __key::lazily::PrefixOf<'key, (Origin, Timestamp)>,
    {
        #[inline]
        fn encode_prefix(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<(), __key::KeyError> {
            <str as __key::PrefixOf<(Origin, Timestamp)>>::encode_prefix(self, bytes)
        }
    }
    #[automatically_derived]
    impl __key::PrefixOf<Departure> for [u8]
    where
        for<'key> [u8]: __key::lazily::PrefixOf<'key, (Origin, Timestamp)>,
    {
        #[inline]
        fn encode_prefix(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<(), __key::KeyError> {
            <[u8] as __key::PrefixOf<(Origin, Timestamp)>>::encode_prefix(self, bytes)
        }
    }
    #[automatically_derived]
    impl __key::Distance for Departure
    where
        for<'key> Departure: __key::lazily::Key<'key>,
        for<'key> Timestamp: __key::lazily::Distance<'key>,
    {
        type Distance = <Timestamp as __key::Distance>::Distance;
        #[inline]
        fn distance(&self, other: &Self) -> Self::Distance {
            <Timestamp as __key::Distance>::distance(&self.time, &other.time)
        }
    }
};
