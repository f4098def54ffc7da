//! From a source to the items that a handler may read.
use super::{Reading, Routes};
use crate::{
    AsyncIterable,
    once::{Never, Refuted},
    source::{Feed, Identity, Plain},
};
use futures::StreamExt;

/// An [`AsyncIterable`], asked for once (see `once.rs`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read as a source",
    label = "not a source",
    note = "a source is a function that returns a `Stream` (name it without calling it), `iter(…)`, `interval(…)`, or a type with `impl AsyncIterable`",
    note = "its items are `Clone + Send + Sync + 'static`: derive `Clone` for a type of your own",
    note = "a source behind a pointer is named by the place it points to: `*app.source`"
)]
pub trait Readable<X>: Sized {
    /// The step that follows.
    type Reading<'r, C: 'r>;
    /// Reads a source that lives as long as the context.
    fn read_place<'r, 'c, C: Send + Sync + 'static>(
        &'c self,
        routes: &'r mut Routes<'c, C>,
        origin: &str,
    ) -> Self::Reading<'r, C>;
    /// Reads a source that an expression has made.
    fn read_value<'r, C: Send + Sync + 'static>(
        self,
        routes: &'r mut Routes<'_, C>,
        origin: &str,
    ) -> Self::Reading<'r, C>;
}

impl<S: AsyncIterable> Readable<()> for S {
    type Reading<'r, C: 'r> = Reading<'r, C, S::Item>;
    fn read_place<'r, 'c, C: Send + Sync + 'static>(
        &'c self,
        routes: &'r mut Routes<'c, C>,
        origin: &str,
    ) -> Reading<'r, C, S::Item> {
        let (identity, name) = (Identity::of_place(self), self.identity());
        routes.read(identity, name, origin, self.seeks(), self.receives(), || open(self))
    }
    fn read_value<'r, C: Send + Sync + 'static>(
        self,
        routes: &'r mut Routes<'_, C>,
        origin: &str,
    ) -> Reading<'r, C, S::Item> {
        let (identity, name) = (Identity::of_value(&self), self.identity());
        routes.read(identity, name, origin, self.seeks(), self.receives(), move || open(&self))
    }
}

impl<S: Refuted> Readable<Never> for S {
    type Reading<'r, C: 'r> = ();
    fn read_place<'c, C: Send + Sync + 'static>(&'c self, _: &mut Routes<'c, C>, _: &str) {}
    fn read_value<C: Send + Sync + 'static>(self, _: &mut Routes<'_, C>, _: &str) {}
}

fn open<S: AsyncIterable>(source: &S) -> Box<dyn Feed<S::Item>> {
    let items = source.open().fuse();
    match source.receives() {
        None => Box::new(Plain::new(items)),
        // What came from outside waits for the next flow where this one is stopped.
        Some(_) => Box::new(Plain::one_by_one(items)),
    }
}
