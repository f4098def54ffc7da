//! A flow without handlers.
#![allow(dead_code)]
use slipstream::{Result, flow};

async fn run() -> Result<()> {
    flow![].run(()).await
}

fn main() {}
