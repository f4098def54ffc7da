::core::compile_error! {
    "`derive(Key)` is for structs: the order of the variants would be the order on disk. Key by a number or a text that stands for the variant, or implement `Key` by hand"
}
const _: () = {
    use ::slipstream::__private::key as __key;
    impl __key::Key for Direction {
        fn format() -> ::std::borrow::Cow<'static, str> {
            ::core::unreachable!()
        }
        fn decode(_: &mut &[u8]) -> ::core::result::Result<Self, __key::KeyError> {
            ::core::unreachable!()
        }
    }
    impl __key::AsKey<Direction> for Direction {
        fn encode(
            &self,
            _: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<usize, __key::KeyError> {
            ::core::unreachable!()
        }
    }
};
