//! The example `word_count`: exact counts, however often it is killed; and its words against mistakes.
#![allow(clippy::unwrap_used)]
mod built;
mod clusters;

use slipstream::{Iter, Kafka, Result, Topic, flow, handle, iter};
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime},
};

fn command(file: &Path, state: &Path) -> Command {
    let mut command = Command::new(built::example("word_count"));
    command.arg("--file").arg(file).arg("--state").arg(state);
    command
}

fn text() -> String {
    (0..2000).map(|n| format!("the w{} of ключ{} \t🏆 w{n}\n", n % 13, n % 101)).collect()
}

fn expected(text: &str) -> String {
    let mut counts = BTreeMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word).or_insert(0_u64) += 1;
    }
    counts.iter().map(|(word, count)| format!("{word} {count}\n")).collect()
}

/// Runs it to its end, and gives what it prints.
fn run(file: &Path, state: &Path) -> String {
    let ended = command(file, state).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
fn killed_with_sigkill_the_counts_are_exact_and_a_further_start_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (file, state) = (folder.path().join("words"), folder.path().join("state"));
    fs::write(&file, text()).unwrap();
    for kill in [20, 80, 150, 220] {
        let mut child = command(&file, &state).args(["--slow", "300"]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(kill));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    for _ in 0..2 {
        assert_eq!(run(&file, &state), expected(&text()));
    }
}

struct Words {
    lines: Iter<Vec<String>>,
    words: Topic<(), String>,
}

#[handle(app.lines, sink = app.words)]
fn send(app: &Words, line: String) -> ((), String) {
    ((), line)
}

/// Sends these lines to a topic.
async fn publish(servers: &str, topic: &str, lines: &str) -> Result<()> {
    let kafka = Kafka::new([("bootstrap.servers", servers)])?;
    kafka.create_topic(topic, 3).await?;
    let lines = iter(lines.lines().map(str::to_owned).collect());
    flow![send].run(Words { lines, words: kafka.topic(topic).text() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_topic_too_and_what_comes_later_is_counted_once() {
    let Some(servers) = clusters::given("KAFKA_1", "word_count of a topic") else { return };
    let folder = tempfile::tempdir().unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let topic = format!("words-{}", now.as_nanos());
    publish(&servers, &topic, &text()).await.unwrap();
    let command = || {
        let mut command = Command::new(built::example("word_count"));
        command.args(["--topic", &topic, "--bootstrap-servers", &servers]);
        command.arg("--state").arg(folder.path().join("state"));
        command
    };
    let run = || {
        let ended = command().output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).unwrap()
    };
    // Some before it has begun to read, and some while it does.
    for kill in [50, 200, 300, 400, 500] {
        let mut child = command().args(["--slow", "300"]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(kill));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    for _ in 0..2 {
        assert_eq!(run(), expected(&text()));
    }
    publish(&servers, &topic, "the end\n").await.unwrap();
    assert_eq!(run(), expected(&(text() + "the end\n")));
}

#[test]
fn it_kills_itself_on_request_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (file, state) = (folder.path().join("words"), folder.path().join("state"));
    fs::write(&file, text()).unwrap();
    let crashed = command(&file, &state).args(["--crash-after", "700"]).output().unwrap();
    assert!(!crashed.status.success() && crashed.stdout.is_empty());
    assert_eq!(run(&file, &state), expected(&text()));
    // What is added later is counted once.
    let longer = text() + "the end\n";
    fs::write(&file, &longer).unwrap();
    assert_eq!(run(&file, &state), expected(&longer));
}

#[test]
fn a_last_line_without_an_end_counts_and_words_are_split_at_any_white_space() {
    let folder = tempfile::tempdir().unwrap();
    let (file, state) = (folder.path().join("words"), folder.path().join("state"));
    fs::write(&file, "b  a\u{2003}b\r\n\n\tB b").unwrap();
    for _ in 0..2 {
        assert_eq!(run(&file, &state), "B 1\na 1\nb 3\n");
    }
}

#[test]
fn slow_waits_at_each_line_and_commits_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let (file, state) = (folder.path().join("words"), folder.path().join("state"));
    fs::write(&file, "word\n".repeat(500)).unwrap();
    let began = Instant::now();
    // In the middle of a chunk of messages.
    let crashed = command(&file, &state).args(["--slow", "4000", "--crash-after", "100"]).output().unwrap();
    assert!(!crashed.status.success());
    assert!(began.elapsed() >= Duration::from_millis(400));
    let left = command(&file, &state).args(["--crash-after", "480"]).output().unwrap();
    assert!(left.status.success(), "more than 20 lines were committed, so 480 are not left");
    assert_eq!(left.stdout, b"word 500\n");
}

#[test]
fn another_file_over_the_same_state_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (file, state) = (folder.path().join("words"), folder.path().join("state"));
    fs::write(&file, "one\ntwo\n").unwrap();
    run(&file, &state);
    fs::write(&file, "one\nTWO\n").unwrap();
    let refused = command(&file, &state).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("the first 2 lines of") && said.contains("words"), "{said}");
}

#[test]
fn a_wrong_argument_is_answered_with_the_usage() {
    let refused = Command::new(built::example("word_count")).args(["--fil", "x"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said.contains("unknown argument --fil") && said.contains("usage:"), "{said}");
    for both in [&["--topic", "x", "--state", "y"][..], &["--file", "x", "--topic", "y", "--state", "z"]] {
        let refused = Command::new(built::example("word_count")).args(both).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains("--file, or --topic with --bootstrap-servers"), "{said}");
    }
}
