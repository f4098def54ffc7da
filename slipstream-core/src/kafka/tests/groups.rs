//! Partitions move between the members of a group.
use super::fake::{
    FakeFlow, LONG, Reader, cluster, commit_offset, fill, group_offsets, lose_member, stop_broker, words,
};
use crate::{
    kafka::{Kafka, TopicError},
    source::{Joining, Judged},
};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

fn offsets(kafka: &Kafka, group: &str, partitions: i32) -> Vec<(i32, i64)> {
    let known = group_offsets(kafka, group, "words", partitions);
    known.into_iter().map(|(partition, offset, _)| (partition, offset)).collect()
}

/// Waits until each has so many partitions.
async fn settle(one: &Reader, other: &Reader, wanted: (usize, usize)) {
    wait(|| (one.assigned().len(), other.assigned().len()) == wanted).await;
}

async fn wait(is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < LONG);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_member_goes_on_where_the_first_has_committed() {
    for strategy in ["range", "cooperative-sticky"] {
        let kafka = cluster(&[("words", 4)]).await;
        fill(&kafka, "words", &[0, 1, 2, 3], 100);
        let topic =
            || words(&kafka, "words").settings([("partition.assignment.strategy", strategy)]).unwrap();
        let mut one = FakeFlow::new("pair").read(&topic()).await;
        let mut all: Vec<(i32, i64)> = Vec::new();
        let read = one.take(150).await;
        all.extend(
            read.into_iter().flat_map(|(partition, of)| of.into_iter().map(move |at| (partition, at))),
        );
        // Before the other comes: this cluster takes no offsets while it is rebalancing, which a real one does.
        one.flow.commit();
        let read: Vec<_> = (0..4)
            .map(|partition| {
                let next = all.iter().filter(|(of, _)| *of == partition).map(|(_, offset)| offset + 1);
                (partition, next.max().unwrap_or(0))
            })
            .collect();
        wait(|| offsets(&kafka, "pair", 4) == read).await;
        let mut two = FakeFlow::new("pair").read(&topic()).await;
        two.look();
        settle(&one, &two, (2, 2)).await;
        assert!(one.flow.has("commit"), "{strategy}");
        let began = Instant::now();
        while all.len() < 400 {
            assert!(began.elapsed() < LONG, "{} {strategy}", all.len());
            for reader in [&mut one, &mut two] {
                for (partition, offset) in reader.look() {
                    reader.publish(partition, offset);
                    all.push((partition, offset));
                }
            }
            tokio::task::yield_now().await;
        }
        // Each once: nothing was in hand when partitions moved.
        let distinct: BTreeSet<_> = all.iter().copied().collect();
        assert_eq!((distinct.len(), all.len()), (400, 400), "{strategy}");
        let owned: BTreeSet<_> = one.assigned().into_iter().chain(two.assigned()).collect();
        assert_eq!(owned, [0, 1, 2, 3].into(), "{strategy}");
        one.flow.commit();
        two.flow.commit();
        let ends = [(0, 100), (1, 100), (2, 100), (3, 100)];
        wait(|| offsets(&kafka, "pair", 4) == ends).await;
        one.leave().await;
        two.leave().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_group_did_not_take_while_rebalancing_is_not_handled_again_by_who_had_it() {
    let kafka = cluster(&[("words", 2)]).await;
    fill(&kafka, "words", &[0, 1], 10);
    let mut one = FakeFlow::new("stays").read(&words(&kafka, "words")).await;
    one.take(20).await;
    let mut two = FakeFlow::new("stays").read(&words(&kafka, "words")).await;
    two.look();
    settle(&one, &two, (1, 1)).await;
    let kept = one.assigned()[0];
    fill(&kafka, "words", &[kept], 1);
    assert_eq!(one.take(1).await, [(kept, vec![10])].into());
    one.leave().await;
    two.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_comes_back_begins_where_the_other_has_committed() {
    let kafka = cluster(&[("words", 2)]).await;
    fill(&kafka, "words", &[0, 1], 1000);
    let mut one = FakeFlow::new("back").read(&words(&kafka, "words")).await;
    let first = one.next().await;
    first.iter().for_each(|(partition, offset)| one.publish(*partition, *offset));
    let mut two = FakeFlow::new("back").read(&words(&kafka, "words")).await;
    two.look();
    settle(&one, &two, (1, 1)).await;
    let moved = two.assigned()[0];
    let mut last = -1;
    while last < 500 {
        for (partition, offset) in two.next().await {
            assert_eq!(partition, moved);
            two.publish(partition, offset);
            last = offset;
        }
    }
    two.flow.commit();
    two.leave().await;
    let began = Instant::now();
    let first = loop {
        assert!(began.elapsed() < LONG);
        let of = one.look().into_iter().find(|(partition, _)| *partition == moved);
        if let Some((_, offset)) = of.filter(|_| one.assigned().len() == 2) {
            break offset;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(first, last + 1, "nothing of what was fetched before");
    // What this flow had for it before is not told to the group again.
    one.flow.commit();
    one.leave().await;
    let committed = offsets(&kafka, "back", 2);
    assert!(
        committed.iter().any(|(partition, offset)| *partition == moved && *offset == last + 1),
        "{committed:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_waits_for_the_message_in_hand_and_commits_it() {
    let kafka = cluster(&[("words", 2)]).await;
    fill(&kafka, "words", &[0, 1], 10);
    let mut one = FakeFlow::new("hand").read(&words(&kafka, "words")).await;
    let hand = one.topic.control.hand();
    hand.begins_at(one.topic.control.state());
    one.take(1).await;
    let before = one.topic.control.state();
    let mut two = FakeFlow::new("hand").read(&words(&kafka, "words")).await;
    let began = Instant::now();
    while one.topic.control.state() == before {
        assert!(began.elapsed() < LONG);
        two.look();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // It is asked to let go, and waits; the task that reads is not held up.
    for _ in 0..20 {
        assert_eq!(one.look(), []);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!one.flow.has("commit") && two.assigned().is_empty());
    // The message is done now.
    hand.is_empty_now();
    settle(&one, &two, (1, 1)).await;
    assert!(one.flow.has("commit"));
    assert!(!one.topic.control.is_lost_since(before, 0) && !one.topic.control.is_lost_since(before, 1));
    one.leave().await;
    two.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_in_hand_may_ask_for_the_ends_while_its_partition_is_called_back() {
    let kafka = cluster(&[("words", 2)]).await;
    fill(&kafka, "words", &[0, 1], 10);
    let mut one = FakeFlow::new("asks").read(&words(&kafka, "words")).await;
    let hand = one.topic.control.hand();
    hand.begins_at(one.topic.control.state());
    one.take(1).await;
    let before = one.topic.control.state();
    let mut two = FakeFlow::new("asks").read(&words(&kafka, "words")).await;
    two.look();
    wait(|| one.topic.control.state() != before).await;
    let soon = Duration::from_secs(10);
    tokio::time::timeout(soon, one.topic.lag()).await.expect("it is answered").unwrap();
    let sought = one.topic.seek([(0, crate::kafka::Offset::Beginning)]);
    tokio::time::timeout(soon, sought).await.expect("it is answered").unwrap();
    assert!(!one.flow.has("commit"), "the message is still in hand");
    hand.is_empty_now();
    settle(&one, &two, (1, 1)).await;
    one.leave().await;
    two.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_group_of_one_flow_takes_away_is_nothing_to_another_flow_that_reads_the_topic() {
    let kafka = cluster(&[("words", 2)]).await;
    fill(&kafka, "words", &[0, 1], 10);
    let topic = words(&kafka, "words");
    let mut one = FakeFlow::new("shares").read(&topic).await;
    one.take(20).await;
    let mut other = FakeFlow::new("alone").read(&topic).await;
    other.take(20).await;
    let (mine, its) = (one.topic.control.clone(), other.topic.control.clone());
    let before = its.state();
    let mut two = FakeFlow::new("shares").read(&words(&kafka, "words")).await;
    two.look();
    wait(|| two.assigned().len() == 1).await;
    assert!(!mine.stale_since(before).is_empty());
    assert!(its.stale_since(before).is_empty(), "what it has fetched is its own to handle");
    for reader in [&one, &two, &other] {
        reader.leave().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_partition_is_not_committed() {
    let kafka = cluster(&[("words", 1)]).await;
    fill(&kafka, "words", &[0], 10);
    let mut reader = FakeFlow::new("lost").read(&words(&kafka, "words")).await;
    reader.take(4).await;
    // The coordinator does not know it any more.
    lose_member(&kafka);
    let began = Instant::now();
    let state = reader.topic.control.state();
    while reader.topic.control.state() == state {
        assert!(began.elapsed() < LONG);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(reader.topic.control.is_lost_since(state, 0), "a message in hand would be dropped");
    assert!(!reader.flow.has("commit"));
    // It joins again, and goes on where it was: the group was told nothing since.
    let read = offsets(&kafka, "lost", 1);
    assert_eq!(read, [(0, 0)]);
    fill(&kafka, "words", &[0], 1);
    let next = reader.next().await;
    assert_eq!(next.last(), Some(&(0, 10)));
    assert!(!next.contains(&(0, 0)));
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_moves_is_committed_and_only_while_it_is_ours() {
    let kafka = cluster(&[("words", 2)]).await;
    fill(&kafka, "words", &[0, 1], 10);
    let mut reader = FakeFlow::new("moves").read(&words(&kafka, "words")).await;
    reader.take(20).await;
    // Another's, of which this flow knows from before.
    reader.publish(7, 99);
    reader.flow.commit();
    reader.leave().await;
    assert_eq!(offsets(&kafka, "moves", 2), [(0, 10), (1, 10)]);
    let text = &group_offsets(&kafka, "moves", "words", 2)[0].2;
    assert_eq!(text, r#"{"v":1,"flow":"moves","instance":"default","store":"","epoch":1,"partitions":2}"#);
    // Nobody is left to tell it.
    reader.publish(0, 3);
    reader.flow.commit();
    assert_eq!(offsets(&kafka, "moves", 2), [(0, 10), (1, 10)]);
}

const NOTE: &str = r#"{"v":1,"flow":"kept","instance":"INSTANCE","store":"STORE","epoch":3}"#;

fn note(instance: &str, store: &str) -> String {
    NOTE.replace("INSTANCE", instance).replace("STORE", store)
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_store_its_position_counts_and_a_store_that_was_lost_is_judged() {
    let kafka = cluster(&[("words", 1)]).await;
    fill(&kafka, "words", &[0], 10);
    commit_offset(&kafka, "kept", "words", 0, 7, &note("one", "mine"));
    for (judged, stored, first) in [
        (Judged::Same, Some(5), 5),
        (Judged::Rebuild, Some(2), 2),
        (Judged::Rebuild, None, 0),
        (Judged::Accept, Some(2), 7),
    ] {
        let flow = FakeFlow::with_store("kept", "one", "mine");
        *flow.judges.lock().unwrap() = judged;
        let stored: Vec<_> = stored.map(|offset| (0, offset)).into_iter().collect();
        let mut reader = flow.try_read(&words(&kafka, "words"), &stored).await.unwrap();
        assert_eq!(reader.next().await[0], (0, first), "{judged:?}");
        assert!(flow.has("judge mine"));
        assert_eq!(flow.has(&format!("begin [(0, {first})]")), stored.first() != Some(&(0, first)));
        reader.leave().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_from_another_instance_is_rebuilt_and_its_outputs_withheld() {
    let kafka = cluster(&[("words", 1)]).await;
    fill(&kafka, "words", &[0], 10);
    commit_offset(&kafka, "kept", "words", 0, 7, &note("two", "theirs"));
    let flow = FakeFlow::with_store("kept", "one", "mine");
    let mut reader = flow.try_read(&words(&kafka, "words"), &[(0, 4)]).await.unwrap();
    assert_eq!(reader.next().await[0], (0, 4));
    assert_eq!(reader.topic.control.withheld(), [(0, 7)]);
    // While it is rebuilt the group keeps its offset, which says up to where.
    reader.publish(0, 5);
    flow.commit();
    reader.leave().await;
    assert_eq!(group_offsets(&kafka, "kept", "words", 1)[0].1, 7);

    let flow = FakeFlow::of(Joining::new(Some("kept"), Some("one"), true), "mine", true);
    let mut reader = flow.try_read(&words(&kafka, "words"), &[]).await.unwrap();
    assert_eq!(reader.next().await[0], (0, 7), "a store in memory goes on where the group is");
    assert_eq!(reader.topic.control.withheld(), []);
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_group_is_not_told_again_what_was_told_before_another_instance_went_on() {
    let kafka = cluster(&[("words", 2)]).await;
    fill(&kafka, "words", &[0, 1], 4);
    let flow = |instance| FakeFlow::of(Joining::new(Some("kept"), Some(instance), true), "mine", true);
    let mut one = flow("one").read(&words(&kafka, "words")).await;
    one.take(8).await;
    one.flow.commit();
    wait(|| offsets(&kafka, "kept", 2) == [(0, 4), (1, 4)]).await;
    let mut two = flow("two").read(&words(&kafka, "words")).await;
    two.look();
    settle(&one, &two, (1, 1)).await;
    let moved = two.assigned()[0];
    fill(&kafka, "words", &[moved], 6);
    assert_eq!(two.take(6).await, [(moved, (4..10).collect())].into());
    two.flow.commit();
    two.leave().await;
    wait(|| one.assigned().len() == 2).await;
    // More turns of the thread than it needs to tell the group something.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(offsets(&kafka, "kept", 2).contains(&(moved, 10)), "{:?}", offsets(&kafka, "kept", 2));
    fill(&kafka, "words", &[moved], 1);
    assert_eq!(one.take(1).await, [(moved, vec![10])].into());
    one.flow.commit();
    wait(|| offsets(&kafka, "kept", 2).contains(&(moved, 11))).await;
    one.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_runs_once_in_a_process() {
    let kafka = cluster(&[("words", 1)]).await;
    fill(&kafka, "words", &[0], 1);
    let flow = || FakeFlow::of(Joining::new(Some("static"), Some("one"), false), "", false);
    let mut reader = flow().read(&words(&kafka, "words")).await;
    reader.take(1).await;
    let error = flow().try_read(&words(&kafka, "words"), &[]).await.map(drop).unwrap_err();
    assert!(
        matches!(error.downcast_ref(), Some(TopicError::InstanceTwice { instance, .. }) if instance == "one"),
        "{error}"
    );
    reader.leave().await;
    let reader = flow().read(&words(&kafka, "words")).await;
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_left_although_no_broker_answers() {
    let kafka = cluster(&[("words", 1)]).await;
    fill(&kafka, "words", &[0], 10);
    let mut reader = FakeFlow::new("gone").read(&words(&kafka, "words")).await;
    reader.take(10).await;
    stop_broker(&kafka);
    reader.flow.commit();
    tokio::time::timeout(LONG, reader.leave()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_beside_an_offset_is_no_trouble() {
    let kafka = cluster(&[("words", 1)]).await;
    fill(&kafka, "words", &[0], 10);
    commit_offset(&kafka, "foreign", "words", 0, 4, "written by some other program");
    let flow = FakeFlow::with_store("foreign", "one", "mine");
    let mut reader = flow.try_read(&words(&kafka, "words"), &[]).await.unwrap();
    assert_eq!(reader.next().await[0], (0, 4));
    assert!(!flow.has("judge"));
    reader.leave().await;
}
