//! A flow without handlers.
use slipstream::{Result, flow};

async fn run() -> Result<()> {
    flow![].run(()).await
}

fn main() {}
