fn rise(#[allow(unused_variables)] app: &App, (before, now): (f64, f64)) -> f64 {
    now - before
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
struct rise {}
impl ::slipstream::__private::Handler<App> for rise
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    type Item = (f64, f64);
    type Emit = ::slipstream::__private::Nothing;
    type Output = f64;
    const WAITS: bool = false;
    #[inline]
    fn call<'a>(
        &'a self,
        context: &'a App,
        item: Self::Item,
        _: ::slipstream::__private::Emitter<Self::Emit>,
    ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send + 'a {
        ::core::future::ready(rise(context, item))
    }
}
impl ::slipstream::__private::Mount<App> for rise
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    fn mount<'c>(
        app: &'c App,
        routes: &mut ::slipstream::__private::Routes<'c, App>,
    ) -> ::core::result::Result<(), ::slipstream::__private::BoxError> {
        use ::slipstream::__private::{ExactlyOne as _, Whole as _};
        let handled = ::slipstream::__private::handled::<App, _>("rise", Self {});
        let handled = handled
            .outputs(
                ::slipstream::__private::gives(
                    ::slipstream::__private::returns::<f64>().tries().count(),
                ),
            );
        let handled = handled.sinks(((), &print));
        let source = routes.source(&app.prices, "app.prices");
        let source = source.pipe(pairwise);
        let source = source.pipe(|pairs| pairs.filter(rising));
        let source = source.takes::<(f64, f64)>();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
