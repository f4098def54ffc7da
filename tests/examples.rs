//! Every example is run, and prints what is checked in under `examples/expected`.
#![allow(clippy::unwrap_used)]
mod built;
mod clusters;

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

prints_what_is_expected! {
    hello timer pipe sources channel cache_updates emoji_count own_log sales_sum kafka_hello
}

#[test]
fn late_weather_revises_what_was_answered_too_early_or_defers_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| run_with("late_weather", &[&["--step-ms", "20"], more].concat(), folder.path());
    assert_eq!(run(&[]), expected("late_weather"));
    assert_eq!(run(&["--defer"]), expected("late_weather_deferred"));
}

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
fn kafka_nearby_join_over_clusters_of_its_own_prints_what_nearby_join_prints() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run("kafka_nearby_join", folder.path()), expected("nearby_join"));
    assert!(!folder.path().join("state").exists(), "its clusters are gone, and so is its state");
}

#[test]
fn kafka_nearby_join_over_two_clusters_and_again_with_and_without_its_state() {
    let what = "kafka_nearby_join over two clusters";
    let Some(first) = clusters::given("KAFKA_1", what) else { return };
    let Some(second) = clusters::given("KAFKA_2", what) else { return };
    let folder = tempfile::tempdir().unwrap();
    let both = ["--bootstrap-servers", &first, "--bootstrap-servers", &second];
    // Earlier runs of the tests may have ended before they had handled all that they had sent.
    run_with("kafka_nearby_join", &both, folder.path());
    for _ in 0..2 {
        assert_eq!(run_with("kafka_nearby_join", &both, folder.path()), expected("nearby_join"));
    }
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(run_with("kafka_nearby_join", &both, elsewhere.path()), expected("nearby_join"));
}

#[test]
fn kafka_hello_greets_what_is_new_to_its_group() {
    let Some(servers) = clusters::given("KAFKA_1", "kafka_hello on real Kafka") else { return };
    let folder = tempfile::tempdir().unwrap();
    let run = || run_with("kafka_hello", &["--bootstrap-servers", &servers], folder.path());
    run();
    assert_eq!(run(), expected("kafka_hello"));
}

#[test]
fn an_example_of_topics_that_is_told_something_else_says_what_it_takes() {
    for (name, arguments) in [
        ("kafka_hello", &["--bootstrap-servers"][..]),
        ("kafka_hello", &["--bootstrap-servers", "a:1", "--bootstrap-servers", "b:1"]),
        ("kafka_nearby_join", &["--brokers", "a:1"]),
    ] {
        let ran = Command::new(example(name)).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success() && said.contains("usage: [--bootstrap-servers HOST:PORT]"), "{said}");
    }
}

#[test]
fn no_example_is_left_out() {
    // Those with arguments and data of their own have a test file of their own, and one prints what another does.
    let elsewhere = ["flights", "word_count", "kafka_nearby_join"];
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
