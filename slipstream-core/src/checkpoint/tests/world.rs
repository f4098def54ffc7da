//! What a store has, and what dies with the process, around a judgement: a crash goes back to the last commit, and the
//! judgement and the handlers' progress come back from their bytes.
use super::{
    Beat, Judge, Message, Rules, at, numbered, resumed,
    scenario::{Scenario, Source, Table, Update, as_of},
    secs, written,
};
use crate::{
    Timestamp,
    watch::{Handling, Progress},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// A partition of the dependent, and an offset in it.
pub(super) type Place = (usize, i64);
/// How late an update came, and whether anything was down by then.
type Came = (i64, bool);

/// The rows of the store.
#[derive(Clone, Default)]
pub(super) struct Rows {
    read: BTreeMap<Source, usize>,
    tables: Vec<Table>,
    /// Where each partition of the dependent goes on.
    pub(super) positions: Vec<i64>,
    /// The same, of the handler that checks alone.
    standing: Vec<i64>,
    published: BTreeSet<Place>,
    pub(super) deferred: BTreeSet<Place>,
    pub(super) counts: HashMap<Place, u32>,
    /// Each message by the handler that checks, with replays left out.
    pub(super) sums: HashMap<Place, u32>,
    /// By the number of the update.
    pub(super) came: HashMap<u32, Came>,
}

pub(super) struct Hand {
    message: Message,
    reads_first: bool,
    /// Reading, and checking.
    done: usize,
    answer: Vec<Option<(i64, u32)>>,
    handling: [Handling; 2],
    /// The updates that have come since it began.
    since: Vec<(Update, bool)>,
}

pub(super) struct World<'a> {
    scenario: &'a Scenario,
    names: Vec<Arc<str>>,
    cap: usize,
    defers: bool,
    pub(super) rows: Rows,
    pub(super) judge: Judge<Timestamp>,
    progress: Progress,
    pub(super) ended: BTreeSet<Source>,
    pub(super) hands: BTreeMap<usize, Hand>,
    saved: (Rows, Vec<u8>, Vec<u8>),
    /// What has left the process: the last one counts.
    pub(super) answers: HashMap<Place, Vec<Option<(i64, u32)>>>,
    pub(super) repairs: usize,
}

/// The one that checks, and one that only counts.
fn handlers() -> [Arc<str>; 2] {
    ["joins".into(), "counts".into()]
}

impl<'a> World<'a> {
    pub(super) fn new(scenario: &'a Scenario, cap: usize, defers: bool) -> Self {
        let (dependents, names) = (scenario.inputs.len(), numbered(scenario.partitions.len()));
        let rows = Rows {
            read: scenario.updates.keys().map(|source| (*source, 0)).collect(),
            tables: vec![Table::new(); names.len()],
            positions: vec![0; dependents],
            standing: vec![0; dependents],
            ..Rows::default()
        };
        let (judge, progress) = (new_judge(scenario, cap), Progress::default());
        let saved = (rows.clone(), written(&judge, &names), progress.write(&handlers()));
        let (ended, hands, answers) = Default::default();
        World {
            scenario,
            names,
            cap,
            defers,
            rows,
            judge,
            progress,
            ended,
            hands,
            saved,
            answers,
            repairs: 0,
        }
    }

    /// An epoch closes: what is in hand is not in it.
    pub(super) fn save(&mut self) {
        let record = written(&self.judge, &self.names);
        self.saved = (self.rows.clone(), record, self.progress.write(&handlers()));
    }

    pub(super) fn crash(&mut self) {
        let (rows, record, progress) = self.saved.clone();
        self.rows = rows;
        self.judge = resumed(&record, new_judge(self.scenario, self.cap), &self.names);
        self.progress = Progress::read(&progress, &handlers()).expect("it was written here");
        // That they have ended is found out again.
        self.ended.clear();
        self.hands.clear();
        assign(self.scenario, &mut self.judge);
    }

    pub(super) fn has_next(&self, partition: usize) -> bool {
        self.rows.positions[partition] < self.scenario.inputs[partition].len() as i64
    }

    pub(super) fn is_quiet(&self, source: Source) -> bool {
        let part = self.judge.deps[source.0].parts.get(&source.1);
        part.is_some_and(|part| part.is_quiet)
    }

