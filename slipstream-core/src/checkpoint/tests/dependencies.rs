//! Partitions that stay empty, are new, end or move away.
use super::{at, beat, judge, pulse, repair, set};
use crate::checkpoint::judge::{Beat, Mark};

#[test]
fn a_dependency_that_never_sends_is_unknown_until_it_ends() {
    let mut judge = judge(&[0]);
    assert!(!pulse(&mut judge, 0, 1));
    assert!(pulse(&mut judge, 1, 2));
    assert_eq!(judge.deps[0].mark(), Mark::Unknown);
    judge.end(0);
    assert_eq!(judge.deps[0].mark(), Mark::AheadOfAll);
    assert_eq!(repair(&mut judge), [(0, 1)]);
    assert!(!pulse(&mut judge, 1, 2));
}

#[test]
fn a_partition_that_stays_empty_does_not_hold_the_others_up() {
    let mut judge = judge(&[0]);
    judge.assign(0, &set([0, 1]));
    beat(&mut judge, 5);
    assert_eq!(judge.deps[0].mark(), Mark::At(at(5)));
    assert!(!pulse(&mut judge, 0, 5));
}

#[test]
fn a_partition_that_is_new_does_not_hold_the_others_up_and_keeps_the_window_open() {
    let mut judge = judge(&[0]);
    judge.assign(0, &set([0]));
    beat(&mut judge, 5);
    judge.assign(0, &set([0, 1]));
    assert!(!pulse(&mut judge, 0, 5));
    beat(&mut judge, 50);
    assert_eq!(judge.heartbeat(0, 1, &at(4)), Beat::Late);
    assert_eq!(repair(&mut judge), [(0, 0)]);
}

#[test]
fn the_lowest_partition_counts_once_each_has_come() {
    let mut judge = judge(&[0]);
    judge.heartbeat(0, 0, &at(9));
    judge.heartbeat(0, 1, &at(3));
    assert_eq!(judge.deps[0].mark(), Mark::At(at(3)));
    assert!(judge.fall_quiet(0, 1));
    assert!(!judge.fall_quiet(0, 1), "it was already");
    assert_eq!(judge.deps[0].mark(), Mark::At(at(9)));
    judge.heartbeat(0, 1, &at(4));
    assert_eq!(judge.deps[0].mark(), Mark::At(at(4)));
}

#[test]
fn an_empty_partition_that_has_ended_does_not_speak_for_one_that_has_not_come() {
    let mut judge = judge(&[0]);
    judge.assign(0, &set([0, 1]));
    judge.fall_quiet(0, 0);
    assert_eq!(judge.deps[0].mark(), Mark::Unknown);
    assert!(!pulse(&mut judge, 0, 1));
    assert!(pulse(&mut judge, 1, 2));
    judge.fall_quiet(0, 1);
    assert!(judge.is_due());
}

#[test]
fn a_partition_that_has_ended_keeps_its_marker_for_the_window() {
    let mut judge = judge(&[0]);
    judge.heartbeat(0, 0, &at(3));
    judge.heartbeat(0, 1, &at(9));
    judge.fall_quiet(0, 0);
    pulse(&mut judge, 0, 5);
    judge.heartbeat(0, 1, &at(10));
    assert_eq!(judge.open[&0].len(), 1);
}

#[test]
fn a_partition_that_moves_away_counts_no_more_and_is_as_it_was_when_it_comes_back() {
    let mut judge = judge(&[0]);
    judge.assign(0, &set([0, 1]));
    judge.heartbeat(0, 0, &at(9));
    judge.heartbeat(0, 1, &at(3));
    pulse(&mut judge, 0, 9);
    assert!(judge.is_down());
    judge.assign(0, &set([0]));
    assert!(!judge.is_down());
    judge.assign(0, &set([0, 1]));
    assert_eq!(judge.deps[0].mark(), Mark::At(at(3)));
}
