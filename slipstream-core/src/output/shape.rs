//! The shape of a return value, found out on the type alone.
//!
//! `returns::<R>().tries().count()` takes two steps: is there a `Result` around it, and how many
//! outputs are inside? Each step has inherent methods for the types it knows, and a trait with a
//! method of the same name for all others; an inherent method wins, so a user's own struct, without
//! any derive, is one output. It works only where `R` is concrete, in what the attribute writes:
//! in a generic function the trait's method would be taken for every type.
use super::{Emitter, Nothing, Output, Outputs};
use crate::{BoxError, opaque::opaque_debug};
use std::marker::PhantomData;

/// The return value says itself what it gives: one of the shapes of [`Output`].
#[derive(Debug)]
pub struct Itself;

impl<R: Output> Outputs<R, Nothing> for Itself {
    type Item = R::Item;
    #[inline]
    fn emitter(&self, _: &mut Vec<R::Item>) -> Emitter<Nothing> {
        Emitter::default()
    }
    #[inline]
    fn give(&self, returned: R, buffer: &mut Vec<R::Item>) -> Result<(), BoxError> {
        returned.give(buffer)
    }
}

/// The return value is `()`: there is none.
#[derive(Debug)]
pub struct NoOutput;

impl Outputs<(), Nothing> for NoOutput {
    type Item = Nothing;
    #[inline]
    fn emitter(&self, _: &mut Vec<Nothing>) -> Emitter<Nothing> {
        Emitter::default()
    }
    #[inline]
    fn give(&self, (): (), _: &mut Vec<Nothing>) -> Result<(), BoxError> {
        Ok(())
    }
}

/// The return value is one output, whatever it is.
#[derive(Debug)]
pub struct AsOne;

impl<T> Outputs<T, Nothing> for AsOne {
    type Item = T;
    #[inline]
    fn emitter(&self, _: &mut Vec<T>) -> Emitter<Nothing> {
        Emitter::default()
    }
    #[inline]
    fn give(&self, returned: T, buffer: &mut Vec<T>) -> Result<(), BoxError> {
        buffer.push(returned);
        Ok(())
    }
}

/// An error, or what `S` makes of the rest. How the error is boxed is kept as a value: what
/// `E: Failure` has shown once, no later step asks again, so a wrong error type is one mistake.
pub struct OrError<S, E>(S, fn(E) -> BoxError);

impl<R, E: 'static, S: Outputs<R, Nothing>> Outputs<Result<R, E>, Nothing> for OrError<S, E> {
    type Item = S::Item;
    #[inline]
    fn emitter(&self, buffer: &mut Vec<S::Item>) -> Emitter<Nothing> {
        self.0.emitter(buffer)
    }
    #[inline]
    fn give(&self, returned: Result<R, E>, buffer: &mut Vec<S::Item>) -> Result<(), BoxError> {
        self.0.give(returned.map_err(self.1)?, buffer)
    }
}

/// The error of a handler: anything that converts to a boxed error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an error that a handler can return",
    label = "does not convert to a boxed error",
    note = "implement `std::error::Error` for it (`thiserror` derives it), and keep it `Send + Sync + 'static`"
)]
pub trait Failure: Sized {
    /// Boxes it.
    fn boxed(self) -> BoxError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> Failure for E {
    fn boxed(self) -> BoxError {
        self.into()
    }
}

/// The question: what does a handler that returns `R` give?
pub struct Returns<R>(PhantomData<fn() -> R>);

/// Asks it.
#[must_use]
pub fn returns<R>() -> Returns<R> {
    Returns(PhantomData)
}

/// First step, for all but a `Result`.
pub trait Whole<R>: Sized {
    /// It cannot fail.
    fn tries(self) -> Counting<R, CannotFail> {
        Counting(CannotFail, PhantomData)
    }
}

impl<R> Whole<R> for Returns<R> {}

impl<R, E> Returns<Result<R, E>> {
    /// It can fail. The bound stands on the method: on the `impl` a wrong error would silently
    /// make the whole `Result` one output.
    #[must_use]
    pub fn tries(self) -> Counting<R, CanFail<E>>
    where
        E: Failure,
    {
        Counting(CanFail(E::boxed), PhantomData)
    }
}

/// Between the steps: what is returned when all goes well.
pub struct Counting<R, F>(F, PhantomData<fn() -> R>);

/// No `Result` around it.
#[derive(Debug)]
pub struct CannotFail;

/// A `Result` around it, and how its error is boxed.
pub struct CanFail<E>(fn(E) -> BoxError);

/// How a `Result` around the return value changes the way to its outputs.
pub trait Around {
    /// The way `S`, or `S` after the error.
    type Of<S>;
    /// The way, given the one without a `Result`.
    fn around<S>(self, way: S) -> Self::Of<S>;
}

impl Around for CannotFail {
    type Of<S> = S;
    fn around<S>(self, way: S) -> S {
        way
    }
}

impl<E> Around for CanFail<E> {
    type Of<S> = OrError<S, E>;
    fn around<S>(self, way: S) -> OrError<S, E> {
        OrError(way, self.0)
    }
}

/// Second step, for a type of no known shape: it is one output.
pub trait ExactlyOne<F: Around>: Sized {
    /// One.
    fn count(self) -> F::Of<AsOne>;
}

impl<R, F: Around> ExactlyOne<F> for Counting<R, F> {
    fn count(self) -> F::Of<AsOne> {
        self.0.around(AsOne)
    }
}

macro_rules! known_shapes {
    ($([$($generics:tt)*] $shape:ty => $way:ident;)+) => {$(
        impl<$($generics)* F: Around> Counting<$shape, F> {
            /// As many as the shape says.
            #[must_use]
            pub fn count(self) -> F::Of<$way> {
                self.0.around($way)
            }
        }
    )+};
}

known_shapes! {
    [] () => NoOutput;
    [T,] Option<T> => Itself;
    [T,] Vec<T> => Itself;
    [T, const N: usize,] [T; N] => Itself;
}

/// A way that leads to outputs, any but [`NoOutput`], asked for once (see `once.rs`).
#[diagnostic::on_unimplemented(
    message = "a handler that returns nothing has no output for a sink",
    label = "returns nothing",
    note = "return an output, or leave out the sink"
)]
pub trait Gives: Sized {
    /// Itself.
    type Way;
    /// Itself.
    fn way(self) -> Self::Way;
}

macro_rules! gives {
    ($($way:ty),+) => {$(
        #[diagnostic::do_not_recommend]
        impl Gives for $way {
            type Way = Self;
            fn way(self) -> Self {
                self
            }
        }
    )+};
}

gives! { Itself, AsOne }

#[diagnostic::do_not_recommend]
impl<S: Gives, E> Gives for OrError<S, E> {
    type Way = OrError<S::Way, E>;
    fn way(self) -> Self::Way {
        OrError(self.0.way(), self.1)
    }
}

/// The way for a handler with sinks.
pub fn gives<P: Gives>(way: P) -> P::Way {
    way.way()
}

opaque_debug! { OrError<S, E>; Returns<R>; Counting<R, F>; CanFail<E>; }
