//! Topics on real Apache Kafka. Where it cannot be had, each test says so and does nothing: see `broker.rs`.
//!
//! Each has topics and groups of its own, so all run side by side. The letters before them (K1, S2) are those of
//! cases from the field: a fault that users of like systems have met, and what has to happen instead.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]
mod broker;
mod checkpoints;
mod child;
mod crash;
mod ends;
mod faults;
mod files;
mod group;
mod groups;
mod handlers;
mod instances;
mod joins;
mod lines;
mod log;
mod outputs;
mod running;
#[path = "../topics/stage.rs"]
mod stage;
mod steering;
#[path = "../topics/stories.rs"]
mod stories;

use slipstream::Result;

/// What a process of `child.rs` is.
async fn play(role: &str) -> Result<()> {
    match role {
        "counting" => instances::instance().await,
        "counts" => crash::counts().await,
        "instance" => groups::instance().await,
        _ => panic!("there is no role {role}"),
    }
}
