//! Whatever is called, in whatever order, the judgement keeps to its invariants: against a second, plain account of what
//! was told.
use super::{Judge, Rules, at, cases, check, numbered, resumed, secs, set, written};
use crate::{Timestamp, checkpoint::judge::Pulse};
use proptest::{collection::vec, prelude::*};
use std::collections::{BTreeMap, BTreeSet};

const DEPENDENCIES: usize = 2;
/// The second dependency is asked by a check of its own.
const CHECKED: usize = 1;
const TIMES: i64 = 12;

#[derive(Debug, Clone)]
enum Call {
    Heartbeat { dependency: usize, partition: i32, time: i64 },
    Begin { worker: usize },
    Publish { worker: usize, time: i64 },
    Drop { worker: usize },
    FallQuiet { dependency: usize, partition: i32 },
    End { dependency: usize },
    Assign { dependency: usize, partitions: Vec<i32> },
    KeepOnly { partitions: Vec<i32> },
    Recover,
    Repair,
    Restart,
}

fn call() -> impl Strategy<Value = Call> {
    let (dependency, partition, worker, time) = (0..DEPENDENCIES, 0..2_i32, 0..2_usize, 0..TIMES);
    let beat = (dependency.clone(), partition.clone(), time.clone());
    prop_oneof![
        8 => beat.prop_map(|(dependency, partition, time)| Call::Heartbeat { dependency, partition, time }),
        4 => worker.clone().prop_map(|worker| Call::Begin { worker }),
        8 => (worker.clone(), time).prop_map(|(worker, time)| Call::Publish { worker, time }),
        1 => worker.prop_map(|worker| Call::Drop { worker }),
        1 => (dependency.clone(), partition)
            .prop_map(|(dependency, partition)| Call::FallQuiet { dependency, partition }),
        1 => dependency.clone().prop_map(|dependency| Call::End { dependency }),
        1 => (dependency, vec(0..3_i32, 1..3))
            .prop_map(|(dependency, partitions)| Call::Assign { dependency, partitions }),
        1 => vec(0..2_i32, 1..3).prop_map(|partitions| Call::KeepOnly { partitions }),
        2 => Just(Call::Recover),
        4 => Just(Call::Repair),
        2 => Just(Call::Restart),
    ]
}

/// What was told, plainly.
#[derive(Default)]
struct Account {
    beats: BTreeMap<(usize, i32), i64>,
    quiet: BTreeSet<(usize, i32)>,
    others: BTreeSet<(usize, i32)>,
    first: Option<i64>,
    highest: Option<i64>,
    next: [i64; 2],
    /// Published and not handled again: partition, offset, time.
    standing: Vec<(i32, i64, i64)>,
    /// The first that were answered `Down` and wait.
    told: BTreeMap<i32, i64>,
}

impl Account {
    fn parts(&self, dependency: usize) -> Vec<(Option<i64>, bool)> {
        let known =
            self.beats.keys().chain(&self.quiet).chain(&self.others).copied().collect::<BTreeSet<_>>();
        let ours = known.into_iter().filter(|part| part.0 == dependency && !self.others.contains(part));
        ours.map(|part| (self.beats.get(&part).copied(), self.quiet.contains(&part))).collect()
    }

    /// Every partition that counts has come to the highest pulse.
    fn has_reached(&self, dependency: usize) -> bool {
        let Some(highest) = self.highest else { return true };
        let parts = self.parts(dependency);
        let has_come = parts.iter().any(|(beat, _)| beat.is_some());
        let reaches = |(beat, is_quiet): &(Option<i64>, bool)| match beat {
            _ if *is_quiet => true,
            Some(beat) => *beat >= highest,
            None => has_come || self.first.is_some_and(|first| first >= highest),
        };
        match parts.is_empty() {
            true => self.first.is_none_or(|first| first >= highest),
            false => parts.iter().all(reaches),
        }
    }
}

struct Machine {
    judge: Judge<Timestamp>,
    account: Account,
    begun: [bool; 2],
    has_lost: bool,
    cap: usize,
    lateness: u64,
}

fn new(cap: usize, lateness: u64) -> Judge<Timestamp> {
    let rules = (0..DEPENDENCIES)
        .map(|number| Rules { threshold: secs(2 * number as u64), recovers_by_check: number == CHECKED });
    Judge::new(rules, cap, secs(lateness))
}

