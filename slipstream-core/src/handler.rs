//! Handlers: what `#[handle]` writes beside a function, and what the builder makes of a closure.
use crate::{BoxError, Emitter, Routes};
use std::future::Future;

/// A handler over the context `C`.
pub trait Handler<C>: Send + Sync + 'static {
    /// What it takes.
    type Item: Send + 'static;
    /// What its emitter takes; [`Nothing`](crate::output::Nothing) without one.
    type Emit: Send + 'static;
    /// What the function returns, as the user wrote it; what it emitted, where it has an emitter.
    type Output: Send;
    /// Whether the future of `call` may ever be pending: a sync function has none that could be.
    const WAITS: bool;
    /// Handles one item. The context is borrowed from the route's task: nothing is cloned or boxed.
    fn call<'a>(
        &'a self,
        context: &'a C,
        item: Self::Item,
        out: Emitter<Self::Emit>,
    ) -> impl Future<Output = Self::Output> + Send + 'a;
}

/// Something [`flow!`](crate::flow) can mount: the companion that `#[handle]` writes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler for a flow over `{C}`",
    note = "annotate the function with `#[handle(source, sink = …)]`; all handlers of one `flow![…]` share one context type"
)]
pub trait Mount<C> {
    /// Evaluates the attribute's expressions, once, and joins the routes of its sources.
    ///
    /// # Errors
    /// An expression's own, by `?`.
    fn mount<'c>(context: &'c C, routes: &mut Routes<'c, C>) -> Result<(), BoxError>;
}
