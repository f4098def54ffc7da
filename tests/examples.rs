//! Every example is run, and prints what is checked in under `examples/expected`.
#![allow(clippy::unwrap_used)]
mod built;

use built::example;
use std::{fs, path::Path, process::Command};

/// What it prints, run in a folder of its own.
fn run(name: &str, folder: &Path) -> String {
    let ran = Command::new(example(name)).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "{name}: {}\n{}", ran.status, String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

fn expected(name: &str) -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/expected").join(name).with_extension("txt");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

macro_rules! prints_what_is_expected {
    ($($name:ident)+) => {$(
        #[test]
        fn $name() {
            let folder = tempfile::tempdir().unwrap();
            assert_eq!(run(stringify!($name), folder.path()), expected(stringify!($name)));
        }
    )+};
}

prints_what_is_expected! { hello timer pipe sources }

#[test]
fn nearby_join_and_again_over_the_same_state() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        assert_eq!(run("nearby_join", folder.path()), expected("nearby_join"));
    }
}

#[test]
fn no_example_is_left_out() {
    // Those with arguments and data of their own have a test file of their own.
    let elsewhere = ["flights", "word_count"];
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in fs::read_dir(&examples).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if (path.extension().is_some_and(|extension| extension == "rs") || path.join("main.rs").exists())
            && !elsewhere.contains(&name)
        {
            expected(name);
        }
    }
}
