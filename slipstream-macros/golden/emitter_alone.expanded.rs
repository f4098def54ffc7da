fn twice(out: &mut Emitter<u8>) {
    out.emit(1);
    out.emit(2);
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
struct twice {}
impl<
    __Context: ::core::marker::Send + ::core::marker::Sync + 'static,
> ::slipstream::__private::Handler<__Context> for twice {
    type Item = ();
    type Emit = u8;
    type Output = ::core::result::Result<
        ::slipstream::__private::Emitted<u8>,
        ::slipstream::__private::BoxError,
    >;
    const WAITS: bool = false;
    #[inline]
    fn call<'a>(
        &'a self,
        _: &'a __Context,
        _: Self::Item,
        mut out: ::slipstream::__private::Emitter<Self::Emit>,
    ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send + 'a {
        ::core::future::ready(
            ::slipstream::__private::emitted::<(), u8>(twice(&mut out), out),
        )
    }
}
impl<
    __Context: ::core::marker::Send + ::core::marker::Sync + 'static,
> ::slipstream::__private::Mount<__Context> for twice {
    fn mount<'c>(
        _: &'c __Context,
        routes: &mut ::slipstream::__private::Routes<'c, __Context>,
    ) -> ::core::result::Result<(), ::slipstream::__private::BoxError> {
        use ::slipstream::__private::{ExactlyOne as _, Whole as _};
        let handled = ::slipstream::__private::handled::<__Context, _>("twice", Self {});
        let handled = handled.outputs(::slipstream::__private::emits());
        let handled = handled.sinks(((), &print));
        let source = routes.source(&ticks, "ticks");
        let source = source.takes_nothing();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
