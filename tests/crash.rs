//! Killed at each step of a commit, and at random times, a flow's state equals that of one that ran
//! without a crash, every time.
//!
//! The flow runs in a child: this same test binary, which is told by the environment what to do.
//! `SLIPSTREAM_CRASHES=500 cargo test --test crash` kills it so often; a seed that failed is printed, and
//! given again as `SLIPSTREAM_SEED`.
#![allow(clippy::unwrap_used)]
use slipstream::{Cache, Replay, Result, Store, flow, handle, replay};
use std::{
    collections::BTreeMap,
    env, fs,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

struct App {
    words: Replay,
    numbers: Replay,
    counts: Cache<String, u64>,
    lines: Cache<(String, bool), u64>,
}

#[handle(app.words, sink = app.counts)]
async fn count_words(app: &App, line: String) -> Result<Vec<(String, u64)>> {
    let mut counts = BTreeMap::new();
    for word in line.split_whitespace() {
        let count = app.counts.get(word)?.unwrap_or(0);
        *counts.entry(word.to_owned()).or_insert(count) += 1;
    }
    tokio::task::yield_now().await;
    Ok(counts.into_iter().collect())
}
#[handle(app.words, app.numbers, sink = app.lines)]
fn count_lines(app: &App, line: String) -> Result<((String, bool), u64)> {
    let key = ("lines".to_owned(), line.starts_with('#'));
    let count = app.lines.get(&key)?.unwrap_or(0);
    Ok((key, count + 1))
}
#[handle(app.numbers)]
fn add_up(app: &App, line: String) -> Result<()> {
    let number: u64 = line.trim_start_matches('#').parse()?;
    let sum = app.lines.get(&("sum", true))?.unwrap_or(0);
    Ok(app.lines.insert(&("sum", true), sum + number)?)
}

const LINES: u64 = 3000;

fn words(at: u64) -> String {
    format!("the w{} w{} of {}", at % 7, at % 101, at)
}

/// What a run without a crash leaves.
fn model() -> (BTreeMap<String, u64>, BTreeMap<(String, bool), u64>) {
    let mut counts = BTreeMap::new();
    for at in 0..LINES {
        for word in words(at).split_whitespace() {
            *counts.entry(word.to_owned()).or_insert(0) += 1;
        }
    }
    let rows = [(("lines", false), LINES), (("lines", true), LINES), (("sum", true), (0..LINES).sum())];
    (counts, rows.map(|((name, flag), count)| ((name.to_owned(), flag), count)).into())
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
            let app = App {
                words: replay(folder.join("words")),
                numbers: replay(folder.join("numbers")),
                counts: store.cache("counts")?,
                lines: store.cache("lines")?,
            };
            let flow = flow![count_words, count_lines, add_up];
            flow.commit_every(Duration::from_millis(3)).commit_after(200).run(Arc::new(app)).await
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

/// Runs the child to its end, to its crash, or until it is killed.
fn run(folder: &Path, crash: Option<&str>, kill_after: Option<Duration>) -> ExitStatus {
    let mut command = command(folder);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(crash) = crash {
        command.env("SLIPSTREAM_CRASH", crash);
    }
    let mut child = command.spawn().unwrap();
    if let Some(delay) = kill_after {
        std::thread::sleep(delay);
        let _ = child.kill(); // SIGKILL; it may have ended
    }
    child.wait().unwrap()
}

fn check(folder: &Path, what: &str) {
    let ended = command(folder).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{what}: the last run failed:\n{said}");
    let store = Store::open(folder.join("state")).unwrap();
    let counts: BTreeMap<_, _> =
        store.cache("counts").unwrap().iter().collect::<std::result::Result<_, _>>().unwrap();
    let lines: BTreeMap<_, _> =
        store.cache("lines").unwrap().iter().collect::<std::result::Result<_, _>>().unwrap();
    assert!((counts, lines) == model(), "{what}: the state is not that of a run without a crash");
}

#[test]
fn a_crash_between_any_two_steps_of_a_commit_changes_nothing() {
    for step in ["frozen", "flushed", "written", "thawed"] {
        for turn in [1, 2, 5] {
            let folder = tempfile::tempdir().unwrap();
            inputs(folder.path());
            let crash = format!("{step}:{turn}");
            let ended = run(folder.path(), Some(&crash), None);
            assert!(!ended.success(), "{crash}: it did not crash");
            check(folder.path(), &crash);
        }
    }
}

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
    while left > 0 {
        let folder = tempfile::tempdir().unwrap();
        inputs(folder.path());
        let (began, mut kills) = (seed, 0);
        // A run begins anew where the last one was killed, until it gets through.
        while left > 0
            && !run(folder.path(), None, Some(Duration::from_micros(next(&mut seed) % 150_000))).success()
        {
            left -= 1;
            kills += 1;
        }
        left = left.saturating_sub(1);
        check(folder.path(), &format!("seed {began}, killed {kills} times"));
    }
}
