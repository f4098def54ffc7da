//! Where the partitions go on that are about to be assigned: what store, group and log say, put before the
//! decision.
//!
//! ```text
//! Standing: stored, judged ─┐
//! group: offsets, notes ────┼─▶ Facts ─▶ decide ─▶ Planned: offset, withheld, what is to be stored
//! log: low, high, times ────┘
//! ```
//!
//! Invariants: runs on the poll thread, under no gate; what cannot be had yet is asked for again within a bound;
//! nothing is stored here.
use super::{
    DEFAULT_INSTANCE, Shared,
    broker::{self, Range},
    commits::Note,
    context::Consumer,
    slot::Slot,
    trouble::{self, Kind},
};
use crate::{
    BoxError,
    kafka::{
        Offset, TopicError,
        assignment::{Decision, Facts, Keeps, Place, Writer, decide},
    },
    position::Positions,
    source::Standing,
};
use rdkafka::error::KafkaError;
use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

/// Where one partition goes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) range: Range,
    /// Where the source ends in it, if it does.
    pub(super) end: Option<i64>,
    /// What the flow had for it before.
    pub(super) stored: Option<i64>,
    /// What the group has.
    pub(super) group: Option<i64>,
    /// This instance wrote that, into this store.
    pub(super) is_groups_ours: bool,
    /// What the flow had is of an older assignment, which the group has been told of since.
    pub(super) is_older: bool,
    pub(super) withheld_before: Option<i64>,
    /// It is not one to begin at: it is sought, or told as an error.
    pub(super) is_out_of_range: bool,
}

/// What the group has: offsets, and what is beside them.
type Group = BTreeMap<i32, (i64, Vec<u8>)>;

impl Shared {
    /// Where these partitions of a topic go on, and the number of partitions that are known from before.
    pub(super) fn plan(
        &self,
        consumer: &Consumer,
        slot: &Slot,
        partitions: &[i32],
        deadline: Instant,
    ) -> Result<(Vec<Planned>, i32), BoxError> {
        let topic = &*slot.topic;
        let Some(standing) = slot.standing() else {
            let said = "it was assigned before it was opened".to_owned();
            return Err(TopicError::Read { topic: topic.to_owned(), said }.into());
        };
        let stored = standing.known()?;
        let count = self.partitions(topic).max(partitions.iter().max().map_or(0, |last| last + 1));
        let mut group = Group::new();
        if self.key.group.is_some() {
            group =
                self.asked(topic, deadline, |within| broker::committed(consumer, topic, 0..count, within))?;
        }
        let ranges =
            self.asked(topic, deadline, |within| broker::ranges(consumer, topic, partitions, within))?;
        let known = known_partitions(&group, &stored, slot.commits().known, count);
        let notes = Notes::read(&group, partitions);
        let keeps = match (self.has_store, standing.is_in_memory()) {
            (false, _) => Keeps::Nothing,
            (true, true) => Keeps::InMemory,
            (true, false) => Keeps::OnDisk,
        };
        let mut decided = Vec::new();
        let mut judged: Vec<(Note, Writer)> = Vec::new();
        for partition in partitions.iter().copied() {
            let writer = match notes.0.get(&partition) {
                Some(note) if keeps != Keeps::Nothing => {
                    self.writer(note, &notes, &group, &*standing, &mut judged)?
                }
                _ => Writer::Nobody,
            };
            let facts = Facts {
                stored: stored.next(partition),
                group: group.get(&partition).map(|(offset, _)| *offset),
                writer,
                keeps,
                is_new: partition >= known,
                is_as_left: slot.commits().is_as_left(partition, group.get(&partition).map(|(at, _)| *at)),
            };
            decided.push((partition, facts, decide(facts)));
        }
        let begins = decided.iter().filter(|(.., decision)| decision.place == Place::Start);
        let begins = begins.map(|(partition, ..)| (*partition, slot.places.start_of(*partition)));
        let begins: Vec<_> = begins.collect();
        let ends: Vec<_> = slot
            .places
            .until
            .map_or_else(Vec::new, |until| partitions.iter().map(|partition| (*partition, until)).collect());
        let begins =
            self.asked(topic, deadline, |within| broker::resolve(consumer, topic, &begins, &ranges, within))?;
        let ends =
            self.asked(topic, deadline, |within| broker::resolve(consumer, topic, &ends, &ranges, within))?;

        let planned = decided.into_iter().filter_map(|(partition, facts, decision)| {
            let range = *ranges.get(&partition)?;
            let offset = match decision.place {
                Place::Stored(offset) | Place::Group(offset) => offset,
                Place::Beginning => range.low,
                Place::Start => *begins.get(&partition)?,
            };
            said(topic, partition, &facts, &decision, offset);
            let is_ours = matches!(facts.writer, Writer::Us(crate::source::Judged::Same));
            Some(Planned {
                partition,
                offset,
                range,
                end: ends.get(&partition).copied(),
                stored: facts.stored,
                group: facts.group,
                is_groups_ours: is_ours,
                is_older: facts.stored != Some(offset),
                withheld_before: decision.withheld_before,
                is_out_of_range: !(range.low..=range.high).contains(&offset),
            })
        });
        let planned: Vec<_> = planned.collect();
        if planned.len() < partitions.len() {
            let said = "the brokers do not say where all of its partitions begin and end".to_owned();
            return Err(TopicError::Read { topic: topic.to_owned(), said }.into());
        }
        Ok((planned, known))
    }

