fn double(n: u64) -> u64 {
    n * 2
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
struct double {}
impl<
    __Context: ::core::marker::Send + ::core::marker::Sync + 'static,
> ::slipstream::__private::Handler<__Context> for double {
    type Item = u64;
    type Emit = ::slipstream::__private::Nothing;
    type Output = u64;
    const WAITS: bool = false;
    #[inline]
    fn call<'a>(
        &'a self,
        _: &'a __Context,
        item: Self::Item,
        _: ::slipstream::__private::Emitter<Self::Emit>,
    ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send + 'a {
        ::core::future::ready(double(item))
    }
}
impl<
    __Context: ::core::marker::Send + ::core::marker::Sync + 'static,
> ::slipstream::__private::Mount<__Context> for double {
    fn mount<'c>(
        _: &'c __Context,
        routes: &mut ::slipstream::__private::Routes<'c, __Context>,
    ) -> ::core::result::Result<(), ::slipstream::__private::BoxError> {
        use ::slipstream::__private::{ExactlyOne as _, Whole as _};
        let handled = ::slipstream::__private::handled::<
            __Context,
            _,
        >("double", Self {});
        let handled = handled
            .outputs(
                ::slipstream::__private::gives(
                    ::slipstream::__private::returns::<u64>().tries().count(),
                ),
            );
        let slipstream_closure0 = handled.closure(|n| println!("{n}"));
        let slipstream_closure1 = handled
            .closure_async(|n| async move { send(n).await });
        let slipstream_closure2 = handled.closure_async(async |n| send(n).await);
        let slipstream_closure3 = handled
            .closure_async(|n| {
                let doubled = n * 2;
                async move { send(doubled).await }
            });
        let slipstream_closure4 = handled
            .closure({
                let sent = Counter::new();
                move |n| sent.add(*n)
            });
        let handled = handled
            .sinks((
                (
                    (
                        (
                            (((), &slipstream_closure0), &slipstream_closure1),
                            &slipstream_closure2,
                        ),
                        &slipstream_closure3,
                    ),
                    &slipstream_closure4,
                ),
                &print,
            ));
        let source = routes.source(&numbers, "numbers");
        let source = source.takes::<u64>();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
