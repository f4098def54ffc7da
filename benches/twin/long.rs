//! Cases that take seconds, as a whole program would: few rounds, several twins, and beside the time
//! that passed that of the processors.
use super::{Twins, spread};
use std::time::{Duration, Instant};

/// How long something took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took {
    pub(crate) wall: Duration,
    /// Of all threads of the process, those of RocksDB included; to ten milliseconds.
    pub(crate) processor: Duration,
}

/// Runs once, and says how long what is to be measured of it took.
pub(crate) type Run<'r, E> = &'r mut dyn FnMut() -> Result<Took, E>;

/// Runs and measures.
pub(crate) fn took<E>(run: impl FnOnce() -> Result<(), E>) -> Result<Took, E> {
    let (start, processor) = (Instant::now(), processor());
    run()?;
    Ok(Took { wall: start.elapsed(), processor: self::processor().saturating_sub(processor) })
}

/// What the process has had of the processors, where Linux tells it.
fn processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may hold anything; after it the third field comes.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    // In ticks, of which Linux tells programs a hundred a second on all its machines.
    Duration::from_millis(fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 10)
}

impl Twins {
    /// Runs a long case and several twins of it by turns, each for `count` messages a round, and prints
    /// the processor time of the whole process too.
    pub(crate) fn several<E>(
        &mut self,
        name: &str,
        count: u64,
        case: Run<'_, E>,
        twins: &mut [(&str, Run<'_, E>)],
    ) -> Result<(), E> {
        if !self.wants(name) {
            return Ok(());
        }
        let rounds = self.size(3, 3, 1);
        let mut all = vec![Vec::new(); twins.len() + 1];
        for _ in 0..rounds {
            let mut times = all.iter_mut();
            let mut keep = |took| times.next().map(|times| times.push(took));
            keep(case()?);
            for (_, twin) in &mut *twins {
                keep(twin()?);
            }
        }
        if self.only_tests() {
            println!("{name}: runs");
            return Ok(());
        }
        println!("\n{name}: nanoseconds a message, and ours divided by those of a twin; {rounds} rounds.\n");
        println!("| way | wall | processor | ratio, wall | ratio, processor |\n|---|---|---|---|---|");
        let names = std::iter::once("ours").chain(twins.iter().map(|(name, _)| *name));
        for (name, times) in names.zip(&all) {
            let nanos = |of: fn(&Took) -> Duration| {
                let nanos: Vec<f64> =
                    times.iter().map(|took| of(took).as_secs_f64() * 1e9 / count as f64).collect();
                spread(&nanos, 1)
            };
            let ratio = |of: fn(&Took) -> Duration| {
                let pairs = all.first().into_iter().flatten().zip(times);
                let ratios: Vec<f64> =
                    pairs.map(|(ours, twin)| of(ours).as_secs_f64() / of(twin).as_secs_f64()).collect();
                spread(&ratios, 1)
            };
            let [wall, processor] = [|took: &Took| took.wall, |took: &Took| took.processor];
            println!(
                "| {name} | {} | {} | {} | {} |",
                nanos(wall),
                nanos(processor),
                ratio(wall),
                ratio(processor)
            );
        }
        Ok(())
    }
}
