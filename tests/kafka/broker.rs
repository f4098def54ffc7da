//! Real Apache Kafka for these tests: two clusters that all of them share, and a third one to be ended.
//!
//! `KAFKA_1` and `KAFKA_2` in the environment say where the shared ones are; then whoever set them ends them, as
//! `.ci/run` does. Without them `scripts/kafka start 2` is asked, which starts what does not run yet; test
//! binaries that run side by side wait for one another there. What it has started outlives the tests, so that
//! the next run finds it: `scripts/kafka stop` ends it.
//!
//! The third is always one of `scripts/kafka`, since it alone can kill it.
use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    io::{Write, stderr},
    path::Path,
    process::{Command, Stdio},
    sync::OnceLock,
};

/// What `scripts/kafka` answers where Kafka cannot be had.
const LACKING: i32 = 3;

/// The variables that say where clusters are.
type Addresses = BTreeMap<String, String>;

/// Where a cluster is; `None` where there is none, which has been said: then a test has nothing to do.
pub(crate) fn one() -> Option<&'static str> {
    address("KAFKA_1")
}

/// The two clusters.
pub(crate) fn two() -> Option<(&'static str, &'static str)> {
    let one = one()?;
    let other = address("KAFKA_2");
    if other.is_none() {
        say("a test with two clusters: KAFKA_1 is given, and no KAFKA_2");
    }
    Some((one, other?))
}

/// Where the first cluster asks for a password.
pub(crate) fn with_password() -> Option<&'static str> {
    one()?;
    let found = address("KAFKA_1_SASL");
    if found.is_none() {
        say("a test with a password: KAFKA_1 is given, and no KAFKA_1_SASL");
    }
    found
}

fn address(name: &str) -> Option<&'static str> {
    static SHARED: OnceLock<Option<Addresses>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        let given: Addresses = env::vars().filter(|(name, _)| name.starts_with("KAFKA_")).collect();
        if given.contains_key("KAFKA_1") { Some(given) } else { start(2) }
    });
    shared.as_ref()?.get(name).map(String::as_str)
}

/// Starts what does not run of so many clusters.
fn start(clusters: usize) -> Option<Addresses> {
    let (code, addresses, said) = script(&["start", &clusters.to_string()]);
    match code {
        Some(0) => {}
        Some(LACKING) => {
            let why = said.lines().last().unwrap_or_default();
            say(&format!("tests on real Kafka: {}", why.strip_prefix("kafka: ").unwrap_or(why)));
            return None;
        }
        _ => panic!("scripts/kafka start {clusters} failed:\n{said}"),
    }
    let pairs = addresses.lines().filter_map(|line| line.split_once('='));
    Some(pairs.map(|(name, address)| (name.to_owned(), address.to_owned())).collect())
}

/// What `scripts/kafka` answered: its exit code, and its two outputs.
fn script(arguments: &[&str]) -> (Option<i32>, String, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(root.join("scripts/kafka"));
    let ended = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (ended.status.code(), text(&ended.stdout), text(&ended.stderr))
}

/// A line that `.ci/run` finds. Not `eprintln!`, which is seen only where a test fails.
fn say(what: &str) {
    stderr().write_all(format!("\nskipped: {what}\n").as_bytes()).unwrap();
}

/// The third cluster, one test's alone, which may kill, freeze and restart it.
pub(crate) struct Expendable {
    pub(crate) servers: String,
    /// Locked, among threads and processes.
    _lock: File,
}

impl Expendable {
    /// It is running. Waits while another test has it.
    pub(crate) fn new() -> Option<Self> {
        one()?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        fs::create_dir_all(folder).unwrap();
        let lock = File::create(folder.join("third-cluster")).unwrap();
        lock.lock().unwrap();
        let servers = start(3)?.remove("KAFKA_3").unwrap();
        Some(Expendable { servers, _lock: lock })
    }
    pub(crate) fn kill(&self) {
        Self::third("kill");
    }
    pub(crate) fn restart(&self) {
        Self::third("restart");
    }
    pub(crate) fn freeze(&self) {
        Self::third("freeze");
    }
    pub(crate) fn thaw(&self) {
        Self::third("thaw");
    }
    /// After a freeze, or a kill.
    pub(crate) fn thaw_if_alive(&self) {
        script(&["thaw", "3"]);
    }
    fn third(verb: &str) {
        let (code, _, said) = script(&[verb, "3"]);
        assert_eq!(code, Some(0), "scripts/kafka {verb} 3: {said}");
    }
}

impl Drop for Expendable {
    fn drop(&mut self) {
        // Whatever state it is in; the next one starts it.
        script(&["thaw", "3"]);
    }
}
