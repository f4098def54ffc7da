//! What the compiler says to each mistake: one error, at the user's token, with what to do about it.
//!
//! `ui/*.rs` has one mistake a file, `ui/*.stderr` the text. The texts are those of the Rust version in
//! Cargo.toml; under another one they are not compared, which is said.
//! After a change: `TRYBUILD=overwrite cargo test --test ui`, then read the difference like code.
#![allow(clippy::unwrap_used)]
use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

/// All of its mistakes are told at once: five.
const SEVERAL: &str = "several_mistakes";

#[test]
fn the_compiler_says_what_is_written_here() {
    if let Err(why) = is_pinned_rust() {
        // Not `eprintln!`, which is seen only where a test fails.
        writeln!(std::io::stderr(), "\nskipped: the texts of tests/ui are not compared, since {why}")
            .unwrap();
        return;
    }
    let tests = trybuild::TestCases::new();
    tests.compile_fail("tests/ui/*.rs");
}

/// Whether rustc is the one whose texts are pinned: a stable one, of the version in Cargo.toml.
fn is_pinned_rust() -> Result<(), String> {
    let pinned = env!("CARGO_PKG_RUST_VERSION");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().unwrap().stdout;
    let version = String::from_utf8(version).unwrap();
    let number = version.split(' ').nth(1).unwrap_or_default();
    let is_pinned =
        number.strip_prefix(pinned).is_some_and(|rest| rest.starts_with('.') && !rest.contains('-'));
    if is_pinned {
        Ok(())
    } else {
        Err(format!("they are those of Rust {pinned}, and this is {}", version.trim()))
    }
}

#[test]
fn each_mistake_is_one_error() {
    for (name, text) in texts() {
        let errors = text.lines().filter(|line| line.starts_with("error")).count();
        let expected = if name == SEVERAL { 5 } else { 1 };
        assert_eq!(errors, expected, "{name}");
        assert!(
            !text.lines().any(|line| line.starts_with("warning")),
            "{name} has a warning beside the error"
        );
    }
}

#[test]
fn the_texts_are_the_same_on_every_machine() {
    for (name, text) in texts() {
        // Sources of std are shown where they are installed, and long types are in files of their own.
        for part in ["$RUST", "$CARGO", "the full name for the type"] {
            assert!(!text.contains(part), "{name} has `{part}`");
        }
        assert!(!text.contains(env!("CARGO_MANIFEST_DIR")), "{name} has a path of this machine");
    }
}

/// Each mistake's name and text.
fn texts() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    assert!(!files.is_empty());
    let text = |file: PathBuf| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(file.with_extension("stderr"));
        (name.clone(), text.unwrap_or_else(|_| panic!("{name} has no text")))
    };
    files.into_iter().map(text).collect()
}
