//! Partitions come and go: what is done when the group says so, on the poll thread.
//!
//! ```text
//! assigned: plan ─▶ store where they begin ─▶ checkpoints hear of them ─▶ [gates: forward, assign at exact offsets]
//! revoked:  [gates: nothing more is let through; Control::revoke] ─▶ messages in hand are done ─▶ commit
//!           ─▶ the group's offsets ─▶ checkpoints hear of those that stay away ─▶ [gates: unassign]
//! lost:     [gates: the same] ─▶ unassign; the group is told nothing
//! those that stay, where not all are taken away: [gates: sought to where they are] before the others change
//! ```
//!
//! Invariants: no gate is held while a flow or a broker is waited for; a partition's queue is forwarded before it
//! is assigned, and its offset given with the assignment, never sought here; what is not this process's any more is
//! not committed; where all are taken away to be dealt out anew, those that come back were never gone for a checkpoint,
//! nor are those that a flow has when it ends.
use super::{
    Shared,
    commits::Held,
    context::{Consumer, is_incremental},
    plan::Planned,
    slot::{Gate, Phase, Slot},
};
use crate::{BoxError, kafka::TopicError, kafka::native, position::Positions};
use rdkafka::{Offset, TopicPartitionList, consumer::Consumer as _, error::KafkaResult};
use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

/// The partitions of a topic.
type Of = (Arc<Slot>, Vec<i32>);

impl Shared {
    /// The group gives partitions to this process.
    pub(super) fn assigned(&self, consumer: &Consumer, list: &TopicPartitionList) {
        let adds = is_incremental(consumer);
        if self.closes.load(Ordering::Acquire) || self.failure.is() {
            acknowledge(consumer, adds);
            return;
        }
        let topics = self.by_topic(list);
        if let Err(error) = self.assign(consumer, &topics, adds, self.key.group.is_some()) {
            self.fail(error);
            acknowledge(consumer, adds);
        }
    }

    /// Assigns partitions where they go on.
    pub(super) fn assign(
        &self,
        consumer: &Consumer,
        topics: &[Of],
        adds: bool,
        has_group: bool,
    ) -> Result<(), BoxError> {
        let deadline = Instant::now() + self.revokes_within;
        let mut plans = Vec::new();
        for (slot, partitions) in topics {
            let mut planned = Vec::new();
            if !partitions.is_empty() {
                let known;
                (planned, known) = self.plan(consumer, slot, partitions, deadline)?;
                slot.commits().known = Some(known);
            }
            plans.push((slot, planned));
        }
        for (slot, planned) in &plans {
            self.begin(slot, planned)?;
        }
        if has_group && !self.has_store {
            self.commit_starts(&plans, deadline);
        }
        for (slot, planned) in &plans {
            has_now(slot, planned, adds);
        }
        let mut list = TopicPartitionList::new();
        // All of them, so that nothing is drained while the assignment changes; in one order, as everywhere.
        let mut gates: Vec<_> = plans.iter().map(|(slot, _)| slot.gate()).collect();
        if adds && has_group {
            let slots = plans.iter().map(|(slot, _)| &***slot);
            stay(consumer, slots.zip(gates.iter_mut().map(|gate| &mut **gate)));
        }
        for ((slot, planned), gate) in plans.iter().zip(&mut gates) {
            for plan in planned {
                let partition = plan.partition;
                let sought = gate.sought.remove(&partition);
                if sought.is_none() && plan.is_out_of_range {
                    return Err(out_of_range(slot, plan).into());
                }
                let offset = sought.unwrap_or(plan.offset);
                if !gate.queue.as_ref().is_some_and(|queue| queue.forward(&slot.topic, partition)) {
                    let said = format!("its partition {partition} has no queue");
                    return Err(TopicError::Read { topic: slot.topic.to_string(), said }.into());
                }
                list.add_partition_offset(&slot.topic, partition, Offset::Offset(offset))?;
                if let Some(before) = plan.withheld_before {
                    slot.control.withhold(partition, before);
                }
                gate.assign(partition, offset, plan.end);
            }
            if gate.phase == Phase::Waiting && planned.is_empty() {
                gate.phase = Phase::Empty(Instant::now());
            }
            // What was sought of partitions that others got: with them it would be a surprise much later.
            let left: Vec<_> =
                gate.sought.keys().copied().filter(|partition| !gate.is_ours(*partition)).collect();
            if !planned.is_empty() && !left.is_empty() {
                gate.sought.retain(|partition, _| !left.contains(partition));
                tracing::warn!(
                    "partitions {left:?} of topic `{}` were sought and are not this process's: their seeks are dropped",
                    slot.topic
                );
            }
        }
        let done = if adds { consumer.incremental_assign(&list) } else { consumer.assign(&list) };
        drop(gates);
        done?;
        for (slot, planned) in &plans {
            let mut commits = slot.commits();
            for plan in planned {
                commits.hold(
                    plan.partition,
                    plan.offset,
                    Held {
                        before: plan.stored.filter(|_| plan.is_older),
                        withheld_before: plan.withheld_before.unwrap_or(0),
                        committed: plan.group.filter(|_| plan.is_groups_ours),
                        group: plan.group.or(Some(plan.offset).filter(|_| !self.has_store)),
                    },
                );
            }
            let places: Vec<_> = planned.iter().map(|plan| (plan.partition, plan.offset)).collect();
            tracing::info!("topic `{}`: assigned, with where each goes on: {places:?}", slot.topic);
        }
        Ok(())
    }

