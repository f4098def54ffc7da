//! Core.
pub mod key;
pub mod timestamp;

#[doc(hidden)]
pub mod __private {
    pub use crate::key;
}
