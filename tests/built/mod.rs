//! Where `cargo test` has built an example: beside the tests' own binaries.
use std::{env, path::PathBuf};

pub(crate) fn example(name: &str) -> PathBuf {
    let tests = env::current_exe().unwrap();
    let path = tests
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples")
        .join(name)
        .with_extension(env::consts::EXE_EXTENSION);
    assert!(path.exists(), "{} is not built: run `cargo build --examples` first", path.display());
    path
}