    /// Stores where partitions begin that the store does not know so.
    fn begin(&self, slot: &Slot, planned: &[Planned]) -> Result<(), BoxError> {
        let unknown = planned.iter().filter(|plan| plan.stored != Some(plan.offset) && !plan.is_out_of_range);
        let starts: Positions = unknown.map(|plan| (plan.partition, plan.offset)).collect();
        match slot.standing() {
            Some(standing) if !starts.is_empty() => standing.begin(starts),
            _ => Ok(()),
        }
    }

    /// Without a store the group alone can know where partitions begin, whatever "the end" means later.
    fn commit_starts(&self, plans: &[(&Arc<Slot>, Vec<Planned>)], deadline: Instant) {
        let mut starts = Vec::new();
        for (slot, planned) in plans {
            let note = self.first_note(slot.commits().known);
            let unknown = planned.iter().filter(|plan| plan.group.is_none() && !plan.is_out_of_range);
            let unknown: Vec<_> = unknown.map(|plan| (plan.partition, plan.offset)).collect();
            if !unknown.is_empty() {
                starts.push((Arc::clone(slot), unknown, note));
            }
        }
        self.commit_now(starts, deadline);
    }

    /// The group takes partitions away, or they are lost already.
    pub(super) fn revoked(&self, consumer: &Consumer, list: &TopicPartitionList) {
        let removes = is_incremental(consumer);
        let (lost, closes) = (consumer.assignment_lost(), self.closes.load(Ordering::Acquire));
        let mut topics = self.by_topic(list);
        topics.retain(|(_, partitions)| !partitions.is_empty());
        let began = Instant::now();
        let deadline = began + self.revokes_within;
        let states: Vec<_> = topics
            .iter()
            .map(|(slot, partitions)| {
                let mut gate = slot.gate();
                gate.withdraw(partitions);
                slot.control.revoke(partitions.iter().copied())
            })
            .collect();
        if lost {
            topics.iter().for_each(|(slot, partitions)| slot.control.lose(partitions.iter().copied()));
        } else if !closes && !self.quits() {
            for ((slot, partitions), state) in topics.iter().zip(states) {
                // A handler may ask where its topic ends, and wait for this thread.
                if !slot.control.settled(state, deadline, || self.answer(consumer)) {
                    slot.control.lose(partitions.iter().copied());
                    tracing::warn!(
                        "a message of topic `{}` in hand is not done {:?} after its partition was called back: it is \
                         dropped, and handled again by who has the partition next",
                        slot.topic,
                        began.elapsed()
                    );
                }
            }
            self.commit_before_letting_go(&topics, deadline);
        }
        for (slot, partitions) in &topics {
            slot.commits().let_go(partitions);
            // Where they go on was published with the repair that sought them, and may be another's by now.
            let repaired = slot.control.drop_seeks_back(partitions);
            let mut gate = slot.gate();
            gate.sought.retain(|partition, offset| !repaired.contains(&(*partition, *offset)));
            drop(gate);
            if closes || self.quits() {
                // The flow ends, and goes on with what it has.
            } else if removes && !lost {
                slot.control.assigned(partitions, false);
            } else {
                slot.gate().gone.extend(partitions);
            }
            let how = if lost { "lost" } else { "let go" };
            tracing::info!("topic `{}`: {how}: {partitions:?}", slot.topic);
        }
        let slots = self.slots();
        let mut gates: Vec<_> = slots.iter().map(|slot| slot.gate()).collect();
        if removes && !closes {
            stay(consumer, slots.iter().map(|slot| &**slot).zip(gates.iter_mut().map(|gate| &mut **gate)));
        }
        let done = if removes { consumer.incremental_unassign(list) } else { consumer.unassign() };
        drop(gates);
        if let Err(error) = done {
            tracing::warn!("partitions could not be let go: {error}");
        }
    }

