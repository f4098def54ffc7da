//! This test binary once more, as a process of its own that can be killed, frozen and told to end.
//!
//! It runs the one test `child::role`, which the environment tells what to be. It says how far it is by lines on its
//! standard output, and ends when the test that started it does: its standard input ends then.
use crate::log::SOON;
use std::{
    env,
    io::{BufRead, BufReader, Read, stdin},
    os::unix::process::ExitStatusExt,
    process::{Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

/// What a process is to be.
const ROLE: &str = "SLIPSTREAM_KAFKA_ROLE";

/// Before what a process says, so that the harness's own lines are not taken for it.
const MARK: &str = "@ ";

/// Says that it has come so far.
pub(crate) fn say(what: impl std::fmt::Display) {
    println!("{MARK}{what}");
}

/// What a role was told.
pub(crate) fn told(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("the child was not told {name}"))
}

/// Not a test of its own: what a process of [`Child`] does.
#[test]
fn role() {
    let Ok(role) = env::var(ROLE) else { return };
    thread::spawn(|| {
        // Whoever started it is gone.
        let _ = stdin().read_to_end(&mut Vec::new());
        std::process::abort();
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(crate::play(&role)).unwrap();
}

/// Runs a flow until the process is told to end (`SIGTERM`), or it ends by itself.
pub(crate) async fn until_told_to_end(flow: slipstream::Flow<()>) -> slipstream::Result<()> {
    crate::lines::show();
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let handle = flow.handle();
    let running = tokio::spawn(flow.run(()));
    tokio::spawn(async move {
        terminate.recv().await;
        handle.stop();
    });
    let ended = running.await?;
    if let Err(error) = &ended {
        eprintln!("it failed: {}", crate::running::chain(&**error));
    }
    ended
}

/// A process, which is killed when this is dropped.
pub(crate) struct Child {
    process: std::process::Child,
    said: Arc<Said>,
}

#[derive(Default)]
struct Said {
    lines: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Default)]
struct Lines {
    /// All of them, for the text of a failure.
    all: Vec<String>,
    /// Those that the role has said.
    told: Vec<String>,
    is_closed: bool,
}

impl Child {
    pub(crate) fn start(role: &str, told: &[(&str, &str)]) -> Child {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["child::role", "--exact", "--nocapture"]).env(ROLE, role).env("RUST_BACKTRACE", "0");
        command
            .envs(told.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let said = Arc::new(Said::default());
        let (out, err) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
        for pipe in [Box::new(out) as Box<dyn Read + Send>, Box::new(err)] {
            let said = Arc::clone(&said);
            thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    said.add(line);
                }
                said.lines.lock().unwrap().is_closed = true;
                said.changed.notify_all();
            });
        }
        Child { process, said }
    }

    /// Waits until it has said a line of which `is` is so, and gives the first such.
    pub(crate) fn says(&self, is: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + 2 * SOON;
        let mut lines = self.said.lines.lock().unwrap();
        loop {
            if let Some(line) = lines.told.iter().find(|line| is(line)) {
                return line.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !lines.is_closed, "not said in {:#?}", lines.all);
            lines = self.said.changed.wait_timeout(lines, left).unwrap().0;
        }
    }
    /// All that it has said so far.
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lines.lock().unwrap().told.clone()
    }
    /// With what libtest and the program's log have said.
    pub(crate) fn output(&self) -> String {
        self.said.lines.lock().unwrap().all.join("\n")
    }

    pub(crate) fn stop(&self) {
        self.signal("STOP");
    }
    pub(crate) fn go_on(&self) {
        self.signal("CONT");
    }
    pub(crate) fn end(&self) {
        self.signal("TERM");
    }
    fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap();
        assert!(sent.success(), "kill -{name} {pid}");
    }

    /// `SIGKILL`, at once.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.said()
    }
    /// Kills it after so long, unless it ends before. Answers whether it has come to its end in good order.
    pub(crate) fn ends_or_is_killed(mut self, after: Duration) -> bool {
        let deadline = Instant::now() + after;
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            if Instant::now() >= deadline {
                let _ = self.process.kill(); // it may just have ended
                break self.process.wait().unwrap();
            }
            thread::sleep(Duration::from_millis(1).min(deadline - Instant::now()));
        };
        assert!(status.success() || status.signal().is_some(), "it failed:\n{}", self.output());
        status.success()
    }
    /// Waits for its end, and answers how it ended.
    pub(crate) fn ends(&mut self, within: Duration) -> ExitStatus {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end:\n{}", self.output());
            thread::sleep(Duration::from_millis(5));
        }
    }
    /// Waits for its end, in good order.
    pub(crate) fn ends_well(mut self, within: Duration) -> Vec<String> {
        let status = self.ends(within);
        assert!(status.success(), "{status}:\n{}", self.output());
        self.said()
    }
}

impl Said {
    fn add(&self, line: String) {
        let mut lines = self.lines.lock().unwrap();
        // libtest writes the test's name without an end of the line.
        if let Some((_, told)) = line.split_once(MARK) {
            lines.told.push(told.to_owned());
        }
        lines.all.push(line);
        self.changed.notify_all();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
