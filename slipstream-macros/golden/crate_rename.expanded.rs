async fn double(n: u64, out: &mut Emitter<u64>) {
    out.emit(n * 2);
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
struct double {}
#[allow(unused_qualifications)]
impl<
    __Context: ::core::marker::Send + ::core::marker::Sync + 'static,
> my::streams::__private::Handler<__Context> for double {
    type Item = u64;
    type Emit = u64;
    type Output = ::core::result::Result<
        my::streams::__private::Emitted<u64>,
        my::streams::__private::BoxError,
    >;
    const WAITS: bool = true;
    #[inline]
    async fn call<'a>(
        &'a self,
        _: &'a __Context,
        item: Self::Item,
        mut out: my::streams::__private::Emitter<Self::Emit>,
    ) -> Self::Output {
        my::streams::__private::emitted::<(), u64>(double(item, &mut out).await, out)
    }
}
#[allow(unused_qualifications)]
impl<
    __Context: ::core::marker::Send + ::core::marker::Sync + 'static,
> my::streams::__private::Mount<__Context> for double {
    fn mount<'c>(
        _: &'c __Context,
        routes: &mut my::streams::__private::Routes<'c, __Context>,
    ) -> ::core::result::Result<(), my::streams::__private::BoxError> {
        use my::streams::__private::{ExactlyOne as _, Whole as _};
        let handled = my::streams::__private::handled::<__Context, _>("double", Self {});
        let handled = handled.outputs(my::streams::__private::emits());
        let slipstream_closure0 = handled
            .closure_async(|n| async move { send(n).await });
        let handled = handled.sinks(((), &slipstream_closure0));
        let source = routes.source(&numbers, "numbers");
        let source = source.takes::<u64>();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