    /// What is published is committed, by the flow and then to the group.
    fn commit_before_letting_go(&self, topics: &[Of], deadline: Instant) {
        // The shortest that a commit gets where the messages in hand have used up the time.
        const LEAST: Duration = Duration::from_secs(1);
        let deadline = deadline.max(Instant::now() + LEAST);
        // All topics are of one flow, which commits all that is published.
        if let Some(standing) = topics.iter().find_map(|(slot, _)| slot.standing())
            && let Err(error) = standing.commit(deadline.saturating_duration_since(Instant::now()))
        {
            tracing::warn!("what is published could not be committed before partitions are let go: {error}");
        }
        let deadline = deadline.max(Instant::now() + LEAST);
        self.commit_due(deadline);
    }

    /// The topics of a list that are read here.
    fn by_topic(&self, list: &TopicPartitionList) -> Vec<Of> {
        let listed = native::listed(list);
        let slots = self.slots();
        let of = |slot: Arc<Slot>| {
            let partitions = listed.iter().filter(|listed| *listed.topic == *slot.topic);
            let partitions: Vec<_> = partitions.map(|listed| listed.partition).collect();
            (slot, partitions)
        };
        slots.into_iter().map(of).collect()
    }
}

/// Says which partitions the topic has from now on, under no gate, since whoever hears of it has locks of its own.
fn has_now(slot: &Slot, planned: &[Planned], adds: bool) {
    let ours: Vec<i32> = planned.iter().map(|plan| plan.partition).collect();
    let mut gone = std::mem::take(&mut slot.gate().gone);
    gone.retain(|partition| !ours.contains(partition));
    // One that adds nothing says nothing of what is still to come.
    if !adds || !ours.is_empty() {
        slot.control.assigned(&ours, true);
    }
    // After those that came, so that there is no moment without any.
    if !gone.is_empty() {
        slot.control.assigned(&gone.into_iter().collect::<Vec<_>>(), false);
    }
}

fn out_of_range(slot: &Slot, plan: &Planned) -> TopicError {
    TopicError::OutOfRange {
        topic: slot.topic.to_string(),
        partition: plan.partition,
        offset: plan.offset,
        low: plan.range.low,
        high: plan.range.high,
    }
}

/// Has the partitions that stay this process's read on from exactly where they are. librdkafka pauses them for each
/// rebalance, and resumes them where it believes the program to be: its batch call takes the end of a partition for a
/// message too, and so that may be one too far, where a message would be left out or is not there yet.
fn stay<'a>(consumer: &Consumer, topics: impl Iterator<Item = (&'a Slot, &'a mut Gate)>) {
    // Nobody but librdkafka's own thread is asked.
    const WITHIN: Duration = Duration::from_secs(1);
    for (slot, gate) in topics {
        let stay = gate.assigned().filter(|known| !gate.sought.contains_key(&known.partition));
        let stay: Vec<_> = stay.map(|known| (known.partition, known.next)).collect();
        let mut list = TopicPartitionList::new();
        for (partition, next) in &stay {
            if let Err(error) = list.add_partition_offset(&slot.topic, *partition, Offset::Offset(*next)) {
                tracing::warn!("partition {partition} of topic `{}` cannot be listed: {error}", slot.topic);
            }
        }
        if list.count() == 0 {
            continue;
        }
        let sought = consumer.seek_partitions(list, WITHIN);
        let sought = sought.map(|list| native::listed(&list)).unwrap_or_default();
        let is_there = |partition: i32| {
            sought.iter().any(|sought| sought.partition == partition && sought.error.is_none())
        };
        // The poll thread tries again.
        slot.seek(gate, stay.into_iter().filter(|(partition, _)| !is_there(*partition)));
    }
}

/// The group waits for an answer, also where nothing is to be read.
fn acknowledge(consumer: &Consumer, adds: bool) {
    let none = TopicPartitionList::new();
    let done: KafkaResult<()> = if adds { consumer.incremental_assign(&none) } else { consumer.unassign() };
    if let Err(error) = done {
        tracing::warn!("an assignment could not be refused: {error}");
    }
}
