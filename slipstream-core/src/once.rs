//! Bounds that are asked for once, so that a mistake is told once.
//!
//! The steps that `#[handle]` and the builder take, one after the other, need much the same bounds, and
//! the compiler would repeat a mistake at each. So a step names what it gives through the trait that it
//! asks for, as `T::To<Step>`: where `T` has not got the trait, the next step has no type of which
//! anything could be said.
//!
//! That is so for a trait with an implementation for each type. A blanket `impl<T: Bound> Trait for T`
//! is taken to apply, and the bound is looked at later, when `To` is known. So such a trait has a
//! second implementation, for [`Never`] instead of `()`, which leaves the compiler with a choice, and
//! to choose it looks at the bounds.

/// Marks the implementation that is never chosen.
#[derive(Debug)]
pub enum Never {}

/// What no type is.
pub trait Refuted {}
