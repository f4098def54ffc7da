fn handle_weather(
    #[allow(unused_variables)]
    app: &App,
    Message { key, value, .. }: Message<Origin, Weather>,
) -> (Origin, Weather) {
    (key, value)
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
struct handle_weather {}
impl ::slipstream::__private::Handler<App> for handle_weather
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    type Item = Message<Origin, Weather>;
    type Emit = ::slipstream::__private::Nothing;
    type Output = (Origin, Weather);
    const WAITS: bool = false;
    #[inline]
    fn call<'a>(
        &'a self,
        context: &'a App,
        item: Self::Item,
        _: ::slipstream::__private::Emitter<Self::Emit>,
    ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send + 'a {
        ::core::future::ready(handle_weather(context, item))
    }
}
impl ::slipstream::__private::Mount<App> for handle_weather
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
        >("handle_weather", Self {});
        let handled = handled
            .outputs(
                ::slipstream::__private::gives(
                    ::slipstream::__private::returns::<(Origin, Weather)>()
                        .tries()
                        .count(),
                ),
            );
        let handled = handled.sinks(((), &app.sky));
        let source = routes.source(&app.weather, "app.weather");
        let source = source.takes::<Message<Origin, Weather>>();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
