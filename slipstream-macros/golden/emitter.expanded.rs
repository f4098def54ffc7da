async fn split_words(
    app: &App,
    line: String,
    out: &mut Emitter<(String, u64)>,
) -> Result<()> {
    for word in line.split_whitespace() {
        let count = app.counts.get(word)?.unwrap_or_default();
        out.emit((word.to_owned(), count + 1));
    }
    Ok(())
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
struct split_words {}
impl ::slipstream::__private::Handler<App> for split_words
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    type Item = String;
    type Emit = (String, u64);
    type Output = ::core::result::Result<
        ::slipstream::__private::Emitted<(String, u64)>,
        ::slipstream::__private::BoxError,
    >;
    const WAITS: bool = true;
    #[inline]
    async fn call<'a>(
        &'a self,
        context: &'a App,
        item: Self::Item,
        mut out: ::slipstream::__private::Emitter<Self::Emit>,
    ) -> Self::Output {
        ::slipstream::__private::emitted::<
            Result<()>,
            (String, u64),
        >(split_words(context, item, &mut out).await, out)
    }
}
impl ::slipstream::__private::Mount<App> for split_words
where
    for<'a> App: ::slipstream::__private::Context<'a>,
{
    fn mount<'c>(
        app: &'c App,
        routes: &mut ::slipstream::__private::Routes<'c, App>,
    ) -> ::core::result::Result<(), ::slipstream::__private::BoxError> {
        use ::slipstream::__private::{ExactlyOne as _, Whole as _};
        let handled = ::slipstream::__private::handled::<App, _>("split_words", Self {});
        let handled = handled.outputs(::slipstream::__private::emits());
        let handled = handled.sinks(((), &app.counts));
        let source = routes.source(&app.lines, "app.lines");
        let source = source.takes::<String>();
        source.mount(&handled)?;
        ::core::result::Result::Ok(())
    }
}
