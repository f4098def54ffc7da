//! Imports run one way: a module names those of lower layers only.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use std::{collections::BTreeSet, fs, path::Path};

/// From the bottom to the top; modules of one line may not name each other.
const LAYERS: [&[&str]; 11] = [
    &["error", "on_error", "once", "opaque", "timestamp"],
    &["codec", "given", "key", "message", "outgoing", "position", "stop"],
    &["watch"],
    &["item", "store"],
    &["transaction"],
    &["output", "pipe"],
    &["handler", "sink", "source"],
    &["cache", "channel", "checkpoint", "commit", "kafka"],
    &["route"],
    &["builder"],
    &["flow"],
];

/// What `lib.rs` re-exports, and from where.
const NAMES: [(&str, &[&str]); 18] = [
    ("on_error", &["OnError"]),
    ("error", &["BoxError", "Error", "Result"]),
    ("timestamp", &["Timestamp", "TimestampError"]),
    ("key", &["AsKey", "Distance", "Key", "KeyError", "PrefixOf"]),
    ("message", &["Message"]),
    ("item", &["FromItem"]),
    ("store", &["Store", "StoreError", "ValueFormat"]),
    ("transaction", &["in_message", "is_replayed"]),
    ("watch", &["Deferred"]),
    ("output", &["Emitter", "Output", "one"]),
    ("pipe", &["Items"]),
    ("position", &["Position", "Positions"]),
    ("handler", &["Handler"]),
    ("sink", &["Sink", "SinkAsync", "print", "sink_async"]),
    (
        "source",
        &[
            "AsyncIterable",
            "Control",
            "Csv",
            "Interval",
            "Iter",
            "Json",
            "Line",
            "Mark",
            "Named",
            "Replay",
            "ReplayError",
            "Seekable",
            "Seeks",
            "SourceName",
            "interval",
            "iter",
            "named",
            "replay",
        ],
    ),
    ("route", &["Mount", "Routes"]),
    ("cache", &["Cache"]),
    (
        "checkpoint",
        &[
            "Called",
            "Check",
            "Checkpoint",
            "CheckpointBuilder",
            "CheckpointError",
            "Dependency",
            "DependencyState",
            "DependencyStatus",
            "Down",
            "Marker",
            "OnEnd",
            "Outage",
            "Pulse",
            "Recovery",
            "Status",
            "Unknown",
        ],
    ),
];

fn layer(module: &str) -> usize {
    LAYERS
        .iter()
        .position(|modules| modules.contains(&module))
        .unwrap_or_else(|| panic!("`{module}` has no layer"))
}

/// The first segments after each `crate::` of the code, through `use crate::{a, b::c}` too.
fn named(code: &str) -> BTreeSet<String> {
    let code: String = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |all, line| all + line + "\n");
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("crate::").filter(|(at, _)| !code[..*at].ends_with('$')) {
        let rest = &code[at + "crate::".len()..];
        let word =
            |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        let Some(list) = rest.strip_prefix('{') else {
            names.insert(word(rest));
            continue;
        };
        let (mut depth, mut start) = (1, 0);
        for (i, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => {}
                _ => continue,
            }
            if depth <= 1 && (c == ',' || depth == 0) {
                names.insert(word(list[start..i].trim()));
                start = i + 1;
            }
            if depth == 0 {
                break;
            }
        }
    }
    names.remove("");
    names
}

fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        match path.extension() {
            None if path.is_dir() && !is_test => files(&path, found),
            Some(extension) if extension == "rs" && !is_test => found.push(path),
            _ => {}
        }
    }
}

#[test]
fn a_module_names_those_of_lower_layers_only() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for path in all {
        let module =
            path.strip_prefix(&src).unwrap().iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let code = fs::read_to_string(&path).unwrap();
        let code = code.split("#[cfg(test)]\nmod ").next().unwrap();
        for name in named(code) {
            let home = NAMES
                .iter()
                .find(|(_, names)| names.contains(&name.as_str()))
                .map_or(&*name, |(home, _)| home);
            seen += 1;
            if home != module && layer(home) >= layer(module) {
                wrong.push(format!("{}: `{module}` names `{name}` of `{home}`", path.display()));
            }
        }
    }
    assert!(seen > 50, "only {seen} imports were found: the test no longer reads the code");
    assert!(wrong.is_empty(), "imports that run upwards:\n{}", wrong.join("\n"));
}

#[test]
fn the_reader_of_imports_finds_them() {
    let code = "use crate::{\n    BoxError,\n    error::{Cause, Fault},\n    source::Feed,\n};\nuse crate::pipe::Items;\n// crate::no\n";
    assert_eq!(named(code).into_iter().collect::<Vec<_>>(), ["BoxError", "error", "pipe", "source"]);
}
