//! A test in a process of its own.
use std::ffi::OsStr;
use std::process::{Command, Output};

/// Runs the test that calls this once more, alone in another process, where the environment has this
/// variable.
pub(crate) fn run(variable: &str, value: impl AsRef<OsStr>) -> Output {
    let test = std::thread::current().name().unwrap().to_owned();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &test, "--nocapture"])
        .env(variable, value)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("running 1 test"), "{test}: {output:?}");
    output
}
