//! Any sequence of calls, against a plain account of what was told and of which answers stand.
use super::{Message, at, cases, draw::Draw, numbered, resumed, secs, set, written};
use crate::{
    Timestamp,
    checkpoint::judge::{Judge, Rules},
};
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Where each partition is read from at first: there are messages before it, to which it can be sought.
const FIRST: i64 = 20;

/// Of a dependency's partition.
#[derive(Clone, Default)]
struct Heard {
    highest: Option<i64>,
    is_quiet: bool,
    is_elsewhere: bool,
}

struct Machine {
    rules: Vec<Rules>,
    cap: usize,
    lateness: Duration,
    judge: Judge<Timestamp>,
    seed: u64,
    heard: Vec<BTreeMap<i32, Heard>>,
    pulses: Vec<i64>,
    /// What is answered, by partition and offset: its marker.
    standing: BTreeMap<i32, BTreeMap<i64, i64>>,
    next: BTreeMap<i32, i64>,
    hands: BTreeMap<usize, Message>,
    /// Updates so late, and answers of `Down`, since the last repair.
    late: Vec<i64>,
    told: Vec<(i32, i64)>,
}

impl Machine {
    fn new(seed: u64, draw: &mut Draw) -> Self {
        let rules: Vec<Rules> = (0..draw.one_of(&[1, 2, 3]))
            .map(|_| Rules { threshold: secs(draw.one_of(&[0, 0, 3])), recovers_by_check: draw.happens(0.2) })
            .collect();
        let (cap, lateness) = (draw.one_of(&[1, 2, 3, 1000]), secs(draw.one_of(&[0, 2])));
        let judge = Judge::new(rules.clone(), cap, lateness);
        let heard = vec![BTreeMap::new(); rules.len()];
        let (pulses, standing, next, hands, late, told) = Default::default();
        Machine { rules, cap, lateness, judge, seed, heard, pulses, standing, next, hands, late, told }
    }

    /// By what was told alone.
    fn has_reached(&self, dependency: usize) -> bool {
        let ours: Vec<&Heard> = self.heard[dependency].values().filter(|heard| !heard.is_elsewhere).collect();
        let Some(highest) = self.pulses.iter().max() else { return true };
        let speaks: Vec<i64> =
            ours.iter().filter(|heard| !heard.is_quiet).filter_map(|heard| heard.highest).collect();
        let is_silent = ours.iter().all(|heard| heard.highest.is_none());
        let has_ended = !ours.is_empty() && ours.iter().all(|heard| heard.is_quiet);
        if !speaks.is_empty() {
            speaks.iter().all(|mark| mark >= highest)
        } else if is_silent && !has_ended {
            self.pulses[0] >= *highest
        } else {
            true
        }
    }

    /// Answers the dependency that a check of its own has found recovered.
    fn step(&mut self, draw: &mut Draw) -> Option<usize> {
        let dependency = draw.below(self.rules.len());
        let partition = draw.below(3) as i32;
        let time = draw.below(12) as i64;
        match draw.weighted(&[
            (0, 4.0),
            (1, 6.0),
            (2, 0.4),
            (3, 0.2),
            (4, 0.5),
            (5, 1.0),
            (6, 0.5),
            (7, 0.5),
            (8, 0.3),
            (9, 0.3),
        ]) {
            0 => self.heartbeat(dependency, partition, time),
            1 => self.hand(draw.below(3)),
            2 => {
                self.judge.fall_quiet(dependency, partition);
                self.heard[dependency].entry(partition).or_default().is_quiet = true;
            }
            3 => {
                self.judge.end(dependency);
                let heard = &mut self.heard[dependency];
                if heard.is_empty() {
                    heard.insert(0, Heard::default());
                }
                heard.values_mut().for_each(|heard| heard.is_quiet = true);
            }
            4 => self.assign(dependency, &set((0..3).filter(|_| draw.happens(0.7)))),
            5 => self.repair(),
            6 => {
                self.judge.recover(dependency);
                return Some(dependency);
            }
            7 => self.restart(),
            // Without an answer: it is tried again.
            8 => self.give_up(draw.below(3)),
            // Somebody seeks back; what is answered there stands until it is answered again.
            _ => {
                self.give_up(partition as usize);
                let next = self.next.entry(partition).or_insert(FIRST);
                *next = draw.below(*next as usize + 1) as i64;
            }
        }
        None
    }

    fn heartbeat(&mut self, dependency: usize, partition: i32, time: i64) {
        let is_down = self.judge.is_down();
        let threshold = self.rules[dependency].threshold.as_secs() as i64;
        let closed = self.judge.dropped;
        // The answers of which none may be missed: those that have not left the window.
        let open = self
            .standing
            .values()
            .flatten()
            .map(|(_, marker)| *marker)
            .filter(|marker| closed < Some(at(*marker)));
        if open.max().is_some_and(|highest| highest >= time && (is_down || highest - time >= threshold)) {
            self.late.push(time);
        }
        self.judge.heartbeat(dependency, partition, &at(time));
        let heard = self.heard[dependency].entry(partition).or_default();
        (heard.highest, heard.is_quiet) = (heard.highest.max(Some(time)), false);
    }

    fn give_up(&mut self, worker: usize) {
        if self.hands.remove(&worker).is_some() {
            self.judge.done(worker);
        }
    }

