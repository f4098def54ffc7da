async fn on_tick(app: &App) -> Result<()> {
    app.refresh().await
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
struct on_tick {}
impl ::slipstream::__private::Handler<App> for on_tick
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    type Item = ();
    type Emit = ::slipstream::__private::Nothing;
    type Output = Result<()>;
    const WAITS: bool = true;
    #[inline]
    fn call<'a>(
        &'a self,
        context: &'a App,
        _: Self::Item,
        _: ::slipstream::__private::Emitter<Self::Emit>,
    ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send + 'a {
        on_tick(context)
    }
}
impl ::slipstream::__private::Mount<App> for on_tick
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    fn mount<'c>(
        app: &'c App,
        routes: &mut ::slipstream::__private::Routes<'c, App>,
    ) -> ::core::result::Result<(), ::slipstream::__private::BoxError> {
        use ::slipstream::__private::{ExactlyOne as _, Whole as _};
        let handled = ::slipstream::__private::handled::<App, _>("on_tick", Self {});
        let handled = handled
            .outputs(::slipstream::__private::returns::<Result<()>>().tries().count());
        let handled = handled.sinks(());
        let source = routes.source(&app.ticks, "app.ticks");
        let source = source.takes_nothing();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
