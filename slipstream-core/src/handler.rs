//! Handlers: what `#[handle]` writes beside a function, and what the builder makes of a closure.
use crate::Emitter;
use std::future::Future;

/// What may be shared by the tasks of a flow, as a bound that the compiler proves where it is used and not
/// where it is written: `where for<'a> App: Context<'a>` in what `#[handle]` writes is one error, at the
/// `flow![…]` that needs it, and not one at each step.
#[doc(hidden)]
pub trait Context<'a>: Send + Sync + 'static {}

impl<T: Send + Sync + 'static> Context<'_> for T {}

/// A handler over the context `C`.
pub trait Handler<C>: Send + Sync + 'static {
    /// What it takes.
    type Item: Send + 'static;
    /// What its emitter takes; [`Nothing`](crate::output::Nothing) without one.
    type Emit: Send + 'static;
    /// What the function returns, as the user wrote it; what it emitted, where it has an emitter.
    type Output;
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
