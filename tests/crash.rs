//! Killed at each step of a commit, and at random times, a flow's state equals that of one that ran
//! without a crash, every time.
//!
//! ```text
//! words ───▶ count_words, forgets ──▶ counts ──its changes──▶ count_changes
//!       └──▶ count_lines
//! numbers ─▶ count_lines, add_up (and a sink outside), commits, gives ──┐
//! parts ═══▶ shares, skips, four at a time ─────────────────────────────┴─letters─▶ hears
//! ```
//!
//! The flow runs in a child: this same test binary, which is told by the environment what to do.
//! `SLIPSTREAM_CRASHES=500 cargo test --test crash` kills it so often; a seed that failed is printed, and
//! given again as `SLIPSTREAM_SEED`.
#![allow(clippy::unwrap_used)]
use futures::{Stream, StreamExt, stream};
use slipstream::{
    AsyncIterable, Cache, Channel, FlowHandle, OnError, Position, Positions, Replay, Result, Seekable, Seeks,
    Sink, Store, flow, handle, replay,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fs::{self, File},
    io::Write,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::task::yield_now;

const LINES: u64 = 600;
const PARTITIONS: i32 = 4;
const LENGTH: i64 = 200;

struct App {
    words: Replay,
    numbers: Replay,
    parts: Parts,
    letters: Channel<String>,
    counts: Cache<String, u64>,
    changes: Cache<String, u64>,
    lines: Cache<String, u64>,
    heard: Cache<String, u64>,
    shared: Cache<String, u64>,
    kept: Cache<String, u64>,
    outputs: Outputs,
    flow: OnceLock<FlowHandle>,
    /// How often `shares` was called.
    runs: AtomicU64,
}

#[handle(app.words, sink = app.counts)]
async fn count_words(app: &App, line: String) -> Result<Vec<(String, u64)>> {
    let mut counts = BTreeMap::new();
    for word in line.split_whitespace() {
        let count = app.counts.get(word)?.unwrap_or(0);
        *counts.entry(word.to_owned()).or_insert(count) += 1;
    }
    yield_now().await;
    Ok(counts.into_iter().collect())
}
#[handle(app.words)]
fn forgets(app: &App, line: String) -> Result<()> {
    let mut words = line.split_whitespace();
    match (words.nth(1), words.next_back()) {
        (Some(word), Some(at)) if at.ends_with("49") => Ok(app.counts.remove(word)?),
        _ => Ok(()),
    }
}
#[handle(app.counts)]
async fn count_changes(app: &App, (word, count): (String, Option<u64>)) -> Result<()> {
    let change = if count.is_some() { "set" } else { "removed" };
    app.changes.update(&format!("{word} {change}"), |count| count.unwrap_or(0) + 1)?;
    Ok(())
}

#[handle(app.words, app.numbers, sink = app.lines)]
fn count_lines(app: &App, line: String) -> Result<(String, u64)> {
    let key = if line.starts_with('#') { "numbers" } else { "words" };
    Ok((key.to_owned(), app.lines.get(key)?.unwrap_or(0) + 1))
}
#[handle(app.numbers, sink = app.outputs)]
fn add_up(app: &App, line: String) -> Result<u64> {
    let number: u64 = line.trim_start_matches('#').parse()?;
    app.lines.insert("sum", app.lines.get("sum")?.unwrap_or(0) + number)?;
    Ok(number)
}
#[handle(app.numbers)]
async fn commits(app: &App, line: String) -> Result<()> {
    if line.ends_with("77") {
        app.flow.get().ok_or("no handle")?.commit_now().await?;
    }
    Ok(())
}

#[handle(app.numbers, sink = app.letters)]
async fn gives(app: &App, _: String) -> String {
    "number".to_owned()
}
#[handle(app.letters)]
async fn hears(app: &App, letter: String) -> Result<()> {
    app.heard.update(&letter, |count| count.unwrap_or(0) + 1)?;
    // Of the messages in hand some have read the same count.
    yield_now().await;
    Ok(())
}

#[handle(app.parts)]
async fn shares(app: &App, (partition, _): (i32, i64)) -> Result<()> {
    app.runs.fetch_add(1, Ordering::Relaxed);
    app.shared.update("all", |count| count.unwrap_or(0) + 1)?;
    yield_now().await;
    let own = format!("of {partition}");
    Ok(app.shared.insert(&own, app.shared.get(&own)?.unwrap_or(0) + 1)?)
}
#[handle(app.parts, on_error = OnError::skip())]
async fn skips(app: &App, (partition, offset): (i32, i64)) -> Result<()> {
    app.kept.insert(&format!("last of {partition}"), offset.unsigned_abs())?;
    app.letters.send("part".to_owned()).await?;
    app.kept.update("sum", |sum| sum.unwrap_or(0) + offset.unsigned_abs())?;
    yield_now().await;
    if fails(partition, offset) { Err("as always".into()) } else { Ok(()) }
}

fn fails(partition: i32, offset: i64) -> bool {
    (offset + i64::from(partition)) % 7 == 3
}

/// A log of several partitions, handled at the same time.
#[derive(Debug, Clone)]
struct Parts;

impl AsyncIterable for Parts {
    type Item = (i32, i64);
    fn open(&self) -> impl Stream<Item = (i32, i64)> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, item)| item)
    }
    fn identity(&self) -> Option<String> {
        Some("parts".to_owned())
    }
    fn seeks(&self) -> Option<Seeks<(i32, i64)>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Parts {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, (i32, i64))> + Send + 'static {
        let all = (0..LENGTH).flat_map(|offset| (0..PARTITIONS).map(move |partition| (partition, offset)));
        let left = all.filter(move |(partition, offset)| *offset >= start.next(*partition).unwrap_or(0));
        stream::iter(left.map(|(partition, offset)| (Position::new(partition, offset), (partition, offset))))
    }
    fn concurrency(&self) -> usize {
        4
    }
}

