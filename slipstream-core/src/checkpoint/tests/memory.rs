//! What a restart remembers.
use super::{Message, at, beat, judge, names, pulse, repair, resumed, written};
use crate::{
    Timestamp,
    checkpoint::{
        judge::{Beat, Judge, Mark, Pulse},
        record::Record,
    },
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn an_outage_outlives_a_restart_and_is_repaired_from_before_it() {
    let names = names(&["weather"]);
    let mut before = judge(&[2]);
    beat(&mut before, 1);
    assert!(!pulse(&mut before, 0, 3));
    assert!(pulse(&mut before, 1, 9));
    let mut after = resumed(&written(&before, &names), judge(&[2]), &names);
    assert_eq!(after.deps[0].down, before.deps[0].down);
    assert!(pulse(&mut after, 2, 2), "it is down still");
    assert_eq!(beat(&mut after, 2), Beat::Late);
    beat(&mut after, 9);
    assert_eq!(repair(&mut after), [(0, 0)]);
}

#[test]
fn what_is_in_hand_and_who_has_ended_is_of_the_process() {
    let names = names(&["weather"]);
    let mut before = judge(&[0]);
    beat(&mut before, 1);
    before.end(0);
    assert_eq!(before.deps[0].mark(), Mark::AheadOfAll);
    let _in_hand = Message::begin(&mut before, 0, 5);
    let after = resumed(&written(&before, &names), judge(&[0]), &names);
    assert_eq!(after.deps[0].mark(), Mark::At(at(1)));
    assert_eq!(after.mark_for(Some(0), 0), Mark::At(at(1)));
}

#[test]
fn a_dependency_is_known_by_its_name_and_not_by_its_place() {
    let mut before = judge(&[2, 2]);
    before.heartbeat(0, 0, &at(1));
    before.heartbeat(1, 0, &at(4));
    pulse(&mut before, 0, 5);
    let record = written(&before, &names(&["weather", "news"]));
    let after = resumed(&record, judge(&[2, 2]), &names(&["news", "weather"]));
    assert_eq!(after.deps[0].mark(), Mark::At(at(4)));
    assert_eq!(after.deps[1].mark(), Mark::At(at(1)));
    assert!(after.deps[0].down.is_none());
    assert_eq!(after.deps[1].down.as_ref().map(|outage| outage.dependency), Some(1));
}

#[test]
fn a_dependency_that_is_removed_while_it_is_down_leaves_a_repair() {
    let mut before = judge(&[0, 2]);
    before.heartbeat(0, 0, &at(1));
    before.heartbeat(1, 0, &at(9));
    assert!(pulse(&mut before, 4, 9));
    let record = written(&before, &names(&["weather", "news"]));
    let mut after = resumed(&record, judge(&[2]), &names(&["news"]));
    assert!(!after.is_down());
    assert_eq!(repair(&mut after), [(0, 4)]);
}

#[test]
fn an_outage_that_is_over_is_forgotten_with_its_dependency_and_its_repair_is_not() {
    let mut before = judge(&[0, 0]);
    before.heartbeat(0, 0, &at(1));
    before.heartbeat(1, 0, &at(1));
    pulse(&mut before, 4, 9);
    before.heartbeat(0, 0, &at(9));
    before.heartbeat(1, 0, &at(9));
    assert_eq!(before.recovered.len(), 2);
    let record = written(&before, &names(&["weather", "news"]));
    let mut after = resumed(&record, judge(&[0]), &names(&["news"]));
    let recovered: Vec<usize> = after.recovered.iter().map(|outage| outage.dependency).collect();
    assert_eq!(recovered, [0]);
    assert_eq!(repair(&mut after), [(0, 4)]);
}

#[test]
fn a_dependency_that_is_added_has_sent_nothing_yet() {
    let mut before = judge(&[0]);
    beat(&mut before, 5);
    pulse(&mut before, 0, 5);
    let record = written(&before, &names(&["weather"]));
    let mut after = resumed(&record, judge(&[0, 0]), &names(&["weather", "news"]));
    assert_eq!(after.deps[1].mark(), Mark::Unknown);
    after.heartbeat(0, 0, &at(50));
    assert_eq!(after.open[&0].len(), 1, "what it has to say may change that message");
    assert!(pulse(&mut after, 1, 6), "the first pulse of all stands in for it");
    assert_eq!(after.heartbeat(1, 0, &at(5)), Beat::Late);
    after.heartbeat(1, 0, &at(6));
    assert_eq!(repair(&mut after), [(0, 0)]);
}

#[test]
fn a_dependency_that_is_renamed_is_another_one() {
    let mut before = judge(&[0]);
    beat(&mut before, 5);
    let after = resumed(&written(&before, &names(&["weather"])), judge(&[0]), &names(&["climate"]));
    assert_eq!(after.deps[0].mark(), Mark::Unknown);
}

#[test]
fn what_the_dependent_remembered_at_the_last_heartbeat_stays_with_the_outage() {
    let names = names(&["weather"]);
    let mut before = judge(&[2]);
    let tell = |judge: &mut Judge<Timestamp>, offset, secs, state: &[u8]| {
        judge.begin(0);
        let (behind, is_down) = super::check(judge, 0, &at(secs));
        let pulse = Pulse { marker: at(secs), behind, is_down, state: Some(state.to_vec()) };
        judge.publish(0, 0, offset, pulse, 0);
        judge.done(0);
    };
    tell(&mut before, 0, 1, b"then");
    beat(&mut before, 1);
    tell(&mut before, 1, 9, b"later");
    let after = resumed(&written(&before, &names), judge(&[2]), &names);
    let remembered = after.deps[0].down.as_ref().and_then(|outage| outage.state.as_deref());
    assert_eq!(remembered, Some(&b"then"[..]));
    assert_eq!(after.state.as_deref(), Some(&b"later"[..]));
}

#[test]
fn the_handlers_that_check_are_remembered_by_name() {
    let names = names(&["weather"]);
    let checkers = BTreeSet::from(["join".to_owned()]);
    let record = Record::of(&judge(&[0]), &names, checkers.clone()).write().expect("it can be written");
    let record = Record::<Timestamp>::read(&record).expect("it can be read");
    assert_eq!(record.resume(&mut judge(&[0]), &names), checkers);
}

#[test]
fn a_record_of_a_later_layout_is_refused_by_its_number() {
    #[derive(Serialize)]
    struct Later {
        layout: u32,
        of_which_nothing_is_known: BTreeMap<String, i64>,
    }
    let later = Later { layout: 7, of_which_nothing_is_known: BTreeMap::new() };
    let later = rmp_serde::to_vec_named(&later).expect("it can be written");
    let refused = Record::<Timestamp>::read(&later).expect_err("it is of a later version");
    assert_eq!(refused, "it was written by a later version: its layout is 7, and 1 is known");
}

#[test]
fn a_record_that_is_cut_short_is_refused() {
    let record = written(&judge(&[0]), &names(&["weather"]));
    for end in 0..record.len() {
        assert!(Record::<Timestamp>::read(&record[..end]).is_err(), "of {end} bytes");
    }
}
