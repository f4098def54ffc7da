//! Outputs: what a handler's return value means, and what it emits. None, one or several.
//!
//! ```text
//! return value ──┐
//!                ├─ Outputs::give ─▶ the turn's buffer ─▶ sinks
//! Emitter ───────┘
//! ```
mod emitter;
mod shape;

pub use emitter::{Concluded, Emits, Emitted, Emitter, emits, emitted};
pub use shape::{
    AsOne, CanFail, CannotFail, Counting, ExactlyOne, Failure, Gives, Itself, NoOutput, OrError, Returns,
    Whole, gives, returns,
};

use crate::{
    BoxError,
    once::{Never, Refuted},
};

/// How the outputs are got out of what a handler that emits `E` returns.
pub trait Outputs<R, E>: Send + Sync + 'static {
    /// One output.
    type Item;
    /// The emitter for one call: it may take the buffer along.
    fn emitter(&self, buffer: &mut Vec<Self::Item>) -> Emitter<E>;
    /// Appends the outputs to the buffer.
    ///
    /// # Errors
    /// The handler's own.
    fn give(&self, returned: R, buffer: &mut Vec<Self::Item>) -> Result<(), BoxError>;
}

/// An output that sinks can take, asked for once (see `once.rs`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an output, since threads share outputs",
    label = "not `Send + Sync + 'static`",
    note = "use an `Arc` for an `Rc`, and an atomic or a `Mutex` for a `Cell` or a `RefCell`"
)]
pub trait Given<X> {
    /// `S` itself.
    type To<S>;
    /// Itself.
    fn to<S>(step: S) -> Self::To<S>;
}

impl<T: Send + Sync + 'static> Given<()> for T {
    type To<S> = S;
    fn to<S>(step: S) -> S {
        step
    }
}

impl<T: Refuted> Given<Never> for T {
    type To<S> = S;
    fn to<S>(step: S) -> S {
        step
    }
}

/// The output of a handler that has none. It has no value: no sink ever takes one.
// Without `Debug`, so that `print` on a handler that returns nothing is a mistake the compiler tells.
#[allow(missing_debug_implementations)]
#[derive(Clone, Copy)]
pub enum Nothing {}

/// Exactly one output, whatever its type: see [`one`].
#[derive(Debug, Clone)]
pub struct One<T>(pub T);

/// One output, for closures that return a type of their own. A function under `#[handle]` returns
/// the value as it is.
///
/// ```
/// use slipstream_core::{Flow, iter, one, print, source};
///
/// #[derive(Debug)]
/// struct Length(usize);
///
/// let words = iter(["a", "list", "of", "words"]);
/// let flow = Flow::<()>::new().with(source(&words).handle(|word| one(Length(word.len()))).sink(&print));
/// ```
pub fn one<T>(value: T) -> One<T> {
    One(value)
}

/// What a closure may return: none, one or several outputs. These are all; a type of your own goes
/// into [`one`].
#[diagnostic::on_unimplemented(
    message = "a closure cannot give `{Self}`",
    label = "not an output",
    note = "return `()`, an `Option`, a `Vec`, an array, a `(key, value)` pair, `one(value)`, or a `Result` of any of these"
)]
pub trait Output {
    /// One output.
    type Item;
    /// `S` itself: a closure's return value is asked for once (see `once.rs`).
    #[doc(hidden)]
    type To<S>;
    /// Itself.
    #[doc(hidden)]
    fn to<S>(step: S) -> Self::To<S>;
    /// Appends the outputs.
    ///
    /// # Errors
    /// The `Err` of a `Result`.
    fn give(self, buffer: &mut Vec<Self::Item>) -> Result<(), BoxError>;
}

macro_rules! outputs {
    ($([$($generics:tt)*] $shape:ty => $item:ty, |$value:ident, $buffer:ident| $give:expr;)+) => {$(
        impl<$($generics)*> Output for $shape {
            type Item = $item;
            type To<S> = S;
            fn to<S>(step: S) -> S {
                step
            }
            #[inline]
            fn give(self, $buffer: &mut Vec<$item>) -> Result<(), BoxError> {
                let $value = self;
                let () = $give;
                Ok(())
            }
        }
    )+};
}

outputs! {
    [] () => Nothing, |_none, _buffer| ();
    [T] One<T> => T, |one, buffer| buffer.push(one.0);
    [K, V] (K, V) => (K, V), |pair, buffer| buffer.push(pair);
    [T] Option<T> => T, |maybe, buffer| buffer.extend(maybe);
    [T] Vec<T> => T, |all, buffer| buffer.extend(all);
    [T, const N: usize] [T; N] => T, |all, buffer| buffer.extend(all);
    [O: Output, E: Into<BoxError>] Result<O, E> => O::Item, |result, buffer| result.map_err(Into::into)?.give(buffer)?;
}
