//! The macros of Slipstream. They hold no logic: what they write names paths of the crate that does the work.
//!
//! ```text
//! attribute ─▶ Arguments ─┐
//!                         ├─▶ Handler ─▶ companion      the function as it is, then a type that mounts it
//! function ──▶ Function ──┘      └─────▶ fallback       … or then the errors, and a type that mounts nothing
//!              parse           validate  expand
//! ```
//!
//! Use them from the crate `slipstream`, which re-exports them.
mod handle;
mod key;

use proc_macro::TokenStream;

/// Makes a function a handler: it reads from sources, and what it returns goes to sinks.
///
/// ```ignore (the macro's crate cannot name the crate that re-exports it)
/// #[handle(app.activity, sink = [app.enriched, print])]
/// async fn handle_activity(app: &App, activity: Activity) -> Result<(Name, Sky)> {
///     let weather = app.sky.as_of(&activity.time)?;
///     Ok((activity.name, weather.map_or(Sky::Unknown, |(_, weather)| weather.sky)))
/// }
/// ```
///
/// The function stays as it is, so a test calls it as it calls any other. A type of the same name is added, which
/// `flow![handle_activity]` mounts. (So no type of that name can stand beside it.)
///
/// # Arguments
///
/// `#[handle(source, …, pipe = [f, g], sink = [s, t], on_error = policy, crate = path)]`
///
/// | argument | meaning |
/// |---|---|
/// | `source, …` | at least one: a topic, a cache, a channel, or a function that returns a `Stream` (named, not called) |
/// | `pipe = f` | functions from stream to stream, applied in this order, anew for each source |
/// | `sink = s` | what takes each output: a topic, a cache, `print`, or a closure `\|output\| …`, which may be async |
/// | `on_error = p` | what is done when the function fails: `OnError::stop()`, which is so without it, `OnError::skip()` or `OnError::retry(…)` |
/// | `crate = path` | where `slipstream` is, if it goes by another name |
///
/// One pipe or one sink needs no brackets. The expressions are ordinary Rust and see the function's context parameter.
/// They are evaluated once, when the flow starts, in a function that returns a `Result`, so `?` works in them. (A pipe
/// is evaluated once for each source.) A closure outlives that, so it keeps clones of what it needs from the context:
/// `sink = { let log = app.log.clone(); move |output| log.add(output) }`.
///
/// A source that is a place (`app.weather`, `*app.weather()`) is the same source wherever a handler names it, and
/// is opened once. The value of any other expression, such as `iter(…)`, is a source of its own, unless it has an
/// `identity()`.
///
/// # Parameters
///
/// In this order, each optional:
///
/// 1. `app: &App`, the context. A lone `&T` is the context if the attribute's expressions use it, else the item.
/// 2. the item, by value or by reference, or a pattern for it. Where the source gives a `Message<K, V>`, either
///    that or its value.
/// 3. `out: &mut Emitter<T>`, for zero or more outputs with work in between. It is known by this name, so an alias
///    of it is not understood.
///
/// # Returns
///
/// `()` for no output, `Option<T>` for at most one, `Vec<T>` or an array for several, any other type for exactly one, or
/// a `Result` of these. With an emitter `()` or `Result<()>`.
///
/// # Errors
///
/// What the attribute and the signature tell is reported at once, all of it, where it is written. The other mistakes (a
/// sink that does not take this output, an item that the source does not give) are found by the type checker, which
/// points at the same places.
#[proc_macro_attribute]
pub fn handle(attribute: TokenStream, item: TokenStream) -> TokenStream {
    handle::expand(attribute.into(), item.into()).into()
}

/// Makes a struct of keys a key.
///
/// A struct with one field is written as the field is, under the field's format: a cache can go from
/// `String` to `struct Origin(String)` and back. It is looked up by itself, by `str` or `[u8]`
/// where the field is, and has the field's prefixes and distance.
///
/// A struct with several fields, six at most, is written as the tuple of its fields in the order of
/// their declaration: the last field is the order, those before it are the group. It is looked up
/// by itself or by a tuple of forms, and narrowed by its first fields.
///
/// That is the order of `derive(PartialOrd, Ord)` as well. To move, add or take away a field is
/// another format, and a store says so when it is opened.
///
/// Enums, unions and structs with parameters are refused. `#[key(crate = path)]` names the crate
/// where it is not `::slipstream`.
///
/// ```ignore
/// #[derive(Key)]
/// struct Origin(String);
///
/// #[derive(Key)]
/// struct Departure {
///     origin: Origin,
///     time: Timestamp,
/// }
///
/// // departures: Cache<Departure, Flight>
/// departures.as_of(&("JFK", time))?;
/// departures.prefix("JFK")?;
/// ```
#[proc_macro_derive(Key, attributes(key))]
pub fn derive_key(input: TokenStream) -> TokenStream {
    key::derive(input.into()).into()
}
