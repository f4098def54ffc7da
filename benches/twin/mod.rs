//! A case and its twin, the same work written by hand, run alternately in one process: case, twin,
//! case, twin, … Other work on the machine slows both, so the ratio holds where the times do not.
//!
//! ```text
//! round      0 (warm-up)    1            2            …
//!            case twin      case twin    case twin         ratio: the median of case ÷ twin
//! ```
//!
//! `cargo bench` measures, `cargo bench -- NAME` what has NAME in its name, `cargo bench -- --quick`
//! in fewer rounds; of a long case `--way=ours`, or the name of a twin, runs that alone, for a profiler.
//! Without `--bench`, which `cargo test` does not pass, or with `--test`, each runs once over next to
//! nothing, to show that it runs.
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]
#![allow(dead_code, reason = "no benchmark uses all of it")]
pub(crate) mod clock;
pub(crate) mod long;

use std::time::{Duration, Instant};

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    Full,
    Quick,
    /// Only whether it runs.
    Test,
}

/// The cases of one benchmark.
pub(crate) struct Twins {
    effort: Effort,
    filters: Vec<String>,
    way: Option<String>,
    headed: bool,
}

impl Twins {
    pub(crate) fn from_args() -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let has = |name: &str| arguments.iter().any(|argument| argument == name);
        let effort = match () {
            () if has("--test") || !has("--bench") => Effort::Test,
            () if has("--quick") => Effort::Quick,
            () => Effort::Full,
        };
        let filters = arguments.iter().filter(|argument| !argument.starts_with('-')).cloned().collect();
        let way = arguments.iter().find_map(|argument| Some(argument.strip_prefix("--way=")?.to_owned()));
        Twins { effort, filters, way, headed: false }
    }

    /// Whether what has this name is to be measured.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter))
    }

    /// The size of what is measured.
    pub(crate) fn size(&self, full: u64, quick: u64, test: u64) -> u64 {
        match self.effort {
            Effort::Full => full,
            Effort::Quick => quick,
            Effort::Test => test,
        }
    }

    /// Runs both, each for `count` messages a round, and has from them how long they took. They are
    /// told the round, so that both can do the same in it, and need not do what they did before.
    pub(crate) fn compare(
        &mut self,
        name: &str,
        count: u64,
        mut case: impl FnMut(u64) -> Duration,
        mut twin: impl FnMut(u64) -> Duration,
    ) {
        if !self.wants(name) {
            return;
        }
        let (mut cases, mut twins) = (Vec::new(), Vec::new());
        // By time, not by number: many short rounds, since what disturbs one round spares another.
        let (time, least, most) = match self.effort {
            Effort::Full => (Duration::from_millis(2_500), 9, 101),
            Effort::Quick => (Duration::from_millis(400), 3, 31),
            Effort::Test => (Duration::ZERO, 1, 1),
        };
        let nanos = |took: Duration| took.as_secs_f64() * 1e9 / count as f64;
        let begun = Instant::now();
        for round in 0.. {
            let both = (nanos(case(round)), nanos(twin(round)));
            if round > 0 || self.effort == Effort::Test {
                cases.push(both.0);
                twins.push(both.1);
            }
            if cases.len() >= most || (cases.len() >= least && begun.elapsed() >= time) {
                break;
            }
        }
        self.print(name, &cases, &twins);
    }

    /// Whether all runs once over next to nothing.
    pub(crate) fn only_tests(&self) -> bool {
        self.effort == Effort::Test
    }

    fn print(&mut self, name: &str, cases: &[f64], twins: &[f64]) {
        if self.only_tests() {
            println!("{name}: runs");
            return;
        }
        if !std::mem::replace(&mut self.headed, true) {
            println!(
                "Nanoseconds a message: the median of the rounds (the least – three quarters are below)."
            );
            println!("The ratio of each pair: the median (one quarter – three quarters are below).\n");
            println!("| case | rounds | ours | by hand | ratio |\n|---|---|---|---|---|");
        }
        let ratios: Vec<f64> = cases.iter().zip(twins).map(|(case, twin)| case / twin).collect();
        let [ours, by_hand] = [cases, twins].map(|times| spread(times, 0));
        println!("| {name} | {} | {ours} | {by_hand} | {} |", cases.len(), spread(&ratios, 1));
    }
}

/// The median, and what the rounds from so many quarters up to the third lie between.
fn spread(values: &[f64], from: usize) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let quarter = |quarters| figures(sorted.get(last * quarters / 4).copied().unwrap_or(f64::NAN));
    format!("{} ({} – {})", quarter(2), quarter(from), quarter(3))
}

/// Three figures: more would be noise.
fn figures(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}
