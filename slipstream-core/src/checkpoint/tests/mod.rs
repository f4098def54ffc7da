//! The judgement, against its model: sources, crashes and repairs at random, and the last answers against the join of
//! all the data; any sequence of calls; and single cases by name.
mod dependencies;
mod draw;
mod join;
mod machine;
mod memory;
mod outages;
mod scenario;
mod updates;
mod world;

use super::{
    judge::{Beat, Judge, Mark, Pulse, Rules},
    record::Record,
};
use crate::Timestamp;
use proptest::test_runner::Config;
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// So many cases, unless `PROPTEST_CASES` says otherwise. A case is a seed, so a smaller one is not a simpler one.
fn cases(usual: u32) -> Config {
    let config = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => Config::default(),
        None => Config::with_cases(usual),
    };
    Config { failure_persistence: None, ..config }
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros(secs * 1_000_000)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn rules(threshold: u64) -> Rules {
    Rules { threshold: secs(threshold), recovers_by_check: false }
}

/// Of dependencies with these thresholds, with a large window and no lateness.
fn judge(thresholds: &[u64]) -> Judge<Timestamp> {
    Judge::new(thresholds.iter().copied().map(rules), 1000, Duration::ZERO)
}

fn set(partitions: impl IntoIterator<Item = i32>) -> BTreeSet<i32> {
    partitions.into_iter().collect()
}

/// The dependencies that the pulse of a worker's message finds behind, as bits, and whether it is answered `Down`.
fn check(judge: &Judge<Timestamp>, worker: usize, pulse: &Timestamp) -> (u64, bool) {
    let is_behind = |dependency: &usize| match judge.mark_for(Some(worker), *dependency) {
        Mark::AheadOfAll => false,
        Mark::At(mark) => judge.is_behind(*dependency, &mark, pulse),
        Mark::Unknown => judge.is_behind(*dependency, judge.stand_in(pulse), pulse),
    };
    let behind = (0..judge.deps.len()).filter(is_behind).fold(0, |mask, dependency| mask | (1 << dependency));
    (behind, behind != 0 || judge.is_down())
}

/// A message in the hand of a worker.
struct Message {
    worker: usize,
    offset: i64,
    marker: Timestamp,
    answer: Option<(u64, bool)>,
}

impl Message {
    /// One of partition 0.
    fn begin(judge: &mut Judge<Timestamp>, offset: i64, marker: i64) -> Self {
        Self::of(judge, 0, offset, marker)
    }

    /// A partition has a worker of its own.
    fn of(judge: &mut Judge<Timestamp>, partition: usize, offset: i64, marker: i64) -> Self {
        judge.begin(partition);
        Message { worker: partition, offset, marker: at(marker), answer: None }
    }

    fn check(&mut self, judge: &Judge<Timestamp>) -> bool {
        self.answer.get_or_insert_with(|| check(judge, self.worker, &self.marker)).1
    }

    /// Answers whether it was answered `Down`.
    fn publish(mut self, judge: &mut Judge<Timestamp>) -> bool {
        self.check(judge);
        let (behind, is_down) = self.answer.unwrap_or_default();
        let partition = i32::try_from(self.worker).unwrap_or_default();
        let pulse = Pulse { marker: self.marker, behind, is_down, state: None };
        judge.publish(self.worker, partition, self.offset, pulse, 0);
        judge.done(self.worker);
        is_down
    }
}

/// A message of partition 0 begins, checks and is published. Answers whether it was answered `Down`.
fn pulse(judge: &mut Judge<Timestamp>, offset: i64, marker: i64) -> bool {
    Message::begin(judge, offset, marker).publish(judge)
}

/// The same, of any partition.
fn pulse_of(judge: &mut Judge<Timestamp>, partition: usize, offset: i64, marker: i64) -> bool {
    Message::of(judge, partition, offset, marker).publish(judge)
}

/// Of partition 0 of the first dependency.
fn beat(judge: &mut Judge<Timestamp>, marker: i64) -> Beat {
    judge.heartbeat(0, 0, &at(marker))
}

/// Repairs what is due. Answers where each partition goes back to.
fn repair(judge: &mut Judge<Timestamp>) -> Vec<(i32, i64)> {
    assert!(judge.is_due());
    let back = judge.back();
    judge.repaired(&back);
    back.into_iter().collect()
}

fn names(names: &[&str]) -> Vec<Arc<str>> {
    names.iter().map(|name| Arc::from(*name)).collect()
}

fn numbered(count: usize) -> Vec<Arc<str>> {
    (0..count).map(|number| format!("dependency {number}").into()).collect()
}

/// As the store would have it.
fn written(judge: &Judge<Timestamp>, names: &[Arc<str>]) -> Vec<u8> {
    Record::of(judge, names, BTreeSet::new()).write().expect("markers of times can be written")
}

/// Goes on in `judge`, which is new.
fn resumed(record: &[u8], mut judge: Judge<Timestamp>, names: &[Arc<str>]) -> Judge<Timestamp> {
    Record::read(record).expect("it was written here").resume(&mut judge, names);
    judge
}