/// A sink outside of the store: a file to which it writes when it is flushed.
#[derive(Debug, Clone)]
struct Outputs {
    kept_back: Arc<Mutex<String>>,
    file: Arc<File>,
}

impl Sink<u64> for Outputs {
    const WAITS: bool = false;
    async fn send(&self, output: &u64) -> Result<()> {
        *self.kept_back.lock().unwrap() += &format!("{output}\n");
        Ok(())
    }
    async fn flush(&self) -> Result<()> {
        let outputs = std::mem::take(&mut *self.kept_back.lock().unwrap());
        Ok((&*self.file).write_all(outputs.as_bytes())?)
    }
}

fn words(at: u64) -> String {
    format!("the w{} w{} of {}", at % 7, at % 101, at)
}

/// All that is in the caches, by cache and key.
type State = BTreeMap<(&'static str, String), u64>;

/// What a run without a crash leaves.
fn model() -> State {
    let mut state = State::new();
    let mut add = |cache, key: String, number| *state.entry((cache, key)).or_insert(0) += number;
    for at in 0..LINES {
        let text = words(at);
        for word in text.split_whitespace() {
            add("counts", word.to_owned(), 1);
        }
        for word in text.split_whitespace().collect::<BTreeSet<_>>() {
            add("changes", format!("{word} set"), 1);
        }
        if at % 100 == 49 {
            add("changes", format!("w{} removed", at % 7), 1);
        }
        add("lines", "words".to_owned(), 1);
        add("lines", "numbers".to_owned(), 1);
        add("lines", "sum".to_owned(), at);
        add("heard", "number".to_owned(), 1);
    }
    for (partition, offset) in (0..PARTITIONS).flat_map(|part| (0..LENGTH).map(move |at| (part, at))) {
        add("shared", "all".to_owned(), 1);
        add("shared", format!("of {partition}"), 1);
        if !fails(partition, offset) {
            add("kept", "sum".to_owned(), offset.unsigned_abs());
            add("heard", "part".to_owned(), 1);
        }
    }
    for number in 0..7 {
        // Counted from the last time that it was forgotten.
        let word = format!("w{number}");
        let last = (0..LINES).rfind(|at| at % 100 == 49 && at % 7 == number);
        let since = last.map_or(0, |last| last + 1)..LINES;
        let count =
            since.map(|at| (words(at).split(' ').filter(|other| *other == word).count()) as u64).sum();
        state.insert(("counts", word), count);
    }
    for partition in 0..PARTITIONS {
        let last = (0..LENGTH).rfind(|offset| !fails(partition, *offset)).unwrap();
        state.insert(("kept", format!("last of {partition}")), last.unsigned_abs());
    }
    state
}

fn inputs(folder: &Path) {
    let lines = |line: fn(u64) -> String| (0..LINES).map(|at| line(at) + "\n").collect::<String>();
    fs::write(folder.join("words"), lines(words)).unwrap();
    fs::write(folder.join("numbers"), lines(|at| format!("#{at}"))).unwrap();
}

/// Not a test of its own: what the child does.
#[test]
fn child() {
    let Some(folder) = env::var_os("SLIPSTREAM_CRASH_FOLDER") else { return };
    let folder = Path::new(&folder);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime
        .block_on(async {
            let store = Store::open(folder.join("state"))?;
            let file = File::options().create(true).append(true).open(folder.join("outputs"))?;
            let app = Arc::new(App {
                words: replay(folder.join("words")),
                numbers: replay(folder.join("numbers")),
                parts: Parts,
                letters: Channel::new(),
                counts: store.cache("counts")?,
                changes: store.cache("changes")?,
                lines: store.cache("lines")?,
                heard: store.cache("heard")?,
                shared: store.cache("shared")?,
                kept: store.cache("kept")?,
                outputs: Outputs { kept_back: Arc::default(), file: Arc::new(file) },
                flow: OnceLock::new(),
                runs: AtomicU64::new(0),
            });
            let flow = flow![
                count_words,
                forgets,
                count_changes,
                count_lines,
                add_up,
                commits,
                gives,
                hears,
                shares,
                skips
            ];
            let flow = flow.commit_every(Duration::from_millis(3)).commit_after(50);
            app.flow.set(flow.handle()).unwrap();
            flow.run(Arc::clone(&app)).await?;
            if env::var("SLIPSTREAM_CRASH").as_deref() == Ok("ended") {
                std::process::abort();
            }
            fs::write(folder.join("runs"), app.runs.load(Ordering::Relaxed).to_string())?;
            Ok::<_, slipstream::BoxError>(())
        })
        .unwrap();
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["child", "--exact"])
        .env("SLIPSTREAM_CRASH_FOLDER", folder)
        .env_remove("SLIPSTREAM_CRASH")
        .env("RUST_BACKTRACE", "0");
    command
}

