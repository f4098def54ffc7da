//! Core.
#[cfg(feature = "rocksdb")]
pub mod cache;
pub mod key;
#[cfg(feature = "rocksdb")]
pub mod store;
pub mod timestamp;

mod transaction;

#[cfg(feature = "rocksdb")]
pub use cache::Cache;
#[cfg(feature = "rocksdb")]
pub use store::{Store, StoreError, ValueFormat};

#[doc(hidden)]
pub mod __private {
    pub use crate::key;
}
