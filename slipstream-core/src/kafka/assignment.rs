//! Where a partition goes on that is assigned to this process: a pure decision on what store and group know.
//!
//! | the group's offset was written by | goes on |
//! |---|---|
//! | nobody that keeps state, or there is no store here | store's position, else the group's, else the start (no store: the group's first) |
//! | this instance, this store | store's position, else the group's, else the start |
//! | this instance, another store: rebuild | store's position, else the start |
//! | this instance, another store: accept | the group's |
//! | another instance, store on disk | store's position, else the earliest message; outputs withheld up to the group's |
//! | another instance, store in memory | the group's, with a line in the log |
//!
//! Without a store, what this flow has published counts before the group's where the group was told nothing since: it
//! refuses to be told while it is rebalancing.
//! A partition that is new to a topic that is known begins at its beginning, whatever the start says.
//!
//! Invariant: nothing here asks anybody; what has to be asked for lazily (where the start is) is named.
use crate::source::Judged;

/// What is known of a partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// Where the store, or without one the flow that runs, goes on.
    pub(super) stored: Option<i64>,
    /// Where the group goes on.
    pub(super) group: Option<i64>,
    pub(super) writer: Writer,
    pub(super) keeps: Keeps,
    /// The topic is known, and had not this partition then.
    pub(super) is_new: bool,
    /// This process had the partition, and the group was told nothing of it since.
    pub(super) is_as_left: bool,
}

/// Who wrote the group's offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// No flow that keeps state.
    Nobody,
    /// This instance of this flow; the store is to be treated like this.
    Us(Judged),
    /// Another instance.
    Another,
}

/// Where a flow keeps its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeps {
    Nothing,
    InMemory,
    OnDisk,
}

/// Where a partition goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) place: Place,
    /// The outputs of the messages before this offset were sent by another.
    pub(super) withheld_before: Option<i64>,
    /// It comes from another instance, and the state that its messages made there is not here.
    pub(super) lacks_state: bool,
}

/// A place in a partition, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Stored(i64),
    Group(i64),
    /// The earliest message there is.
    Beginning,
    /// Where the topic says.
    Start,
}

/// Decides.
pub(super) fn decide(facts: Facts) -> Decision {
    let stored = facts.stored.map(Place::Stored);
    let group = facts.group.map(Place::Group);
    let start = if facts.is_new { Place::Beginning } else { Place::Start };
    let at = |place| Decision { place, withheld_before: None, lacks_state: false };
    match (facts.keeps, facts.writer) {
        (Keeps::Nothing, _) if facts.is_as_left => at(stored.or(group).unwrap_or(start)),
        (Keeps::Nothing, _) => at(group.or(stored).unwrap_or(start)),
        (_, Writer::Nobody | Writer::Us(Judged::Same)) => at(stored.or(group).unwrap_or(start)),
        (_, Writer::Us(Judged::Rebuild)) => at(stored.unwrap_or(start)),
        (_, Writer::Us(Judged::Accept)) => at(group.or(stored).unwrap_or(start)),
        (Keeps::InMemory, Writer::Another) => {
            Decision { lacks_state: true, ..at(group.or(stored).unwrap_or(start)) }
        }
        (Keeps::OnDisk, Writer::Another) => Decision {
            withheld_before: facts.group.filter(|group| facts.stored.is_none_or(|stored| stored < *group)),
            lacks_state: stored.is_none(),
            ..at(stored.unwrap_or(Place::Beginning))
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Judged::{Accept, Rebuild, Same};
    use Keeps::{InMemory, Nothing, OnDisk};
    use Place::{Beginning, Group, Start, Stored};
    use Writer::{Another, Nobody, Us};

    /// What is stored and what the group has, and then what is decided for it: the place, withheld up to, lacking
    /// state.
    type Row = (Option<i64>, Option<i64>, Place, Option<i64>, bool);

    fn check(keeps: Keeps, writer: Writer, is_new: bool, rows: &[Row]) {
        for (stored, group, place, withheld_before, lacks_state) in rows.iter().copied() {
            let decided = decide(Facts { stored, group, writer, keeps, is_new, is_as_left: false });
            let expected = Decision { place, withheld_before, lacks_state };
            assert_eq!(decided, expected, "{keeps:?} {writer:?} {stored:?} {group:?} new: {is_new}");
        }
    }

    #[test]
    fn without_a_store_the_groups_offset_counts_whoever_wrote_it() {
        for writer in [Nobody, Another, Us(Same), Us(Rebuild), Us(Accept)] {
            check(
                Nothing,
                writer,
                false,
                &[
                    (None, None, Start, None, false),
                    (None, Some(7), Group(7), None, false),
                    (Some(5), Some(7), Group(7), None, false),
                    (Some(5), None, Stored(5), None, false),
                ],
            );
        }
    }

    #[test]
    fn without_a_store_the_flows_position_counts_where_the_group_was_told_nothing_since() {
        let (keeps, writer, is_new) = (Nothing, Nobody, false);
        for (stored, place) in [(Some(9), Stored(9)), (None, Group(7))] {
            let facts = Facts { stored, group: Some(7), writer, keeps, is_new, is_as_left: true };
            assert_eq!(decide(facts).place, place);
        }
    }

    #[test]
    fn the_stores_position_wins_where_it_is_the_store_that_was_told() {
        for (keeps, writer) in
            [(OnDisk, Nobody), (InMemory, Nobody), (OnDisk, Us(Same)), (InMemory, Us(Same))]
        {
            check(
                keeps,
                writer,
                false,
                &[
                    (Some(5), Some(7), Stored(5), None, false),
                    (Some(5), None, Stored(5), None, false),
                    (None, Some(7), Group(7), None, false),
                    (None, None, Start, None, false),
                ],
            );
        }
    }

    #[test]
    fn a_store_that_was_lost_is_rebuilt_or_accepted_as_it_was_told() {
        let rows = [(Some(5), Some(7), Stored(5), None, false), (None, Some(7), Start, None, false)];
        check(OnDisk, Us(Rebuild), false, &rows);
        let rows = [(Some(5), Some(7), Group(7), None, false), (None, Some(7), Group(7), None, false)];
        check(OnDisk, Us(Accept), false, &rows);
    }

    #[test]
    fn a_partition_from_elsewhere_is_rebuilt_from_disk_with_its_outputs_withheld() {
        check(
            OnDisk,
            Another,
            false,
            &[
                (Some(100), Some(500), Stored(100), Some(500), false),
                (Some(500), Some(500), Stored(500), None, false),
                (Some(600), Some(500), Stored(600), None, false),
                (None, Some(500), Beginning, Some(500), true),
            ],
        );
    }

    #[test]
    fn a_partition_from_elsewhere_goes_on_in_memory_where_the_group_is() {
        let rows =
            [(Some(100), Some(500), Group(500), None, true), (None, Some(500), Group(500), None, true)];
        check(InMemory, Another, false, &rows);
    }

    #[test]
    fn a_partition_that_is_new_to_a_known_topic_begins_at_its_beginning() {
        for (keeps, writer) in
            [(Nothing, Nobody), (OnDisk, Nobody), (InMemory, Nobody), (OnDisk, Us(Rebuild))]
        {
            check(keeps, writer, true, &[(None, None, Beginning, None, false)]);
        }
        check(OnDisk, Nobody, true, &[(Some(3), None, Stored(3), None, false)]);
        check(Nothing, Nobody, true, &[(None, Some(3), Group(3), None, false)]);
    }
}