    /// The next update of a source, or its end.
    pub(super) fn update(&mut self, source: Source) {
        let (dependency, partition) = source;
        let read = self.rows.read.get_mut(&source).expect("each source has a position");
        let Some(update) = self.scenario.updates[&source].get(*read) else {
            self.ended.insert(source);
            match self.scenario.partitions[dependency] {
                1 => self.judge.end(dependency),
                _ => drop(self.judge.fall_quiet(dependency, partition)),
            }
            return;
        };
        *read += 1;
        self.rows.tables[dependency].entry(update.key).or_default().insert(update.time, update.number);
        // By what stands answered, and not by what the judgement remembers of it.
        let inputs = self.scenario.inputs.iter().zip(&self.rows.standing);
        let highest = inputs.flat_map(|(inputs, end)| &inputs[..*end as usize]).map(|input| input.time).max();
        let is_down = self.judge.is_down();
        self.rows.came.remove(&update.number);
        if let Some(late) = highest.map(|highest| highest - update.time).filter(|late| *late >= 0) {
            self.rows.came.insert(update.number, (late, is_down));
        }
        self.hands.values_mut().for_each(|hand| hand.since.push((*update, is_down)));
        let beat = self.judge.heartbeat(dependency, partition, &at(update.time));
        assert_ne!(beat, Beat::TooLate, "an update within the allowed lateness came too late");
    }

    pub(super) fn begin(&mut self, partition: usize, reads_first: bool) {
        let offset = self.rows.positions[partition];
        let time = self.scenario.inputs[partition][offset as usize].time;
        let mut handling = [Handling::First; 2];
        self.progress.handling(partition as i32, offset, &mut handling);
        let message = Message::of(&mut self.judge, partition, offset, time);
        let (answer, since) = (Vec::new(), Vec::new());
        self.hands.insert(partition, Hand { message, reads_first, done: 0, answer, handling, since });
    }

    /// The message in hand reads, or checks, or is published.
    pub(super) fn step(&mut self, partition: usize) {
        let hand = self.hands.get_mut(&partition).expect("a step is of a message in hand");
        hand.done += 1;
        if hand.done > 2 {
            return self.publish(partition);
        }
        if (hand.done == 1) == hand.reads_first {
            let input = self.scenario.inputs[partition][hand.message.offset as usize];
            let tables = self.rows.tables.iter();
            hand.answer = tables.map(|table| as_of(table, input.key, input.time)).collect();
        } else {
            hand.message.check(&self.judge);
        }
    }

    fn publish(&mut self, partition: usize) {
        let hand = self.hands.remove(&partition).expect("it is in hand");
        let Hand { message, answer, handling, since, .. } = hand;
        let offset = message.offset;
        let (place, time) = ((partition, offset), self.scenario.inputs[partition][offset as usize].time);
        let mut deferred = Vec::new();
        if handling[0] == Handling::Done {
            self.judge.done(partition);
        } else {
            for (update, is_down) in since.into_iter().filter(|(update, _)| update.time <= time) {
                // What counts is how late it was when it was late first: what it was late for by then may have left the
                // window since.
                self.rows.came.entry(update.number).or_insert((time - update.time, is_down));
            }
            let is_down = message.publish(&mut self.judge);
            self.rows.standing[partition] = offset + 1;
            if is_down && self.defers {
                self.rows.deferred.insert(place);
                deferred.push(0);
            } else {
                self.answers.insert(place, answer);
                self.rows.published.insert(place);
                if handling[0] == Handling::First {
                    *self.rows.sums.entry(place).or_default() += 1;
                }
            }
        }
        if handling[1] != Handling::Done {
            *self.rows.counts.entry(place).or_default() += 1;
        }
        self.rows.positions[partition] = offset + 1;
        self.progress.published(partition as i32, offset, &handling, &deferred);
    }

    pub(super) fn repair(&mut self) {
        self.repairs += 1;
        let back = self.judge.back();
        for (partition, offset) in &back {
            let at = *partition as usize;
            let position = &mut self.rows.positions[at];
            *position = self.progress.go_back(*partition, *position, *offset, &[true, false]);
            let standing = &mut self.rows.standing[at];
            *standing = (*standing).min(*offset);
        }
        self.judge.repaired(&back);
    }
}

fn new_judge(scenario: &Scenario, cap: usize) -> Judge<Timestamp> {
    let rules = scenario.thresholds.iter();
    let rules = rules.map(|threshold| Rules { threshold: secs(*threshold), recovers_by_check: false });
    let mut judge = Judge::new(rules, cap, secs(scenario.lateness));
    assign(scenario, &mut judge);
    judge
}

fn assign(scenario: &Scenario, judge: &mut Judge<Timestamp>) {
    for (dependency, partitions) in scenario.partitions.iter().enumerate() {
        // A source without partitions is not assigned any.
        if *partitions > 1 {
            judge.assign(dependency, &(0..*partitions as i32).collect());
        }
    }
}
