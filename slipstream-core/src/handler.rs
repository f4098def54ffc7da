//! Handlers: what `#[handle]` writes beside a function, and what the builder makes of a closure.
use crate::Emitter;
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
