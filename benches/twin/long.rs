//! Cases that take seconds, as a whole program would: few rounds, several twins, and beside the time
//! that passed that of the processors.
use super::{Twins, clock::Took, spread};
use std::time::Duration;

/// Runs once, and says how long what is to be measured of it took.
pub(crate) type Run<'r, E> = &'r mut dyn FnMut() -> Result<Took, E>;

/// What is printed of how long it took.
type Column = (&'static str, fn(&Took) -> Duration);

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
        let rounds = self.size(5, 3, 1);
        let mut ways: Vec<(&str, Run<'_, E>, Vec<Took>)> = vec![("ours", case, Vec::new())];
        ways.extend(twins.iter_mut().map(|(name, twin)| (*name, &mut **twin as Run<'_, E>, Vec::new())));
        if let Some(alone) = &self.way {
            ways.retain(|(name, ..)| name == alone);
        }
        for _ in 0..rounds {
            for (_, way, times) in &mut ways {
                times.push(way()?);
            }
        }
        if self.only_tests() {
            println!("{name}: runs");
            return Ok(());
        }
        println!("\n{name}: nanoseconds a message, and ours divided by those of a twin; {rounds} rounds.\n");
        let mut columns: Vec<Column> = vec![("wall", |took| took.wall), ("processor", |took| took.processor)];
        if ways.iter().flat_map(|(.., times)| times).any(|took| !took.cluster.is_zero()) {
            columns.push(("without the cluster's", |took| took.processor.saturating_sub(took.cluster)));
        }
        let titles = columns.iter().map(|(title, _)| format!(" {title} |"));
        let ratios = columns.iter().map(|(title, _)| format!(" ratio, {title} |"));
        println!("| way |{}", titles.chain(ratios).collect::<String>());
        println!("|---|{}", "---|---|".repeat(columns.len()));
        for (name, _, times) in &ways {
            let nanos = columns.iter().map(|(_, of)| {
                let nanos: Vec<f64> =
                    times.iter().map(|took| of(took).as_secs_f64() * 1e9 / count as f64).collect();
                spread(&nanos, 1)
            });
            let ratios = columns.iter().map(|(_, of)| {
                let pairs = ways.first().into_iter().flat_map(|(.., ours)| ours).zip(times);
                let ratios: Vec<f64> =
                    pairs.map(|(ours, twin)| of(ours).as_secs_f64() / of(twin).as_secs_f64()).collect();
                spread(&ratios, 1)
            });
            let cells: String = nanos.chain(ratios).map(|cell| format!(" {cell} |")).collect();
            println!("| {name} |{cells}");
        }
        Ok(())
    }
}
