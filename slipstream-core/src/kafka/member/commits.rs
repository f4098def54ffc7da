//! What is to be committed to the group for one topic, and the text beside each offset.
//!
//! ```text
//! flow ──committed(Mark)──▶ latest ──▶ due: of what is this process's, what has moved ──▶ the group
//! ```
//!
//! Invariants: of several marks the newest counts; only partitions that are this process's now are committed;
//! an offset that is not of this assignment is none of this process's to tell; while outputs are withheld the
//! group keeps its offset, which says up to where.
use crate::{position::Positions, source::Mark};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is to be committed of one topic.
#[derive(Debug, Default)]
pub(super) struct Commits {
    latest: Option<Mark>,
    ours: BTreeMap<i32, Held>,
    /// What the group had for partitions when they were let go.
    left: BTreeMap<i32, i64>,
    /// Of the topic's partitions those that have had positions from the start are below this number.
    pub(super) known: Option<i32>,
}

/// A partition that is this process's.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    /// What the flow had for it before: an offset of an older assignment, until it changes.
    pub(super) before: Option<i64>,
    /// Its outputs are withheld before this offset.
    pub(super) withheld_before: i64,
    /// What the group has, where this flow has told it.
    pub(super) committed: Option<i64>,
    /// What the group has, whoever has told it.
    pub(super) group: Option<i64>,
}

impl Commits {
    /// The flow has committed.
    pub(super) fn tell(&mut self, mark: &Mark) {
        self.latest = Some(mark.clone());
    }

    /// A partition is this process's, from this offset on.
    pub(super) fn hold(&mut self, partition: i32, from: i64, held: Held) {
        // What was told of an older assignment is not to be told of this one, unless it goes on there.
        if let Some(mark) = &mut self.latest
            && mark.positions.next(partition) != Some(from)
        {
            mark.positions.remove(partition);
        }
        self.ours.insert(partition, held);
    }

    pub(super) fn let_go(&mut self, partitions: &[i32]) {
        for partition in partitions {
            if let Some(group) = self.ours.remove(partition).and_then(|held| held.group) {
                self.left.insert(*partition, group);
            }
        }
    }

    /// Whether the group has for a partition what it had when this process let it go: then nobody has told it
    /// anything since.
    pub(super) fn is_as_left(&self, partition: i32, group: Option<i64>) -> bool {
        group.is_some() && self.left.get(&partition).copied() == group
    }

    /// What the group does not have yet, and the text beside it.
    pub(super) fn due(&self, instance: &str) -> Option<(Vec<(i32, i64)>, Note)> {
        let mark = self.latest.as_ref()?;
        let due = self.ours.iter().filter_map(|(partition, held)| {
            let next = mark.positions.next(*partition)?;
            let is_due =
                held.before != Some(next) && held.committed != Some(next) && next >= held.withheld_before;
            is_due.then_some((*partition, next))
        });
        let due: Vec<_> = due.collect();
        let note = Note {
            v: VERSION,
            flow: mark.flow.clone(),
            instance: instance.to_owned(),
            store: mark.store.clone(),
            epoch: mark.epoch,
            partitions: self.known,
        };
        (!due.is_empty()).then_some((due, note))
    }

    /// The group has it.
    pub(super) fn done(&mut self, partition: i32, offset: i64) {
        if let Some(held) = self.ours.get_mut(&partition) {
            *held = Held { committed: Some(offset), group: Some(offset), before: None, ..*held };
        }
    }
}

/// The text beside a group's offset: who has committed it, and into which store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    v: u32,
    pub(super) flow: Option<String>,
    pub(super) instance: String,
    /// The store's identity; empty without one.
    pub(super) store: String,
    pub(super) epoch: u64,
    /// How many partitions the topic had when it was first read, or last had positions for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) partitions: Option<i32>,
}

const VERSION: u32 = 1;

impl Note {
    /// Of a flow that keeps no state.
    pub(super) fn without_store(flow: Option<&str>, instance: &str, partitions: Option<i32>) -> Self {
        let (flow, instance) = (flow.map(str::to_owned), instance.to_owned());
        Note { v: VERSION, flow, instance, store: String::new(), epoch: 0, partitions }
    }

