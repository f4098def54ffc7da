//! A change of a cache is a key and perhaps a value.
use slipstream::{Cache, handle};

struct App {
    counts: Cache<String, u32>,
}

#[handle(app.counts)]
fn handler(app: &App, change: (String, u32)) {
    drop(change);
}

fn main() {}
