//! A timer: something done every so often.
//!
//! `cargo run --example timer`
use futures::StreamExt;
use slipstream::{Result, flow, handle, interval, print};
use std::time::Duration;

#[handle(interval(Duration::from_millis(50)), pipe = |ticks| ticks.take(3), sink = print)]
fn tick(count: u64) -> String {
    format!("tick {count}")
}

#[tokio::main]
async fn main() -> Result<()> {
    flow![tick].run(()).await
}
