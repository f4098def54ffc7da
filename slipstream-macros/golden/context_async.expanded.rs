pub async fn handle_activity(app: &App, activity: Activity) -> Result<(Name, Sky)> {
    let weather = app.sky.as_of(&activity.time)?;
    Ok((activity.name, weather.map_or(Sky::Unknown, |(_, weather)| weather.sky)))
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
pub struct handle_activity {}
impl ::slipstream::__private::Handler<App> for handle_activity
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    type Item = Activity;
    type Emit = ::slipstream::__private::Nothing;
    type Output = Result<(Name, Sky)>;
    const WAITS: bool = true;
    #[inline]
    fn call<'a>(
        &'a self,
        context: &'a App,
        item: Self::Item,
        _: ::slipstream::__private::Emitter<Self::Emit>,
    ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send + 'a {
        handle_activity(context, item)
    }
}
impl ::slipstream::__private::Mount<App> for handle_activity
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
        >("handle_activity", Self {});
        let handled = handled
            .outputs(
                ::slipstream::__private::gives(
                    ::slipstream::__private::returns::<Result<(Name, Sky)>>()
                        .tries()
                        .count(),
                ),
            );
        let handled = handled.sinks((((), &app.enriched), &print));
        let source = routes.source(&app.activity, "app.activity");
        let source = source.takes::<Activity>();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