/// Runs the child to its end, to its crash, or until it is killed; answers whether it has come to its end.
fn run(folder: &Path, crash: Option<&str>, kill_after: Option<Duration>) -> bool {
    let mut command = command(folder);
    command.stdout(File::create(folder.join("said")).unwrap()).stderr(Stdio::null());
    if let Some(crash) = crash {
        command.env("SLIPSTREAM_CRASH", crash);
    }
    let mut child = command.spawn().unwrap();
    if let Some(delay) = kill_after {
        std::thread::sleep(delay);
        let _ = child.kill(); // SIGKILL; it may have ended
    }
    let ended = child.wait().unwrap();
    // As a test that has failed does: neither a crash nor a kill.
    if ended.code() == Some(101) {
        panic!("the flow has failed:\n{}", fs::read_to_string(folder.join("said")).unwrap());
    }
    ended.success()
}

/// A folder in which the child has crashed at a step.
fn crashed_at(step: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    inputs(folder.path());
    assert!(!run(folder.path(), Some(step), None), "{step}: it did not crash");
    folder
}

/// What a store has that no flow runs over.
fn state(folder: &Path) -> State {
    let store = Store::open(folder.join("state")).unwrap();
    let mut state = State::new();
    for name in ["counts", "changes", "lines", "heard", "shared", "kept"] {
        let cache: Cache<String, u64> = store.cache(name).unwrap();
        state.extend(cache.iter().map(|row| {
            let (key, value) = row.unwrap();
            ((name, key), value)
        }));
    }
    state
}

