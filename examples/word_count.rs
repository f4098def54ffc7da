//! Counts the words of a file, or of a topic's messages, exactly, however often the process is killed and started
//! again: the counts and the number of the next line, or message, are committed together.
//!
//! `cargo run --release --example word_count -- --file FILE --state DIR [--slow MICROSECONDS] [--crash-after N]`,
//! or `--topic NAME --bootstrap-servers HOST:PORT` in place of the file
#![allow(clippy::print_stdout, clippy::print_stderr)] // an example may
use slipstream::{Cache, Kafka, Offset, Replay, Result, Topic, flow, handle, replay};
use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

struct App {
    /// One of the two.
    file: Option<Replay>,
    topic: Option<Topic<(), String>>,
    counts: Cache<String, u64>,
    slow: Duration,
    crash_after: Option<u64>,
    handled: AtomicU64,
}

#[handle(*app.file.as_ref().ok_or("no file")?)]
async fn count_lines(app: &App, line: String) -> Result<()> {
    app.count(&line).await
}

#[handle(*app.topic.as_ref().ok_or("no topic")?)]
async fn count_messages(app: &App, line: String) -> Result<()> {
    app.count(&line).await
}

impl App {
    async fn count(&self, line: &str) -> Result<()> {
        self.wait_or_crash().await;
        for word in line.split_whitespace() {
            self.counts.update(word, |count| count.unwrap_or(0) + 1)?;
        }
        Ok(())
    }

    async fn wait_or_crash(&self) {
        if Some(self.handled.fetch_add(1, Ordering::Relaxed)) == self.crash_after {
            eprintln!("crashing, as was asked for");
            std::process::abort();
        }
        if !self.slow.is_zero() {
            let until = Instant::now() + self.slow;
            // Commits have their turn, also where there is one thread only.
            tokio::task::yield_now().await;
            // The system's sleep is late by up to a tenth of a millisecond: the rest is spun.
            let left = until.saturating_duration_since(Instant::now());
            std::thread::sleep(left.saturating_sub(Duration::from_micros(200)));
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
    }
}

const USAGE: &str = "usage: word_count (--file FILE | --topic NAME --bootstrap-servers HOST:PORT) --state DIR \
     [--slow MICROSECONDS] [--crash-after N]";

struct Args {
    lines: Lines,
    state: PathBuf,
    slow: Duration,
    crash_after: Option<u64>,
}

enum Lines {
    Of(PathBuf),
    In { topic: String, servers: String },
}

fn args() -> std::result::Result<Args, String> {
    let (mut file, mut topic, mut servers, mut state) = (None, None, None, None);
    let (mut slow, mut crash_after) = (Duration::ZERO, None);
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|error| format!("{name} {text}: {error}"));
        match name.as_str() {
            "--file" => file = Some(PathBuf::from(value?)),
            "--topic" => topic = Some(value?),
            "--bootstrap-servers" => servers = Some(value?),
            "--state" => state = Some(PathBuf::from(value?)),
            "--slow" => slow = Duration::from_micros(number(value?)?),
            "--crash-after" => crash_after = Some(number(value?)?),
            other => return Err(format!("unknown argument {other}")),
        }
    }
    let lines = match (file, topic, servers) {
        (Some(file), None, None) => Lines::Of(file),
        (None, Some(topic), Some(servers)) => Lines::In { topic, servers },
        _ => return Err("it takes --file, or --topic with --bootstrap-servers".to_owned()),
    };
    let state = state.ok_or("--state is missing")?;
    Ok(Args { lines, state, slow, crash_after })
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = match args() {
        Ok(args) => args,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:?}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<()> {
    let (file, topic) = match args.lines {
        Lines::Of(file) => (Some(replay(file)), None),
        Lines::In { topic, servers } => {
            let kafka = Kafka::new([("bootstrap.servers", servers)])?;
            // All partitions are this process's, and where it stands is in the store alone: no group is needed. It
            // ends with what is there at the start.
            (None, Some(kafka.topic(&topic).text().broadcast().until(Offset::End)))
        }
    };
    let flow = if file.is_some() { flow![count_lines] } else { flow![count_messages] };
    let app = Arc::new(App {
        file,
        topic,
        counts: Cache::open(args.state)?,
        slow: args.slow,
        crash_after: args.crash_after,
        handled: AtomicU64::new(0),
    });
    flow.named("word_count").store(app.counts.store()).run(Arc::clone(&app)).await?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for row in &app.counts {
        let (word, count) = row?;
        std::io::Write::write_fmt(&mut out, format_args!("{word} {count}\n"))?;
    }
    Ok(std::io::Write::flush(&mut out)?)
}
