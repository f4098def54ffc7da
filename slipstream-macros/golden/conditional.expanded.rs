#[cfg(feature = "numbers")]
fn see(n: u64) {}
#[cfg(feature = "numbers")]
#[doc(hidden)]
#[allow(non_camel_case_types)]
struct see {}
#[cfg(feature = "numbers")]
impl<
    __Context: ::core::marker::Send + ::core::marker::Sync + 'static,
> ::slipstream::__private::Handler<__Context> for see {
    type Item = u64;
    type Emit = ::slipstream::__private::Nothing;
    type Output = ();
    const WAITS: bool = false;
    #[inline]
    fn call<'a>(
        &'a self,
        _: &'a __Context,
        item: Self::Item,
        _: ::slipstream::__private::Emitter<Self::Emit>,
    ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send + 'a {
        ::core::future::ready(see(item))
    }
}
#[cfg(feature = "numbers")]
impl<
    __Context: ::core::marker::Send + ::core::marker::Sync + 'static,
> ::slipstream::__private::Mount<__Context> for see {
    fn mount<'c>(
        _: &'c __Context,
        routes: &mut ::slipstream::__private::Routes<'c, __Context>,
    ) -> ::core::result::Result<(), ::slipstream::__private::BoxError> {
        use ::slipstream::__private::{ExactlyOne as _, Whole as _};
        let handled = ::slipstream::__private::handled::<__Context, _>("see", Self {});
        let handled = handled
            .outputs(::slipstream::__private::returns::<()>().tries().count());
        let handled = handled.sinks(());
        let source = routes.source(&numbers, "numbers");
        let source = source.takes::<u64>();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