    /// A message begins, or the one that has is published. It is the same one whenever it comes.
    fn hand(&mut self, worker: usize) {
        let partition = worker as i32;
        let next = self.next.entry(partition).or_insert(FIRST);
        let Some(message) = self.hands.remove(&worker) else {
            let place = (worker as u64) << 32 | *next as u64;
            let time = Draw::new(self.seed ^ place).below(12) as i64;
            self.hands.insert(worker, Message::of(&mut self.judge, worker, *next, time));
            return;
        };
        *next = message.offset + 1;
        let (offset, marker) = (message.offset, message.marker.as_micros() / 1_000_000);
        self.pulses.push(marker);
        self.standing.entry(partition).or_default().insert(offset, marker);
        if message.publish(&mut self.judge) {
            self.told.push((partition, offset));
        }
    }

    fn assign(&mut self, dependency: usize, ours: &BTreeSet<i32>) {
        self.judge.assign(dependency, ours);
        for partition in ours {
            self.heard[dependency].entry(*partition).or_default();
        }
        for (partition, heard) in &mut self.heard[dependency] {
            let is_ours = ours.contains(partition);
            heard.is_quiet &= is_ours && !heard.is_elsewhere;
            heard.is_elsewhere = !is_ours;
        }
    }

    fn repair(&mut self) {
        if !self.hands.is_empty() || !self.judge.is_due() {
            return;
        }
        let (back, closed) = (self.judge.back(), self.judge.dropped);
        self.judge.repaired(&back);
        let goes_back =
            |partition: i32, offset: i64| back.get(&partition).is_some_and(|back| *back <= offset);
        for (partition, offset) in self.told.drain(..) {
            assert!(goes_back(partition, offset), "{offset} of {partition} was answered Down: {back:?}");
        }
        for update in self.late.drain(..) {
            for (partition, standing) in &self.standing {
                for (offset, _) in
                    standing.iter().filter(|(_, marker)| Some(at(**marker)) > closed && **marker >= update)
                {
                    assert!(
                        goes_back(*partition, *offset),
                        "{offset} of {partition} lacks {update}: {back:?}"
                    );
                }
            }
        }
        for (partition, offset) in back {
            self.standing.entry(partition).or_default().retain(|known, _| *known < offset);
            let next = self.next.entry(partition).or_insert(FIRST);
            *next = offset.min(*next);
        }
    }

    fn restart(&mut self) {
        let names = numbered(self.rules.len());
        let before = written(&self.judge, &names);
        self.judge = resumed(&before, Judge::new(self.rules.clone(), self.cap, self.lateness), &names);
        self.hands.clear();
        let is_whole = self.heard.iter().flat_map(BTreeMap::values).all(|heard| !heard.is_elsewhere);
        for heard in self.heard.iter_mut().flat_map(BTreeMap::values_mut) {
            (heard.is_quiet, heard.is_elsewhere) = (false, false);
        }
        if is_whole {
            assert_eq!(written(&self.judge, &names), before, "what is read back is not what was written");
        }
    }

    /// The window answers no later offset than the first that stands.
    fn check_window(&self) {
        for (partition, standing) in &self.standing {
            let open = standing.iter().filter(|(_, marker)| Some(at(**marker)) > self.judge.dropped);
            for (offset, marker) in open {
                let found =
                    self.judge.open.get(partition).and_then(|window| window.first_at_or_after(&at(*marker)));
                assert!(
                    found.is_some_and(|found| found <= *offset),
                    "the first of {partition} at or after {marker} is {offset}, not {found:?}"
                );
            }
        }
    }
}

/// What never falls: the markers of partitions, the dependent's, and the end of what has left the window.
fn marks(judge: &Judge<Timestamp>) -> Vec<Option<Timestamp>> {
    let beats =
        judge.deps.iter().flat_map(|dep| (0..3).map(|at| dep.parts.get(&at).and_then(|part| part.beat)));
    beats.chain([judge.marker, judge.dropped]).collect()
}

fn hold(seed: u64) {
    let mut draw = Draw::new(seed);
    let mut machine = Machine::new(seed, &mut draw);
    for _ in 0..draw.below(120) {
        let down: Vec<bool> = machine.judge.deps.iter().map(|dep| dep.down.is_some()).collect();
        let (before, first) = (marks(&machine.judge), machine.judge.first_pulse);
        let recovered = machine.step(&mut draw);
        for (dependency, was_down) in down.into_iter().enumerate() {
            let is_down = machine.judge.deps[dependency].down.is_some();
            let has_reached = machine.has_reached(dependency);
            let by_check = machine.rules[dependency].recovers_by_check;
            let was_found = recovered == Some(dependency);
            assert!(
                is_down || !was_down || was_found || (has_reached && !by_check),
                "up without having reached"
            );
            assert!(by_check || !is_down || !has_reached, "down although it has reached");
        }
        let after = marks(&machine.judge);
        assert!(
            before.iter().zip(&after).all(|(before, after)| before <= after),
            "{before:?} fell to {after:?}"
        );
        assert!(first.is_none() || first == machine.judge.first_pulse, "the first pulse changes");
        machine.check_window();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, ..cases(1000) })]
    #[test]
    fn any_sequence_of_calls_keeps_what_holds(seed: u64) {
        hold(seed);
    }
}
