//! Every sentence of `docs/guarantees.md` names a test, and each test that it names exists.
#![allow(clippy::unwrap_used)]
use std::{fs, path::PathBuf};

/// The file of a path in the document.
fn file(path: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    match path.strip_prefix("core/") {
        Some(path) => root.join("slipstream-core/src").join(path),
        None => root.join("tests").join(path),
    }
}

/// Whether the code has a test of this name: a function, or an entry of a macro that makes one of it.
fn has_test(code: &str, name: &str) -> bool {
    let (function, entry) = (format!("fn {name}("), format!("{name}: "));
    let mut is_test = false;
    for line in code.lines().map(str::trim) {
        let line = line.strip_prefix("async ").unwrap_or(line);
        if line.starts_with(&entry) && code.contains("macro_rules!") || line.starts_with(&function) && is_test
        {
            return true;
        }
        // Other attributes and comments may stand between the two.
        is_test = line.starts_with("#[test")
            || line.starts_with("#[tokio::test")
            || is_test && line.starts_with(['#', '/']);
    }
    false
}

/// What a row lacks.
fn missing(shown_by: &str) -> Vec<String> {
    let (mut missing, mut code, mut named) = (Vec::new(), String::new(), 0);
    for word in shown_by.split([' ', ',']).filter(|word| !word.is_empty()) {
        if let Some(name) = word.strip_prefix('`').and_then(|word| word.strip_suffix('`')) {
            named += 1;
            if !has_test(&code, name) {
                missing.push(format!("no test `{name}`"));
            }
        } else {
            match fs::read_to_string(file(word)) {
                Ok(text) => code = text,
                Err(error) => missing.push(format!("{word}: {error}")),
            }
        }
    }
    if named == 0 {
        missing.push("no test is named".to_owned());
    }
    missing
}

#[test]
fn each_sentence_names_tests_that_exist() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("docs/guarantees.md")).unwrap();
    let (mut rows, mut wrong) = (0, Vec::new());
    for section in document.split("| what holds | shown by |\n|---|---|\n").skip(1) {
        for row in section.lines().take_while(|line| line.starts_with('|')) {
            let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let [holds, shown_by] = cells.as_slice() else { panic!("not two cells: {row}") };
            rows += 1;
            wrong.extend(missing(shown_by).into_iter().map(|missing| format!("{holds}\n    {missing}")));
        }
    }
    assert!(rows > 50, "only {rows} sentences were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_test_that_is_missing_is_noticed() {
    assert!(missing("guarantees.rs `each_sentence_names_tests_that_exist`").is_empty());
    assert_eq!(missing("guarantees.rs `has_test`"), ["no test `has_test`"]);
    assert_eq!(missing("guarantees.rs `there_is_none`"), ["no test `there_is_none`"]);
    assert_eq!(missing("guarantees.rs"), ["no test is named"]);
    assert_eq!(missing("core/there/is.rs `none`").len(), 2);
}
