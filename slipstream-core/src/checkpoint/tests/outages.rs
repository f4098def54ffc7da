//! When a dependency is down, and when it is back.
use super::{Message, at, beat, judge, pulse, pulse_of, repair, secs, set};
use crate::checkpoint::judge::{Beat, Judge, Mark, Rules};
use std::time::Duration;

#[test]
fn the_replay_begins_at_the_message_that_an_update_changes_and_not_at_the_one_that_noticed() {
    let mut judge = judge(&[2]);
    beat(&mut judge, 5);
    for (offset, marker) in [(6, 6), (7, 7)] {
        assert!(!pulse(&mut judge, offset, marker));
    }
    assert!(pulse(&mut judge, 8, 8));
    assert_eq!(beat(&mut judge, 6), Beat::Late);
    assert!(judge.is_down());
    assert_eq!(beat(&mut judge, 9), Beat::InTime);
    assert_eq!(repair(&mut judge), [(0, 6)]);
}

#[test]
fn an_outage_without_a_late_update_replays_from_the_message_that_noticed_it() {
    let mut judge = judge(&[2]);
    beat(&mut judge, 5);
    for (offset, marker) in [(6, 6), (7, 7), (8, 8)] {
        pulse(&mut judge, offset, marker);
    }
    beat(&mut judge, 9);
    assert_eq!(repair(&mut judge), [(0, 8)]);
}

#[test]
fn two_outages_are_one_repair_from_the_lowest_offsets() {
    let mut judge = judge(&[2, 2]);
    judge.heartbeat(0, 0, &at(1));
    judge.heartbeat(1, 0, &at(5));
    assert!(pulse_of(&mut judge, 0, 10, 4));
    assert!(pulse_of(&mut judge, 1, 20, 8));
    assert!(pulse_of(&mut judge, 0, 11, 8));
    let noticed_by = |dependency: usize| judge.deps[dependency].down.as_ref().map(|outage| outage.pulse);
    assert_eq!((noticed_by(0), noticed_by(1)), (Some(at(4)), Some(at(8))));
    judge.heartbeat(1, 0, &at(8));
    assert!(judge.is_down() && !judge.is_due());
    judge.heartbeat(0, 0, &at(8));
    let recovered: Vec<usize> = judge.recovered.iter().map(|outage| outage.dependency).collect();
    assert_eq!(recovered, [1, 0]);
    assert_eq!(repair(&mut judge), [(0, 10), (1, 20)]);
    assert!(!judge.is_pending() && judge.recovered.is_empty());
}

#[test]
fn one_dependency_of_two_that_is_down_makes_each_pulse_down_and_is_one_outage() {
    let mut judge = judge(&[2, 2]);
    judge.heartbeat(0, 0, &at(9));
    judge.heartbeat(1, 0, &at(1));
    assert!(pulse(&mut judge, 0, 9));
    let first = judge.deps[1].down.clone();
    // Not ahead of anything by itself.
    assert!(pulse(&mut judge, 1, 0));
    assert!(pulse(&mut judge, 2, 10));
    assert_eq!(judge.deps[1].down, first);
    assert!(judge.deps[0].down.is_none());
    judge.heartbeat(1, 0, &at(10));
    assert!(!judge.is_down());
    assert_eq!(judge.recovered.len(), 1);
}

#[test]
fn an_older_heartbeat_and_an_older_pulse_move_nothing_back() {
    let mut judge = judge(&[20]);
    beat(&mut judge, 10);
    beat(&mut judge, 4);
    assert_eq!(judge.deps[0].mark(), Mark::At(at(10)));
    pulse(&mut judge, 0, 12);
    pulse(&mut judge, 1, 3);
    assert_eq!(judge.marker, Some(at(12)));
    assert_eq!(judge.first_pulse, Some(at(12)));
}

#[test]
fn a_dependency_between_two_partitions_of_the_dependent_has_not_recovered() {
    let mut judge = judge(&[60]);
    let minute = |hour: i64, minute: i64| hour * 60 + minute;
    beat(&mut judge, minute(8, 0));
    assert!(pulse_of(&mut judge, 0, 0, minute(12, 0)));
    assert!(pulse_of(&mut judge, 1, 0, minute(9, 0)));
    beat(&mut judge, minute(10, 51));
    assert!(judge.is_down() && !judge.has_reached(0));
    beat(&mut judge, minute(12, 0));
    assert!(!judge.is_down() && judge.is_due());
}

