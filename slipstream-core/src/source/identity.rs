//! Which source this is: a place that lives as long as the context, a type without state, or a
//! name. A value that an expression has just made has an address that means nothing: two such
//! values may have had the same one, so they are never taken for one source by it.
use crate::AsyncIterable;
use std::any::TypeId;

/// The name by which a source says that it is the same as another.
pub type SourceName = String;

/// What tells a source from others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// Its own word.
    Named(SourceName),
    /// A type without state, such as a function.
    Type(TypeId),
    /// Where it lies, for a value that outlives the start of the flow.
    Place(TypeId, usize),
    /// Nothing does: it is shared with no other.
    Alone,
}

impl Identity {
    /// Of a source that is borrowed as long as the context, so that its address is its own.
    pub(crate) fn of_place<S: AsyncIterable>(source: &S) -> Self {
        match Self::of_value(source) {
            Identity::Alone => Identity::Place(TypeId::of::<S>(), std::ptr::from_ref(source).addr()),
            known => known,
        }
    }

    /// Of a source that an expression has made.
    pub(crate) fn of_value<S: AsyncIterable>(source: &S) -> Self {
        match source.identity() {
            Some(name) => Identity::Named(name),
            None if size_of::<S>() == 0 => Identity::Type(TypeId::of::<S>()),
            None => Identity::Alone,
        }
    }

    pub(crate) fn is_same_source(&self, other: &Self) -> bool {
        *self != Identity::Alone && self == other
    }
}