    /// Reads what is beside an offset, which may be any program's: `None` where it is no such text.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok().filter(|note: &Note| note.v == VERSION)
    }

    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What it says of a flow that keeps state.
    pub(super) fn mark(&self, positions: Positions) -> Option<Mark> {
        let keeps = !self.store.is_empty();
        keeps.then(|| Mark::new(self.flow.clone(), self.store.clone(), self.epoch, positions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(positions: &[(i32, i64)]) -> Mark {
        Mark::new(Some("sky".into()), "store", 7, positions.iter().copied().collect())
    }

    fn due(commits: &Commits) -> Vec<(i32, i64)> {
        commits.due("one").map(|(due, _)| due).unwrap_or_default()
    }

    #[test]
    fn the_newest_is_due_of_what_is_ours_until_the_group_has_it() {
        let mut commits = Commits::default();
        commits.hold(0, 0, Held::default());
        commits.tell(&mark(&[(0, 3), (1, 5)]));
        commits.tell(&mark(&[(0, 4), (1, 6)]));
        assert_eq!(due(&commits), [(0, 4)]);
        commits.done(0, 4);
        assert!(due(&commits).is_empty());
        commits.tell(&mark(&[(0, 2)]));
        assert_eq!(due(&commits), [(0, 2)], "it may go back, when somebody seeks");
        commits.let_go(&[0]);
        assert!(due(&commits).is_empty());
    }

    #[test]
    fn what_was_published_under_an_older_assignment_is_not_told_again() {
        let mut commits = Commits::default();
        commits.hold(0, 0, Held { before: Some(100), ..Held::default() });
        commits.tell(&mark(&[(0, 100)]));
        assert!(due(&commits).is_empty());
        commits.tell(&mark(&[(0, 501)]));
        assert_eq!(due(&commits), [(0, 501)]);
    }

    #[test]
    fn what_was_told_of_an_older_assignment_is_due_only_where_the_new_one_goes_on_there() {
        let mut commits = Commits::default();
        commits.tell(&mark(&[(0, 51), (1, 51), (2, 51)]));
        // Another has gone on to 100; published was 52, which is not committed yet; the group refused 51.
        commits.hold(0, 100, Held { group: Some(100), ..Held::default() });
        commits.hold(1, 52, Held { group: Some(50), ..Held::default() });
        commits.hold(2, 51, Held { group: Some(50), ..Held::default() });
        assert_eq!(due(&commits), [(2, 51)]);
        commits.tell(&mark(&[(0, 101), (1, 52), (2, 51)]));
        assert_eq!(due(&commits), [(0, 101), (1, 52), (2, 51)]);
    }

    #[test]
    fn a_partition_that_comes_back_is_as_it_was_left_unless_the_group_was_told_of_it() {
        let mut commits = Commits::default();
        commits.hold(0, 0, Held { group: Some(3), ..Held::default() });
        commits.hold(1, 0, Held::default());
        commits.done(0, 5);
        commits.let_go(&[0, 1]);
        assert!(commits.is_as_left(0, Some(5)) && !commits.is_as_left(0, Some(6)));
        assert!(!commits.is_as_left(0, None) && !commits.is_as_left(1, None));
    }

    #[test]
    fn while_outputs_are_withheld_the_group_keeps_its_offset() {
        let mut commits = Commits::default();
        commits.hold(0, 0, Held { withheld_before: 500, ..Held::default() });
        commits.tell(&mark(&[(0, 499)]));
        assert!(due(&commits).is_empty());
        commits.tell(&mark(&[(0, 500)]));
        assert_eq!(due(&commits), [(0, 500)]);
    }

    #[test]
    fn the_text_is_read_back_and_any_other_is_none() {
        let mut commits = Commits { known: Some(4), ..Commits::default() };
        commits.hold(0, 0, Held::default());
        commits.tell(&mark(&[(0, 1)]));
        let (_, note) = commits.due("one").unwrap();
        assert_eq!(
            note.text(),
            r#"{"v":1,"flow":"sky","instance":"one","store":"store","epoch":7,"partitions":4}"#
        );
        assert_eq!(Note::read(note.text().as_bytes()), Some(note.clone()));
        assert_eq!(note.mark(Positions::default()).map(|mark| mark.epoch), Some(7));
        for text in ["", "{}", "checkpoint", "\u{0}", r#"{"v":2,"instance":"","store":"","epoch":0}"#] {
            assert_eq!(Note::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Note::read(b"\xff\xfe"), None);
        assert_eq!(Note::without_store(None, "one", None).mark(Positions::default()), None);
    }
}
