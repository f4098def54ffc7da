//! Flows over topics, on clusters inside of this process: what users see of them from end to end.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]
mod checkpoints;
mod handling;
mod origins;
mod positions;
mod stage;
mod stories;
