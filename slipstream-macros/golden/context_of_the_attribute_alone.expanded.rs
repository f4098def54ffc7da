async fn handle_weather(
    #[allow(unused_variables)]
    app: &App,
    weather: Weather,
) -> (Timestamp, Weather) {
    (weather.time, weather)
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
struct handle_weather {}
impl ::slipstream::__private::Handler<App> for handle_weather
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    type Item = Weather;
    type Emit = ::slipstream::__private::Nothing;
    type Output = (Timestamp, Weather);
    const WAITS: bool = true;
    #[inline]
    fn call<'a>(
        &'a self,
        context: &'a App,
        item: Self::Item,
        _: ::slipstream::__private::Emitter<Self::Emit>,
    ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send + 'a {
        handle_weather(context, item)
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
                    ::slipstream::__private::returns::<(Timestamp, Weather)>()
                        .tries()
                        .count(),
                ),
            );
        let handled = handled.sinks(((), &app.sky));
        let source = routes.source(&app.weather, "app.weather");
        let source = source.takes::<Weather>();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
