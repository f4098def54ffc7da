fn handle_number(app: &App, n: u8) {
    app.see(n);
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
struct handle_number {}
impl ::slipstream::__private::Handler<App> for handle_number
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    type Item = u8;
    type Emit = ::slipstream::__private::Nothing;
    type Output = ();
    const WAITS: bool = false;
    #[inline]
    fn call<'a>(
        &'a self,
        context: &'a App,
        item: Self::Item,
        _: ::slipstream::__private::Emitter<Self::Emit>,
    ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send + 'a {
        ::core::future::ready(handle_number(context, item))
    }
}
impl ::slipstream::__private::Mount<App> for handle_number
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    fn mount<'c>(
        app: &'c App,
        routes: &mut ::slipstream::__private::Routes<'c, App>,
    ) -> ::core::result::Result<(), ::slipstream::__private::BoxError> {
        use ::slipstream::__private::{ExactlyOne as _, Whole as _};
        let handled = ::slipstream::__private::handled::<
            App,
            _,
        >("handle_number", Self {});
        let handled = handled
            .outputs(::slipstream::__private::returns::<()>().tries().count());
        let handled = handled.sinks(());
        let source = routes.source(&app.jfk, "app.jfk");
        let source = source.takes::<u8>();
        source.mount(&handled)?;
        let source = routes.source(&app.list[1], "app.list[1]");
        let source = source.takes::<u8>();
        source.mount(&handled)?;
        let source = routes.source(&*app.lga(), "*app.lga()");
        let source = source.takes::<u8>();
        source.mount(&handled)?;
        let source = routes.made(iter(vec![1, 2]), "iter(vec![1, 2])");
        let source = source.takes::<u8>();
        source.mount(&handled)?;
        let source = routes.source(&messages, "messages");
        let source = source.takes::<u8>();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