fn assert_model(folder: &Path, what: &str) {
    let (state, model) = (state(folder), model());
    let keys: BTreeSet<_> = state.keys().chain(model.keys()).collect();
    let differ = keys.into_iter().map(|key| (key, state.get(key), model.get(key)));
    let differ: Vec<_> = differ.filter(|(_, found, expected)| found != expected).collect();
    assert!(differ.is_empty(), "{what}: not as after a run without a crash (found, expected): {differ:#?}");
}

/// Runs to the end over what is in the folder.
fn check(folder: &Path, what: &str) {
    let ended = command(folder).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{what}: the last run failed:\n{said}");
    assert_model(folder, what);
    // What was on its way to the outside is not lost; it may have come twice.
    let outputs = fs::read_to_string(folder.join("outputs")).unwrap();
    let outputs: BTreeSet<u64> = outputs.lines().map(|line| line.parse().unwrap()).collect();
    assert!(outputs.into_iter().eq(0..LINES), "{what}: an output is lost");
}

#[test]
fn a_run_without_a_crash_leaves_what_the_model_says_and_runs_messages_again() {
    let folder = tempfile::tempdir().unwrap();
    inputs(folder.path());
    check(folder.path(), "without a crash");
    let runs: i64 = fs::read_to_string(folder.path().join("runs")).unwrap().parse().unwrap();
    assert!(runs > i64::from(PARTITIONS) * LENGTH, "no two messages have met");
}

#[test]
fn a_crash_between_any_two_steps_of_a_commit_changes_nothing() {
    for step in ["frozen", "flushed", "written", "thawed"] {
        for turn in [1, 2, 5, 20] {
            let crash = format!("{step}:{turn}");
            check(crashed_at(&crash).path(), &crash);
        }
    }
}

#[test]
fn killed_before_its_first_commit_a_flow_begins_anew() {
    for step in ["frozen", "flushed"] {
        let folder = crashed_at(step);
        assert_eq!(state(folder.path()), State::new(), "{step}");
        check(folder.path(), step);
    }
}

#[test]
fn killed_when_its_sources_have_ended_a_flow_has_kept_all() {
    let folder = crashed_at("ended");
    assert_model(folder.path(), "ended");
    let outputs = || fs::read(folder.path().join("outputs")).unwrap();
    let before = outputs();
    check(folder.path(), "ended");
    assert!(outputs() == before, "a message came again");
}

/// So many microseconds a run has at the most until it is killed.
const LONGEST: u64 = 300_000;

/// A small generator, so that a failure can be run again by its seed.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[test]
fn killed_at_random_times_the_state_is_exact() {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let mut seed =
        number("SLIPSTREAM_SEED").unwrap_or(u64::try_from(clock % u128::from(u64::MAX)).unwrap()).max(1);
    println!("SLIPSTREAM_SEED={seed}");
    let mut left = number("SLIPSTREAM_CRASHES").unwrap_or(30);
    let mut flows = 0;
    while left > 0 {
        let folder = tempfile::tempdir().unwrap();
        inputs(folder.path());
        let (began, mut kills) = (seed, 0);
        // A run begins anew where the last one was killed, until it gets through.
        while left > 0 && !run(folder.path(), None, Some(Duration::from_micros(next(&mut seed) % LONGEST))) {
            left -= 1;
            kills += 1;
        }
        check(folder.path(), &format!("seed {began}, killed {kills} times"));
        flows += 1;
    }
    println!("{flows} flows came to their end");
}
