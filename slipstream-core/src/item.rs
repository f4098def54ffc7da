//! What a handler's item parameter may be, given what the source gives.
use crate::{BoxError, Message};

/// Made from an item `I` of a source: the item itself, the value of a [`Message`], or what is in
/// an `Ok`. An `Err` stops the flow with an error that names the source; a handler that takes the
/// whole `Result` decides for itself.
#[diagnostic::on_unimplemented(
    message = "this source gives `{I}`, which a handler cannot take as `{Self}`",
    label = "expected `{I}`",
    note = "a handler takes the source's item; or, of a `Message<K, V>`, its value `V`; or, of a `Result<T, E>`, its `T`; of a topic's `Encoded<K, V>`, a `Message<K, V>` or `V`"
)]
pub trait FromItem<I>: Sized {
    /// Takes it.
    ///
    /// # Errors
    /// What the source gave in place of an item.
    fn from_item(item: I) -> Result<Self, BoxError>;
}

impl<T> FromItem<T> for T {
    #[inline]
    fn from_item(item: T) -> Result<T, BoxError> {
        Ok(item)
    }
}

impl<K, V> FromItem<Message<K, V>> for V {
    #[inline]
    fn from_item(message: Message<K, V>) -> Result<V, BoxError> {
        Ok(message.value)
    }
}

impl<T, E: Into<BoxError>> FromItem<Result<T, E>> for T {
    #[inline]
    fn from_item(item: Result<T, E>) -> Result<T, BoxError> {
        item.map_err(Into::into)
    }
}
