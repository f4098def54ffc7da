//! Loops over `rdkafka` as a program without Slipstream would have them.
//!
//! ```text
//! consume   partitions ─▶ StreamConsumer │ BaseConsumer::poll │ a queue drained in batches ─▶ nothing
//! produce   10,000 in flight, or as many as librdkafka's queue holds; all acknowledged each 100 ms
//! keep      batches ─▶ rows not yet written ─▶ outputs acknowledged ─▶ one synced batch each 100 ms
//! ```
//!
//! Invariants: all clients have the settings that Slipstream's have; what is measured begins with the
//! first message and ends with the last, so that nobody's start, join, or leave is in it.
pub(crate) mod cluster;
pub(crate) mod consume;
pub(crate) mod data;
pub(crate) mod keep;
pub(crate) mod meter;
pub(crate) mod native;
pub(crate) mod produce;

use std::{error::Error, time::Duration};

pub(crate) type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

pub(crate) const COMMIT_EVERY: Duration = Duration::from_millis(100);
