//! The group is told where it goes on: what is due is sent, and the answer taken when it comes.
//!
//! ```text
//! Commits of each topic ──due──▶ sent, one list at a time ──▶ answer: the group has it, or it is due again
//! ```
//!
//! Invariants: one list is on its way at a time; a turn of the poll thread waits for no answer, but before partitions
//! are let go and at the end; an answer that says that nothing is taken at the moment ends nothing.
use super::{
    Shared,
    commits::Note,
    context::Context,
    slot::Slot,
    trouble::{self, Kind},
};
use crate::kafka::native::Replies;
use rdkafka::{Offset, TopicPartitionList, error::RDKafkaErrorCode};
use std::{
    sync::{Arc, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Between two tries of a commit that has failed.
const COMMIT_AGAIN: Duration = Duration::from_secs(1);
/// The commit that is on its way.
#[derive(Default)]
pub(super) struct Committing {
    pub(super) replies: Option<Replies<Context>>,
    on_its_way: Option<Vec<Sent>>,
    not_before: Option<Instant>,
}

/// Offsets of a topic, and the text beside them.
type Due = (Arc<Slot>, Vec<(i32, i64)>, Note);
/// Offsets of a topic that were sent.
type Sent = (Arc<Slot>, Vec<(i32, i64)>);

impl Shared {
    pub(super) fn committing(&self) -> MutexGuard<'_, Committing> {
        self.committing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the group does not have yet.
    pub(super) fn due(&self) -> Vec<Due> {
        let slots = self.slots();
        let due = slots.into_iter().filter_map(|slot| {
            let (due, note) = slot.commits().due(self.instance())?;
            Some((slot, due, note))
        });
        due.collect()
    }

    /// Sends what is due, unless something is on its way, and takes the answer to that.
    pub(super) fn commit_on_the_way(&self) {
        if self.key.group.is_none() {
            return;
        }
        self.take_answer(Duration::ZERO);
        let not_before = self.committing().not_before;
        if self.committing().on_its_way.is_none() && not_before.is_none_or(|then| Instant::now() >= then) {
            let due = self.due();
            self.send(due);
        }
    }

    /// Commits what is due, and waits for the answer until the deadline.
    pub(super) fn commit_due(&self, deadline: Instant) {
        if self.key.group.is_some() {
            self.take_answer(deadline.saturating_duration_since(Instant::now()));
            let due = self.due();
            self.commit_now(due, deadline);
        }
    }

    /// Commits this, and waits for the answer until the deadline.
    pub(super) fn commit_now(&self, due: Vec<Due>, deadline: Instant) {
        self.take_answer(deadline.saturating_duration_since(Instant::now()));
        if self.committing().on_its_way.is_some() {
            tracing::warn!("the group does not answer to a commit: what it was to be told next is not sent");
            return;
        }
        self.send(due);
        self.take_answer(deadline.saturating_duration_since(Instant::now()));
    }

    fn send(&self, due: Vec<Due>) {
        if due.is_empty() {
            return;
        }
        let mut list = TopicPartitionList::new();
        let mut sent = Vec::new();
        for (slot, offsets, note) in due {
            let text = note.text();
            for (partition, offset) in &offsets {
                let mut element = list.add_partition(&slot.topic, *partition);
                if element.set_offset(Offset::Offset(*offset)).is_ok() {
                    element.set_metadata(&text);
                }
            }
            sent.push((slot, offsets));
        }
        let mut committing = self.committing();
        let Some(replies) = &committing.replies else { return };
        match replies.commit(&list) {
            Ok(()) => committing.on_its_way = Some(sent),
            Err(code) => {
                drop(committing);
                self.not_committed(code);
            }
        }
    }

    /// Takes the answer to what is on its way, if there is one within this time.
    fn take_answer(&self, within: Duration) {
        let mut committing = self.committing();
        if committing.on_its_way.is_none() {
            return;
        }
        let Some(answer) = committing.replies.as_ref().and_then(|replies| replies.wait(within)) else {
            return;
        };
        let sent = committing.on_its_way.take().unwrap_or_default();
        committing.not_before = None;
        drop(committing);
        match answer {
            Ok(()) => {
                for (slot, offsets) in sent {
                    let mut commits = slot.commits();
                    offsets.into_iter().for_each(|(partition, offset)| commits.done(partition, offset));
                }
            }
            Err(code) => self.not_committed(code),
        }
    }

    /// The store has it, and so this is not lost: the next commit says it too.
    fn not_committed(&self, code: RDKafkaErrorCode) {
        self.committing().not_before = Some(Instant::now() + COMMIT_AGAIN);
        let topic = self.slots().first().map(|slot| slot.topic.to_string()).unwrap_or_default();
        match trouble::kind(code) {
            kind @ (Kind::Login | Kind::Refused | Kind::Ends) => {
                let group = self.key.group.as_deref().unwrap_or_default();
                let said = format!("group `{group}` does not take its offsets: {code}");
                self.fail(self.error(&topic, kind, said).into());
            }
            Kind::Passing | Kind::Unknown => {
                if let Some(kept_back) = self.limit.admits() {
                    tracing::warn!(
                        "the group does not take offsets at the moment: {code} ({kept_back} lines kept back before); the \
                         next commit tells it again"
                    );
                }
            }
        }
    }
}
