use super::{Handling::*, *};

fn handlers() -> Vec<Arc<str>> {
    vec!["joins".into(), "counts".into()]
}

fn handling(progress: &Progress, offset: i64) -> [Handling; 2] {
    let mut handling = [First; 2];
    progress.handling(0, offset, &mut handling);
    handling
}

/// Answers how the message was taken.
fn publish(progress: &mut Progress, offset: i64, deferred: &[usize]) -> [Handling; 2] {
    let taken = handling(progress, offset);
    progress.published(0, offset, &taken, deferred);
    taken
}

#[test]
fn who_goes_back_is_called_again_and_the_others_are_not() {
    let mut progress = Progress::default();
    assert_eq!(progress.go_back(0, 5, 3, &[true, false]), 3);
    assert_eq!(publish(&mut progress, 3, &[]), [Again, Done]);
    assert_eq!(publish(&mut progress, 4, &[]), [Again, Done]);
    assert!(progress.is_even(), "they are together again");
    assert_eq!(publish(&mut progress, 5, &[]), [First, First]);
}

#[test]
fn a_message_that_was_only_deferred_comes_for_the_first_time() {
    let mut progress = Progress::default();
    publish(&mut progress, 3, &[]);
    publish(&mut progress, 4, &[0]);
    progress.go_back(0, 5, 3, &[true, false]);
    assert_eq!(publish(&mut progress, 3, &[]), [Again, Done]);
    assert_eq!(publish(&mut progress, 4, &[]), [First, Done]);
    assert!(progress.is_even());
}

#[test]
fn a_message_that_is_deferred_in_a_replay_stays_published() {
    let mut progress = Progress::default();
    progress.go_back(0, 5, 4, &[true, false]);
    assert_eq!(publish(&mut progress, 4, &[0]), [Again, Done]);
    progress.go_back(0, 5, 4, &[true, false]);
    assert_eq!(handling(&progress, 4), [Again, Done]);
}

#[test]
fn a_second_repair_lowers_and_never_raises() {
    let mut progress = Progress::default();
    assert_eq!(progress.go_back(0, 10, 5, &[true, false]), 5);
    assert_eq!(progress.go_back(0, 5, 8, &[false, true]), 5);
    assert_eq!(handling(&progress, 5), [Again, Done]);
    assert_eq!(handling(&progress, 8), [Again, Again]);
    assert_eq!(handling(&progress, 10), [First, First]);
}

#[test]
fn a_partition_apart_leaves_the_others_even() {
    let mut progress = Progress::default();
    progress.go_back(1, 5, 3, &[true, false]);
    assert_eq!(handling(&progress, 3), [First, First]);
}

#[test]
fn what_is_read_back_is_by_name_and_a_new_handler_has_seen_nothing() {
    let mut progress = Progress::default();
    publish(&mut progress, 6, &[0]);
    progress.go_back(0, 7, 5, &[true, false]);
    let bytes = progress.write(&handlers());
    let mut read = Progress::read(&bytes, &handlers()).expect("it was written here");
    assert_eq!(read.partitions, progress.partitions);
    assert_eq!([publish(&mut read, 5, &[]), publish(&mut read, 6, &[])], [[Again, Done], [First, Done]]);
    let others: Vec<Arc<str>> = vec!["counts".into(), "new".into()];
    let read = Progress::read(&bytes, &others).expect("it was written here");
    assert_eq!(handling(&read, 5), [Done, First]);
}
