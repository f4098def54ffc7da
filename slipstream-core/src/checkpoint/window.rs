//! The open window of one partition of a dependent: the messages whose answers may still change.
//!
//! Invariants: markers and offsets both rise; a message whose marker does not exceed that of one before it is covered
//! by that one, also where a source is sought back to messages from before the window; past the cap the two oldest are merged into the earlier offset and the later marker, so that a replay
//! from here may begin too early, never too late.
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Markers and offsets, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Window<M>(VecDeque<(M, i64)>);

impl<M> Default for Window<M> {
    fn default() -> Self {
        Window(VecDeque::new())
    }
}

impl<M: Ord + Clone> Window<M> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A message was published.
    pub(super) fn add(&mut self, marker: &M, offset: i64, cap: usize) {
        let mut at = self.0.partition_point(|(known, _)| known < marker);
        let is_covered = self.0.get(at).is_some_and(|(_, known)| *known <= offset);
        if !is_covered {
            // It covers what has a later offset, up to its marker.
            if self.0.get(at).is_some_and(|(known, _)| known == marker) {
                self.0.remove(at);
            }
            while at > 0 && self.0.get(at - 1).is_some_and(|(_, known)| *known >= offset) {
                at -= 1;
                self.0.remove(at);
            }
            self.0.insert(at, (marker.clone(), offset));
        }
        if self.0.len() > cap.max(1)
            && let Some((_, oldest)) = self.0.pop_front()
            && let Some((_, offset)) = self.0.front_mut()
        {
            *offset = oldest;
        }
    }

    /// The offset of the first message whose marker is at or after this one.
    pub(super) fn first_at_or_after(&self, marker: &M) -> Option<i64> {
        let at = self.0.partition_point(|(known, _)| known < marker);
        self.0.get(at).map(|(_, offset)| *offset)
    }

    pub(super) fn highest(&self) -> Option<&M> {
        self.0.back().map(|(marker, _)| marker)
    }

    /// Drops what is below `edge`. Answers the highest marker dropped.
    pub(super) fn drop_below(&mut self, edge: &M) -> Option<M> {
        let mut dropped = None;
        while self.0.front().is_some_and(|(marker, _)| marker < edge) {
            dropped = self.0.pop_front().map(|(marker, _)| marker);
        }
        dropped
    }

    /// Drops what is handled again.
    pub(super) fn forget_from(&mut self, offset: i64) {
        while self.0.back().is_some_and(|(_, known)| *known >= offset) {
            self.0.pop_back();
        }
    }
}
