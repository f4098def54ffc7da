//! Which updates are late, and which messages they have handled again.
use super::{Message, at, beat, judge, pulse, pulse_of, repair, rules, secs};
use crate::checkpoint::judge::{Beat, Judge};
use std::time::Duration;

#[test]
fn an_update_at_the_time_of_an_outage_that_is_over_replays_from_the_first_message_at_that_time() {
    let mut judge = judge(&[0]);
    beat(&mut judge, 9);
    for (offset, marker) in [(0, 8), (1, 9), (2, 10), (3, 10)] {
        pulse(&mut judge, offset, marker);
    }
    // Equal times on both sides: recovered.
    beat(&mut judge, 10);
    assert_eq!(repair(&mut judge), [(0, 2)]);
    for (offset, marker) in [(2, 10), (3, 10)] {
        assert!(!pulse(&mut judge, offset, marker));
    }
    // Another key, at the same time.
    assert_eq!(beat(&mut judge, 10), Beat::Late);
    assert_eq!(repair(&mut judge), [(0, 2)]);
}

#[test]
fn an_update_published_while_a_message_is_in_hand_is_late_for_it() {
    let mut judge = judge(&[0]);
    beat(&mut judge, 3);
    let message = Message::begin(&mut judge, 0, 3);
    // It has read by now.
    assert_eq!(beat(&mut judge, 3), Beat::InTime);
    assert!(!message.publish(&mut judge));
    assert_eq!(judge.late_from, Some(at(3)));
    assert_eq!(repair(&mut judge), [(0, 0)]);
}

#[test]
fn an_update_after_the_time_of_the_message_in_hand_is_not_late_for_it() {
    let mut judge = judge(&[0]);
    beat(&mut judge, 3);
    let message = Message::begin(&mut judge, 0, 3);
    beat(&mut judge, 4);
    message.publish(&mut judge);
    assert!(!judge.is_pending());
}

#[test]
fn an_update_published_before_a_message_begins_is_not_late_for_it() {
    let mut judge = judge(&[0]);
    let message = Message::begin(&mut judge, 0, 1);
    beat(&mut judge, 3);
    message.publish(&mut judge);
    let message = Message::begin(&mut judge, 1, 3);
    message.publish(&mut judge);
    assert!(!judge.is_pending());
}

#[test]
fn an_update_that_came_while_anything_was_down_is_late_for_the_message_in_hand_however_little() {
    let mut judge = judge(&[100, 0]);
    judge.heartbeat(0, 0, &at(1));
    judge.heartbeat(1, 0, &at(1));
    let message = Message::of(&mut judge, 1, 7, 3);
    assert!(pulse_of(&mut judge, 0, 0, 2), "the second is down");
    judge.heartbeat(0, 0, &at(3));
    judge.heartbeat(1, 0, &at(9));
    assert!(message.publish(&mut judge));
    assert_eq!(judge.late_from, Some(at(3)));
}

#[test]
fn an_update_late_by_just_the_threshold_is_repaired_and_one_less_late_is_tolerated() {
    let mut judge = judge(&[10]);
    beat(&mut judge, 95);
    pulse(&mut judge, 0, 100);
    assert_eq!(beat(&mut judge, 91), Beat::Tolerated);
    assert!(!judge.is_pending());
    assert_eq!(beat(&mut judge, 90), Beat::Late);
    assert_eq!(judge.deps[0].tolerated, 1);
    assert_eq!(repair(&mut judge), [(0, 0)]);
}

#[test]
fn while_another_dependency_is_down_no_update_is_tolerated() {
    let mut judge = judge(&[10, 0]);
    judge.heartbeat(0, 0, &at(95));
    judge.heartbeat(1, 0, &at(95));
    assert!(pulse(&mut judge, 0, 100));
    assert_eq!(judge.heartbeat(0, 0, &at(99)), Beat::Late);
}

#[test]
fn an_update_later_than_the_allowed_lateness_is_counted_and_repairs_nothing() {
    let mut judge = Judge::new([rules(0)], 1000, secs(3));
    beat(&mut judge, 5);
    pulse(&mut judge, 0, 5);
    beat(&mut judge, 8);
    assert_eq!(judge.open[&0].len(), 1, "just at the edge");
    beat(&mut judge, 9);
    assert_eq!(judge.open[&0].len(), 0);
    assert_eq!(beat(&mut judge, 5), Beat::TooLate);
    assert_eq!(judge.deps[0].too_late, 1);
    assert!(!judge.is_pending());
}

#[test]
fn an_update_within_the_allowed_lateness_finds_its_message() {
    let mut judge = Judge::new([rules(0)], 1000, secs(3));
    beat(&mut judge, 5);
    pulse(&mut judge, 4, 5);
    beat(&mut judge, 8);
    assert_eq!(beat(&mut judge, 5), Beat::Late);
    assert_eq!(repair(&mut judge), [(0, 4)]);
}

#[test]
fn nothing_leaves_the_window_while_a_repair_waits() {
    let mut judge = judge(&[0]);
    beat(&mut judge, 3);
    pulse(&mut judge, 0, 3);
    assert_eq!(beat(&mut judge, 3), Beat::Late);
    beat(&mut judge, 50);
    assert_eq!(judge.open[&0].len(), 1);
    assert_eq!(repair(&mut judge), [(0, 0)]);
    assert_eq!(judge.open[&0].len(), 0);
}

#[test]
fn past_its_cap_a_window_begins_too_early_and_never_too_late() {
    let mut judge = Judge::new([rules(100)], 2, Duration::ZERO);
    for (offset, marker) in [(0, 1), (1, 2), (2, 3), (3, 4)] {
        pulse(&mut judge, offset, marker);
    }
    let window = &judge.open[&0];
    assert_eq!(window.len(), 2);
    let first = |marker: i64| window.first_at_or_after(&at(marker));
    assert_eq!([first(1), first(3), first(4), first(5)], [Some(0), Some(0), Some(3), None]);
}

#[test]
fn messages_from_before_the_window_to_which_a_source_is_sought_are_found_again() {
    let mut judge = judge(&[100]);
    for (offset, marker) in [(10, 5), (11, 9), (3, 5), (4, 7), (5, 6)] {
        pulse(&mut judge, offset, marker);
    }
    let first = |marker: i64| judge.open[&0].first_at_or_after(&at(marker));
    assert_eq!([first(5), first(6), first(7), first(8)], [Some(3), Some(4), Some(4), Some(11)]);
}
