fn handle_message(emoji: char) -> String {
    format!("Hello {emoji}!")
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
struct handle_message {}
impl<
    __Context: ::core::marker::Send + ::core::marker::Sync + 'static,
> ::slipstream::__private::Handler<__Context> for handle_message {
    type Item = char;
    type Emit = ::slipstream::__private::Nothing;
    type Output = String;
    const WAITS: bool = false;
    #[inline]
    fn call<'a>(
        &'a self,
        _: &'a __Context,
        item: Self::Item,
        _: ::slipstream::__private::Emitter<Self::Emit>,
    ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send + 'a {
        ::core::future::ready(handle_message(item))
    }
}
impl<
    __Context: ::core::marker::Send + ::core::marker::Sync + 'static,
> ::slipstream::__private::Mount<__Context> for handle_message {
    fn mount<'c>(
        _: &'c __Context,
        routes: &mut ::slipstream::__private::Routes<'c, __Context>,
    ) -> ::core::result::Result<(), ::slipstream::__private::BoxError> {
        use ::slipstream::__private::{ExactlyOne as _, Whole as _};
        let handled = ::slipstream::__private::handled::<
            __Context,
            _,
        >("handle_message", Self {});
        let handled = handled
            .outputs(
                ::slipstream::__private::gives(
                    ::slipstream::__private::returns::<String>().tries().count(),
                ),
            );
        let handled = handled.sinks(((), &print));
        let source = routes.source(&messages, "messages");
        let source = source.takes::<char>();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
