//! What comes of a seed: the rows of all sources, and how the checkpoint and the flow are set.
use crate::{log::Row, rng::Rng};

#[derive(Debug, Clone)]
pub(crate) struct Dep {
    /// By partition.
    pub(crate) rows: Vec<Vec<Row>>,
    pub(crate) threshold: i64,
    pub(crate) is_concurrent: bool,
    /// A partition of it that is silent for a while does not hold up the dependent.
    pub(crate) may_idle: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) dependencies: Vec<Dep>,
    /// Of the dependent, by partition.
    pub(crate) messages: Vec<Vec<Row>>,
    pub(crate) is_concurrent: bool,
    /// How far the updates of a partition are out of order.
    pub(crate) lateness: i64,
    pub(crate) window: usize,
    pub(crate) gather_ms: u64,
    /// A message that is answered `Down` comes again later.
    pub(crate) defers: bool,
    /// The handler that only counts comes first.
    pub(crate) counts_first: bool,
    pub(crate) commit_after: u64,
    /// After so many steps a run is dropped; whether the handler that was at it waits for that.
    pub(crate) crashes: Vec<(i64, bool)>,
    /// A run after a crash has a checkpoint of its own, as another process has.
    pub(crate) is_new_each_run: bool,
}

impl Schedule {
    pub(crate) fn new(rng: &Rng) -> Self {
        let (span, disorder) = (rng.of(&[5, 12, 40]), rng.of(&[0, 0, 3]));
        let (keys, mut number) = (2, 0);
        let times = |most: i64| {
            let mut times: Vec<i64> = (0..rng.below(most)).map(|_| rng.below(span)).collect();
            times.sort_unstable();
            times
        };
        let mut dependencies = Vec::new();
        for _ in 0..rng.of(&[1, 1, 2]) {
            let partitions = rng.of(&[1, 1, 2]);
            let rows = (0..partitions).map(|partition| {
                let mut times: Vec<_> = times(14)
                    .into_iter()
                    .map(|time| (time * 10 + rng.below(disorder * 10 + 1), time))
                    .collect();
                times.sort_by_key(|(order, _)| *order);
                let rows = times.into_iter().map(|(_, time)| {
                    number += 1;
                    // A key lives in one partition.
                    Row { time, key: rng.below(keys) * partitions + partition, number }
                });
                rows.collect()
            });
            dependencies.push(Dep {
                rows: rows.collect(),
                threshold: rng.of(&[0, 0, 0, 2, 6]),
                is_concurrent: rng.percent(50),
                may_idle: rng.percent(30),
            });
        }
        let most_partitions = dependencies.iter().map(|dep| dep.rows.len()).max().unwrap_or(1) as i64;
        let drift = rng.of(&[0, 0, 3]);
        let messages = (0..rng.of(&[1, 2, 3])).map(|_| {
            let rows = times(14).into_iter().map(|time| {
                let time = (time - rng.below(drift + 1)).max(0);
                Row { time, key: rng.below(keys * most_partitions), number: 0 }
            });
            rows.collect()
        });
        let messages: Vec<Vec<Row>> = messages.collect();
        let all = messages.iter().chain(dependencies.iter().flat_map(|dep| &dep.rows)).map(Vec::len);
        let steps = 3 * all.sum::<usize>() as i64 + 5;
        let crashes = (0..rng.of(&[0, 0, 1, 2, 5])).map(|_| (rng.below(steps), rng.percent(50)));
        Schedule {
            crashes: crashes.collect(),
            dependencies,
            messages,
            is_concurrent: rng.percent(60),
            lateness: disorder,
            window: rng.of(&[2, 4, 1000]),
            gather_ms: rng.of(&[0, 1, 50]),
            defers: rng.percent(50),
            counts_first: rng.percent(50),
            commit_after: rng.of(&[1, 2, 5, 20, 1000]) as u64,
            is_new_each_run: rng.percent(50),
        }
    }

    /// One dependency without a threshold, and nothing special.
    pub(crate) fn plain(updates: Vec<Vec<Row>>, messages: Vec<Vec<Row>>) -> Self {
        let dependency = Dep { rows: updates, threshold: 0, is_concurrent: false, may_idle: false };
        Schedule {
            dependencies: vec![dependency],
            messages,
            is_concurrent: false,
            lateness: 0,
            window: 1000,
            gather_ms: 50,
            defers: false,
            counts_first: false,
            commit_after: 1000,
            crashes: Vec::new(),
            is_new_each_run: false,
        }
    }

    /// More handlings than any run needs: each repair is of an update or of an answer.
    pub(crate) fn most_handlings(&self) -> usize {
        let messages: usize = self.messages.iter().map(Vec::len).sum();
        let updates: usize = self.dependencies.iter().flat_map(|dep| &dep.rows).map(Vec::len).sum();
        (messages + 1) * (messages + updates + 2) * (self.crashes.len() + 1)
    }
}