#[test]
fn a_pulse_ahead_by_just_the_threshold_is_not_down() {
    let mut judge = judge(&[10]);
    beat(&mut judge, 100);
    assert!(!pulse(&mut judge, 0, 110));
    assert!(pulse(&mut judge, 1, 111));
    let outage = judge.deps[0].down.clone().expect("it is down");
    assert_eq!((outage.marker, outage.downtime), (Some(at(100)), Some(secs(11))));
}

#[test]
fn with_threshold_zero_any_time_ahead_is_down_and_an_equal_one_is_not() {
    let mut judge = judge(&[0]);
    beat(&mut judge, 100);
    assert!(!pulse(&mut judge, 0, 100));
    judge.begin(0);
    assert!(judge.is_behind(0, &at(100), &crate::Timestamp::from_micros(100_000_001)));
}

#[test]
fn a_heartbeat_between_the_beginning_and_the_pulse_ends_the_outage_that_the_pulse_finds() {
    let mut judge = judge(&[0]);
    beat(&mut judge, 1);
    let message = Message::begin(&mut judge, 0, 5);
    beat(&mut judge, 5);
    assert!(message.publish(&mut judge), "it counts as it stood when the message began");
    assert!(!judge.is_down(), "nothing more comes that could end it");
    assert_eq!(repair(&mut judge), [(0, 0)]);
}

#[test]
fn an_end_between_the_beginning_and_the_pulse_ends_the_outage_that_the_pulse_finds() {
    let mut judge = judge(&[0]);
    beat(&mut judge, 1);
    let message = Message::begin(&mut judge, 0, 5);
    judge.end(0);
    assert!(message.publish(&mut judge));
    assert!(judge.is_due());
}

#[test]
fn until_the_first_heartbeat_the_first_pulse_stands_in() {
    let mut judge = judge(&[10]);
    assert_eq!(judge.deps[0].mark(), Mark::Unknown);
    assert!(!pulse(&mut judge, 0, 100));
    assert!(!pulse(&mut judge, 1, 110));
    assert!(pulse(&mut judge, 2, 111));
    let outage = judge.deps[0].down.clone().expect("it is down");
    assert_eq!((outage.marker, outage.downtime), (None, Some(secs(11))));
    assert!(!judge.has_reached(0));
    beat(&mut judge, 110);
    assert!(judge.is_down());
    beat(&mut judge, 111);
    assert_eq!(repair(&mut judge), [(0, 1)], "the first message that the update for 110 can change");
}

#[test]
fn a_dependency_with_a_check_of_its_own_recovers_by_that_alone() {
    let rules = Rules { threshold: Duration::ZERO, recovers_by_check: true };
    let mut judge = Judge::new([rules], 1000, Duration::ZERO);
    beat(&mut judge, 1);
    pulse(&mut judge, 0, 5);
    beat(&mut judge, 50);
    assert!(judge.is_down());
    judge.recover(0);
    assert_eq!(repair(&mut judge), [(0, 0)]);
}

#[test]
fn an_outage_that_a_message_in_hand_finds_puts_the_repair_off() {
    let mut judge = judge(&[0]);
    beat(&mut judge, 1);
    assert!(pulse_of(&mut judge, 0, 3, 5));
    let other = Message::of(&mut judge, 1, 7, 9);
    beat(&mut judge, 5);
    assert!(judge.is_due());
    assert!(other.publish(&mut judge));
    assert!(!judge.is_due() && judge.is_pending());
    beat(&mut judge, 9);
    assert_eq!(repair(&mut judge), [(0, 3), (1, 7)]);
}

#[test]
fn what_another_takes_over_is_repaired_there() {
    let mut judge = judge(&[0]);
    beat(&mut judge, 1);
    pulse_of(&mut judge, 0, 3, 5);
    pulse_of(&mut judge, 1, 7, 6);
    judge.keep_only(&set([1]));
    beat(&mut judge, 6);
    assert_eq!(repair(&mut judge), [(1, 7)]);
}