impl Machine {
    fn call(&mut self, call: Call) {
        let Machine { judge, account, begun, .. } = self;
        match call {
            Call::Heartbeat { dependency, partition, time } => {
                judge.heartbeat(dependency, partition, &at(time));
                let known = account.beats.entry((dependency, partition)).or_insert(time);
                *known = time.max(*known);
                account.quiet.remove(&(dependency, partition));
            }
            Call::Begin { worker } => {
                judge.begin(worker);
                begun[worker] = true;
            }
            Call::Publish { worker, time } => {
                if !begun[worker] {
                    judge.begin(worker);
                }
                let (marker, partition, offset) = (at(time), worker as i32, account.next[worker]);
                let (behind, is_down) = check(judge, worker, &marker);
                account.next[worker] += 1;
                account.first.get_or_insert(time);
                account.highest = account.highest.max(Some(time));
                account.standing.push((partition, offset, time));
                if is_down {
                    account.told.entry(partition).or_insert(offset);
                }
                judge.publish(worker, partition, offset, Pulse { marker, behind, is_down, state: None }, 0);
                judge.done(worker);
                begun[worker] = false;
            }
            Call::Drop { worker } => {
                judge.done(worker);
                begun[worker] = false;
            }
            Call::FallQuiet { dependency, partition } => {
                judge.fall_quiet(dependency, partition);
                account.quiet.insert((dependency, partition));
            }
            Call::End { dependency } => {
                judge.end(dependency);
                let parts = judge.deps[dependency].parts.keys().map(|partition| (dependency, *partition));
                account.quiet.extend(parts);
            }
            Call::Assign { dependency, partitions } => {
                let ours = set(partitions);
                let known = judge.deps[dependency].parts.keys().copied().collect::<BTreeSet<_>>();
                judge.assign(dependency, &ours);
                for partition in known.union(&ours) {
                    let part = (dependency, *partition);
                    let was_ours = !account.others.remove(&part);
                    if !ours.contains(partition) {
                        account.others.insert(part);
                    }
                    if !was_ours || !ours.contains(partition) {
                        account.quiet.remove(&part);
                    }
                }
            }
            Call::KeepOnly { partitions } => {
                let ours = set(partitions);
                judge.keep_only(&ours);
                account.standing.retain(|(partition, ..)| ours.contains(partition));
                account.told.retain(|partition, _| ours.contains(partition));
                self.has_lost = true;
            }
            Call::Recover => judge.recover(CHECKED),
            Call::Repair => {
                if !judge.is_due() {
                    return;
                }
                let back = judge.back();
                judge.repaired(&back);
                assert!(
                    !judge.is_pending() && judge.recovered.is_empty(),
                    "a repair leaves nothing to repair"
                );
                account.told.clear();
                for (partition, offset) in back {
                    let next = &mut account.next[partition as usize];
                    assert!(offset < *next, "a repair goes back");
                    *next = offset;
                    account.standing.retain(|(of, at, _)| *of != partition || *at < offset);
                }
            }
            Call::Restart => {
                // What has moved away is known only once the sources are assigned again.
                if !account.others.is_empty() {
                    return;
                }
                let names = numbered(DEPENDENCIES);
                let before = written(judge, &names);
                *judge = resumed(&before, new(self.cap, self.lateness), &names);
                assert_eq!(written(judge, &names), before, "what goes on is what was written");
                account.quiet.clear();
                *begun = [false; 2];
            }
        }
    }

    fn holds(&self) {
        let Machine { judge, account, .. } = self;
        let told: BTreeMap<i32, i64> = judge.told.clone();
        assert_eq!(told, account.told);
        assert_eq!(judge.is_pending(), judge.late_from.is_some() || !told.is_empty());
        assert_eq!(judge.is_due(), judge.is_pending() && !judge.is_down());
        assert!(
            judge.recovered.is_empty() || judge.is_pending() || self.has_lost,
            "an outage waits for its repair"
        );
        let back = judge.back();
        assert!(
            told.iter().all(|(partition, offset)| back.get(partition).is_some_and(|back| back <= offset))
        );
        assert_eq!(judge.marker, account.highest.map(at));
        for ((dependency, partition), beat) in &account.beats {
            assert_eq!(judge.deps[*dependency].parts[partition].beat, Some(at(*beat)));
        }
        // What has not left the window is found for each update that would change it.
        for (partition, offset, time) in &account.standing {
            if judge.dropped.is_some_and(|dropped| dropped >= at(*time)) {
                continue;
            }
            for update in 0..=*time {
                let first = judge.open[partition].first_at_or_after(&at(update));
                assert!(
                    first.is_some_and(|first| first <= *offset),
                    "{partition}/{offset} at {time} is missed for {update}: {first:?}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(400))]
    #[test]
    fn any_sequence_of_calls_keeps_the_invariants(
        calls in vec(call(), 1..80),
        cap in prop_oneof![Just(1_usize), Just(2), Just(1000)],
        lateness in 0..3_u64,
    ) {
        let (judge, account) = (new(cap, lateness), Account::default());
        let mut machine = Machine { judge, account, begun: [false; 2], has_lost: false, cap, lateness };
        for call in calls {
            let down: Vec<bool> = machine.judge.deps.iter().map(|dep| dep.down.is_some()).collect();
            let dropped = machine.judge.dropped;
            let is_check = matches!(call, Call::Recover);
            machine.call(call);
            for (number, dep) in machine.judge.deps.iter().enumerate() {
                if down[number] && dep.down.is_none() {
                    let may = if number == CHECKED { is_check } else { machine.account.has_reached(number) };
                    assert!(may, "{number} is up again without having reached the dependent");
                }
                if number != CHECKED && machine.account.has_reached(number) {
                    assert!(dep.down.is_none(), "{number} has reached the dependent and is down still");
                }
            }
            assert!(machine.judge.dropped >= dropped, "what has left the window comes back");
            machine.holds();
        }
    }
}
