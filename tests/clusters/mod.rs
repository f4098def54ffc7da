//! The clusters of real Kafka that whoever runs the tests has started: `KAFKA_1` and `KAFKA_2`, as
//! `scripts/kafka start 2` prints them.
use std::{env, io::Write};

/// Where a cluster is. Without it `what` is said to be skipped, and the test has nothing to do.
pub(crate) fn given(variable: &str, what: &str) -> Option<String> {
    let servers = env::var(variable).ok();
    if servers.is_none() {
        // Not `eprintln!`, which is seen only where a test fails.
        let mut seen = std::io::stderr();
        writeln!(seen, "\nskipped: {what}: there is no {variable}, see scripts/kafka").unwrap();
    }
    servers
}
