fn bill(#[allow(unused_variables)] app: &App, order: Order) -> Result<Bill> {
    order.bill()
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
struct bill {}
impl ::slipstream::__private::Handler<App> for bill
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    type Item = Order;
    type Emit = ::slipstream::__private::Nothing;
    type Output = Result<Bill>;
    const WAITS: bool = false;
    #[inline]
    fn call<'a>(
        &'a self,
        context: &'a App,
        item: Self::Item,
        _: ::slipstream::__private::Emitter<Self::Emit>,
    ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send + 'a {
        ::core::future::ready(bill(context, item))
    }
}
impl ::slipstream::__private::Mount<App> for bill
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    fn mount<'c>(
        app: &'c App,
        routes: &mut ::slipstream::__private::Routes<'c, App>,
    ) -> ::core::result::Result<(), ::slipstream::__private::BoxError> {
        use ::slipstream::__private::{ExactlyOne as _, Whole as _};
        let handled = ::slipstream::__private::handled::<App, _>("bill", Self {});
        let handled = handled
            .outputs(
                ::slipstream::__private::gives(
                    ::slipstream::__private::returns::<Result<Bill>>().tries().count(),
                ),
            );
        let handled = handled.on_error(OnError::retry(3, app.patience));
        let handled = handled.sinks(((), &app.bills));
        let source = routes.source(&app.orders, "app.orders");
        let source = source.takes::<Order>();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
