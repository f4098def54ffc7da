//! A name for a source that has none.
use super::{AsyncIterable, Seeks, SourceName};
use crate::given::Receives;
use futures::Stream;

/// Gives a source a name, by which it is known again: two of one name are one source, wherever they are made, and a
/// [`Checkpoint`](crate::Checkpoint) knows it.
///
/// ```
/// use slipstream_core::{AsyncIterable, iter, named};
///
/// let weather = named("weather", iter(["🌞", "⛅"]));
/// assert_eq!(weather.identity().as_deref(), Some("weather"));
/// ```
///
/// A source that has positions keeps the name that it has: under that its positions are stored.
pub fn named<S: AsyncIterable>(name: impl Into<SourceName>, source: S) -> Named<S> {
    Named { name: name.into(), source }
}

/// What [`named`] makes.
#[derive(Debug, Clone)]
#[must_use = "a source does nothing until a flow opens it"]
pub struct Named<S> {
    name: SourceName,
    source: S,
}

impl<S: AsyncIterable> AsyncIterable for Named<S> {
    type Item = S::Item;
    fn open(&self) -> impl Stream<Item = S::Item> + Send + 'static {
        self.source.open()
    }
    fn identity(&self) -> Option<SourceName> {
        let own = self.source.identity().filter(|_| self.source.seeks().is_some());
        own.or_else(|| Some(self.name.clone()))
    }
    fn seeks(&self) -> Option<Seeks<S::Item>> {
        self.source.seeks()
    }
    fn receives(&self) -> Option<Receives<S::Item>> {
        self.source.receives()
    }
}
