//! Several sources for one handler, several handlers for one source. Each source is opened once; a
//! message goes through its handlers in the order in which `flow!` names them.
//!
//! `cargo run --example sources`
#![allow(clippy::print_stdout)] // an example may
use slipstream::{Iter, Result, flow, handle, iter};
use std::time::Duration;

struct App {
    orders: Iter<[u32; 3]>,
    returns: Iter<[u32; 2]>,
}

/// Reads both.
#[handle(app.orders, app.returns, sink = |line| println!("{line}"))]
fn audit(app: &App, number: u32) -> String {
    format!("seen: {number}")
}

/// Reads one of them, after `audit`.
#[handle(app.orders, sink = |line| println!("{line}"))]
fn ship(app: &App, order: u32) -> Option<String> {
    (order % 2 == 1).then(|| format!("ship: {order}"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let step = Duration::from_millis(100);
    let app =
        App { orders: iter([1, 2, 3]).every(step), returns: iter([901, 902]).every(step).after(step / 2) };
    flow![audit, ship].run(app).await
}
