async fn count(app: &App, n: &u64) {
    app.add(*n).await;
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
struct count {}
impl ::slipstream::__private::Handler<App> for count
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    type Item = u64;
    type Emit = ::slipstream::__private::Nothing;
    type Output = ();
    const WAITS: bool = true;
    #[inline]
    async fn call<'a>(
        &'a self,
        context: &'a App,
        item: Self::Item,
        _: ::slipstream::__private::Emitter<Self::Emit>,
    ) -> Self::Output {
        count(context, &item).await
    }
}
impl ::slipstream::__private::Mount<App> for count
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    fn mount<'c>(
        app: &'c App,
        routes: &mut ::slipstream::__private::Routes<'c, App>,
    ) -> ::core::result::Result<(), ::slipstream::__private::BoxError> {
        use ::slipstream::__private::{ExactlyOne as _, Whole as _};
        let handled = ::slipstream::__private::handled::<App, _>("count", Self {});
        let handled = handled
            .outputs(::slipstream::__private::returns::<()>().tries().count());
        let handled = handled.sinks(());
        let source = routes.source(&app.numbers, "app.numbers");
        let source = source.takes::<u64>();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
