const _: () = {
    use ::slipstream::__private::key as __key;
    #[automatically_derived]
    #[allow(trivial_bounds)]
    impl __key::Key for Origin
    where
        String: __key::Key,
    {
        fn format() -> ::std::borrow::Cow<'static, str> {
            <String as __key::Key>::format()
        }
        #[inline]
        fn decode(bytes: &mut &[u8]) -> ::core::result::Result<Self, __key::KeyError> {
            ::core::result::Result::Ok(Self {
                0: <String as __key::Key>::decode(bytes)?,
            })
        }
    }
    #[automatically_derived]
    impl __key::Single for Origin {}
    #[automatically_derived]
    impl __key::AsKey<Origin> for Origin
    where
        for<'key> String: __key::lazily::AsKey<'key, String>,
    {
        #[inline]
        fn encode(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<usize, __key::KeyError> {
            <String as __key::AsKey<String>>::encode(&self.0, bytes)
        }
    }
    #[automatically_derived]
    impl __key::AsKey<Origin> for str
    where
        for<'key> str: __key::lazily::AsKey<'key, String>,
    {
        #[inline]
        fn encode(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<usize, __key::KeyError> {
            <str as __key::AsKey<String>>::encode(self, bytes)
        }
    }
    #[automatically_derived]
    impl __key::PrefixOf<Origin> for str
    where
        for<'key> str: __key::lazily::PrefixOf<'key, String>,
    {
        #[inline]
        fn encode_prefix(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<(), __key::KeyError> {
            <str as __key::PrefixOf<String>>::encode_prefix(self, bytes)
        }
    }
    #[automatically_derived]
    impl __key::AsKey<Origin> for [u8]
    where
        for<'key> [u8]: __key::lazily::AsKey<'key, String>,
    {
        #[inline]
        fn encode(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<usize, __key::KeyError> {
            <[u8] as __key::AsKey<String>>::encode(self, bytes)
        }
    }
    #[automatically_derived]
    impl __key::PrefixOf<Origin> for [u8]
    where
        for<'key> [u8]: __key::lazily::PrefixOf<'key, String>,
    {
        #[inline]
        fn encode_prefix(
            &self,
            bytes: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<(), __key::KeyError> {
            <[u8] as __key::PrefixOf<String>>::encode_prefix(self, bytes)
        }
    }
    #[automatically_derived]
    impl __key::Distance for Origin
    where
        for<'key> Origin: __key::lazily::Key<'key>,
        for<'key> String: __key::lazily::Distance<'key>,
    {
        type Distance = <String as __key::Distance>::Distance;
        #[inline]
        fn distance(&self, other: &Self) -> Self::Distance {
            <String as __key::Distance>::distance(&self.0, &other.0)
        }
    }
};
