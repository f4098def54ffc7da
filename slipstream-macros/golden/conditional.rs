#[handle(numbers)]
#[cfg(feature = "numbers")]
fn see(n: u64) {}
