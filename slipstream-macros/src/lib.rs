//! Macros.
use proc_macro::TokenStream;

mod key;

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