    /// Who wrote the note beside an offset. Each is judged once: it may say a line in the log.
    fn writer(
        &self,
        note: &Note,
        notes: &Notes,
        group: &Group,
        standing: &dyn Standing,
        judged: &mut Vec<(Note, Writer)>,
    ) -> Result<Writer, BoxError> {
        if let Some((_, writer)) = judged.iter().find(|(known, _)| known == note) {
            return Ok(*writer);
        }
        let with_it = notes.0.iter().filter(|(_, other)| *other == note);
        let positions = with_it.filter_map(|(partition, _)| Some((*partition, group.get(partition)?.0)));
        let positions: Positions = positions.collect();
        let writer = match note.mark(positions) {
            None => Writer::Nobody,
            Some(_) if note.instance != self.instance() => Writer::Another,
            Some(mark) => Writer::Us(standing.judge(&mark)?),
        };
        judged.push((note.clone(), writer));
        Ok(writer)
    }

    pub(super) fn instance(&self) -> &str {
        self.instance.as_deref().unwrap_or(DEFAULT_INSTANCE)
    }

    /// Asks the brokers until they answer, or until the deadline.
    pub(super) fn asked<T>(
        &self,
        topic: &str,
        deadline: Instant,
        ask: impl Fn(Duration) -> Result<T, KafkaError>,
    ) -> Result<T, TopicError> {
        const AGAIN: Duration = Duration::from_millis(100);
        const LONGEST: Duration = Duration::from_secs(5);
        let began = Instant::now();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let error = match ask(left.min(LONGEST)) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let code = error.rdkafka_error_code();
            let kind = code.map_or(Kind::Passing, trouble::kind);
            let is_just_made = kind == Kind::Unknown && began.elapsed() < broker::MADE_WITHIN;
            if kind != Kind::Passing && !is_just_made {
                return Err(self.error(topic, kind, error.to_string()));
            }
            if left.is_zero() || self.quits() {
                self.heard.keep(&error.to_string());
                return Err(self.unreachable(topic, began.elapsed()));
            }
            thread::sleep(AGAIN);
        }
    }
}

/// The notes beside the offsets of these partitions.
struct Notes(BTreeMap<i32, Note>);

impl Notes {
    fn read(group: &Group, partitions: &[i32]) -> Self {
        let notes = partitions.iter().filter_map(|partition| {
            let (_, metadata) = group.get(partition)?;
            Some((*partition, Note::read(metadata)?))
        });
        Notes(notes.collect())
    }
}

/// How many partitions of the topic are known from before, of `count`: those from that number on are new, and
/// begin at their beginning. Those of a topic that nobody has read are all known.
fn known_partitions(group: &Group, stored: &Positions, told: Option<i32>, count: i32) -> i32 {
    if (0..count).all(|partition| group.contains_key(&partition)) {
        return count;
    }
    let noted = group.values().filter_map(|(_, metadata)| Note::read(metadata)?.partitions).max();
    let of_group = noted.or_else(|| group.keys().max().map(|last| last + 1));
    let of_store = stored.iter().map(|(partition, _)| partition + 1).max();
    told.or(of_group).or(of_store).unwrap_or(count)
}

/// Says what whoever runs the flow may want to know.
fn said(topic: &str, partition: i32, facts: &Facts, decision: &Decision, offset: i64) {
    if decision.lacks_state {
        if facts.keeps == Keeps::InMemory || offset > 0 {
            tracing::warn!(
                "partition {partition} of topic `{topic}` comes from another instance and goes on at {offset}: the \
                 state that its messages before made there is not in this store"
            );
        }
    } else if let Some(before) = decision.withheld_before {
        tracing::info!(
            "partition {partition} of topic `{topic}` was with another instance: its state is rebuilt from {offset}, \
             and outputs to topics are kept back up to {before}, since they were sent there"
        );
    }
    tracing::debug!("partition {partition} of topic `{topic}` goes on at {offset}: {decision:?}");
}

impl super::slot::Places {
    /// Where a partition begins that nobody knows.
    pub(super) fn start_of(&self, partition: i32) -> Offset {
        self.starts.get(&partition).copied().unwrap_or(self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(offsets: &[(i32, Option<i32>)]) -> Group {
        let beside = |partitions: &Option<i32>| {
            partitions.map_or_else(Vec::new, |count| {
                Note::without_store(None, "one", Some(count)).text().into_bytes()
            })
        };
        offsets.iter().map(|(partition, noted)| (*partition, (0, beside(noted)))).collect()
    }

    #[test]
    fn partitions_are_new_from_the_number_on_that_was_there_when_the_topic_was_first_read() {
        let none = Positions::default();
        assert_eq!(known_partitions(&group(&[]), &none, None, 4), 4, "nobody has read it");
        // Another instance has begun with its half a moment ago.
        assert_eq!(known_partitions(&group(&[(0, Some(4)), (1, Some(4))]), &none, None, 4), 4);
        // The topic has grown from 2 to 4.
        assert_eq!(known_partitions(&group(&[(0, Some(2)), (1, Some(2))]), &none, None, 4), 2);
        assert_eq!(known_partitions(&group(&[(0, None), (1, None)]), &none, None, 4), 2);
        assert_eq!(known_partitions(&group(&[]), &Positions::from_iter([(0, 7), (1, 3)]), None, 4), 2);
        assert_eq!(known_partitions(&group(&[]), &none, Some(2), 4), 2);
        // All of them have offsets by now.
        let all = group(&[(0, Some(2)), (1, Some(2)), (2, Some(2)), (3, Some(2))]);
        assert_eq!(known_partitions(&all, &none, Some(2), 4), 4);
    }
}
