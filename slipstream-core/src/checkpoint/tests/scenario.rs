//! Sources at random: ties, disorder within the allowed lateness, one or more partitions, and few or many values
//! of time.
use super::draw::Draw;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy)]
pub(super) struct Update {
    pub(super) time: i64,
    pub(super) key: usize,
    /// What is stored: no two have the same.
    pub(super) number: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Input {
    pub(super) time: i64,
    pub(super) key: usize,
}

/// A partition of a dependency.
pub(super) type Source = (usize, i32);
/// By key, what was said of it at a time.
pub(super) type Table = BTreeMap<usize, BTreeMap<i64, u32>>;

pub(super) struct Scenario {
    pub(super) thresholds: Vec<u64>,
    pub(super) partitions: Vec<usize>,
    pub(super) updates: BTreeMap<Source, Vec<Update>>,
    /// The dependent's, by partition.
    pub(super) inputs: Vec<Vec<Input>>,
    pub(super) lateness: u64,
}

pub(super) fn as_of(table: &Table, key: usize, time: i64) -> Option<(i64, u32)> {
    table.get(&key)?.range(..=time).next_back().map(|(time, number)| (*time, *number))
}

impl Scenario {
    pub(super) fn new(draw: &mut Draw) -> Self {
        let count = draw.one_of(&[1, 1, 2]);
        let partitions: Vec<usize> = (0..count).map(|_| draw.one_of(&[1, 1, 2])).collect();
        let span = draw.one_of(&[5, 12, 40]);
        let lateness = draw.one_of(&[0, 0, 3]);
        let (mut updates, mut number) = (BTreeMap::new(), 0);
        for (dependency, of) in partitions.iter().enumerate() {
            for partition in 0..*of {
                let mut times: Vec<(f64, i64)> = times(draw, span)
                    .into_iter()
                    .map(|time| (time as f64 + draw.unit() * lateness as f64, time))
                    .collect();
                times.sort_by(|a, b| a.0.total_cmp(&b.0));
                let updated = times.into_iter().map(|(_, time)| {
                    number += 1;
                    // A key lives in one partition.
                    Update { time, key: draw.below(KEYS) * of + partition, number }
                });
                updates.insert((dependency, partition as i32), updated.collect());
            }
        }
        let drift = draw.one_of(&[0, 0, 3]);
        let keys = KEYS * partitions.iter().max().copied().unwrap_or(1);
        let input = |time: i64, draw: &mut Draw| Input {
            time: (time - draw.below(drift + 1) as i64).max(0),
            key: draw.below(keys),
        };
        let inputs = (0..draw.one_of(&[1, 2, 3]))
            .map(|_| times(draw, span).into_iter().map(|time| input(time, draw)).collect())
            .collect();
        let thresholds = (0..count).map(|_| draw.one_of(&[0, 0, 0, 2, 6])).collect();
        Scenario { thresholds, partitions, updates, inputs, lateness }
    }

    /// What is known of each dependency when all has come.
    pub(super) fn complete(&self) -> Vec<Table> {
        let mut tables = vec![Table::new(); self.partitions.len()];
        for ((dependency, _), updates) in &self.updates {
            for update in updates {
                tables[*dependency].entry(update.key).or_default().insert(update.time, update.number);
            }
        }
        tables
    }
}

/// In each partition.
const KEYS: usize = 2;

fn times(draw: &mut Draw, span: usize) -> Vec<i64> {
    let count = draw.below(14);
    let mut times: Vec<i64> = (0..count).map(|_| draw.below(span) as i64).collect();
    times.sort_unstable();
    times
}
