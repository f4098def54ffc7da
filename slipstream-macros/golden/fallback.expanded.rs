pub(crate) async fn handle_weather(
    #[allow(unused_variables)]
    app: &App,
    weather: Weather,
    extra: u8,
) -> (Timestamp, Weather) {
    (weather.time, weather)
}
::core::compile_error! {
    "unknown argument `sinks`: did you mean `sink`?\nusage: `#[handle(source, …, pipe = [f, g], sink = [s, t], on_error = policy, crate = path)]`"
}
::core::compile_error! {
    "too many parameters: a handler takes `context: &Context`, the item, and `out: &mut Emitter<T>`, in this order"
}
#[doc(hidden)]
#[allow(non_camel_case_types)]
pub(crate) struct handle_weather {}
#[allow(unused_imports)]
const _: () = {
    use print as _;
};
impl<__Context> streams::__private::Mount<__Context> for handle_weather {
    fn mount<'c>(
        _: &'c __Context,
        _: &mut streams::__private::Routes<'c, __Context>,
    ) -> ::core::result::Result<(), streams::__private::BoxError> {
        ::core::result::Result::Ok(())
    }
}
