//! Every example is run, and prints what is checked in under `examples/expected`.
#![allow(clippy::unwrap_used)]
mod built;

use built::example;
use std::{fs, path::Path, process::Command};

/// What it prints, run in a folder of its own.
fn run(name: &str, folder: &Path) -> String {
    run_with(name, &[], folder)
}

fn run_with(name: &str, arguments: &[&str], folder: &Path) -> String {
    let ran = Command::new(example(name)).args(arguments).current_dir(folder).output().unwrap();
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

prints_what_is_expected! { hello timer pipe sources channel cache_updates emoji_count own_log }

#[test]
fn nearby_join_and_again_over_the_same_state() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        assert_eq!(run("nearby_join", folder.path()), expected("nearby_join"));
    }
}

#[test]
fn emoji_count_goes_on_over_the_same_state() {
    let folder = tempfile::tempdir().unwrap();
    let run = || run_with("emoji_count", &["--state", "counts"], folder.path());
    assert_eq!(run(), expected("emoji_count"));
    let again = run();
    let totals: Vec<_> = again.lines().filter_map(|line| line.split_once(" emoji:")).collect();
    let totals: Vec<_> = totals.into_iter().map(|(total, _)| total).collect();
    assert_eq!(totals, ["600", "800", "1000", "at the end, 1000"]);
    assert!(again.ends_with(" 🏆 286 🐟 428 👌 142 📞 144\n"), "twice the first run's: {again}");
}

#[test]
fn no_example_is_left_out() {
    // Those with arguments and data of their own have a test file of their own.
    let elsewhere = ["flights", "word_count"];
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in fs::read_dir(&examples).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.extension().is_none_or(|extension| extension != "rs") && !path.join("main.rs").exists() {
            continue;
        }
        assert!(readme.contains(&format!("`{name}`")), "README.md does not list the example `{name}`");
        if !elsewhere.contains(&name) {
            expected(name);
        }
    }
}
