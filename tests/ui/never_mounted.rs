//! A handler that no flow mounts is an unused function like any other, which rustc warns of.
#![deny(dead_code)]
use slipstream::{handle, iter};

#[handle(iter([1, 2, 3]))]
fn handler(n: u32) {
    assert!(n > 0);
}

fn main() {}
