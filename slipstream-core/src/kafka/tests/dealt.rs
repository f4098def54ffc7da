//! Who asks hears which partitions a reader has.
use super::fake::{FakeFlow, LONG, Reader, cluster, fill, lose_member, words};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

type Heard = Arc<Mutex<Vec<BTreeSet<i32>>>>;

fn hears(reader: &Reader) -> Heard {
    let heard = Heard::default();
    let hears = Arc::clone(&heard);
    reader.topic.control.tell_assigned(Arc::new(move |ours| hears.lock().unwrap().push(ours.clone())));
    heard
}

fn last(heard: &Heard) -> BTreeSet<i32> {
    heard.lock().unwrap().last().cloned().unwrap_or_default()
}

async fn becomes(readers: &mut [&mut Reader], is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < LONG);
        for reader in &mut *readers {
            reader.look();
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stays_through_a_rebalance_is_never_gone_and_at_the_end_nothing_is_taken_away() {
    for strategy in ["range", "cooperative-sticky"] {
        let kafka = cluster(&[("words", 4)]).await;
        fill(&kafka, "words", &[0, 1, 2, 3], 1);
        let topic =
            || words(&kafka, "words").settings([("partition.assignment.strategy", strategy)]).unwrap();
        let mut one = FakeFlow::new("dealt").read(&topic()).await;
        let heard = hears(&one);
        one.take(4).await;
        // Before the first message.
        assert_eq!(*heard.lock().unwrap(), [BTreeSet::from([0, 1, 2, 3])], "{strategy}");
        let mut two = FakeFlow::new("dealt").read(&topic()).await;
        let theirs = hears(&two);
        becomes(&mut [&mut one, &mut two], || last(&heard).len() == 2 && last(&theirs).len() == 2).await;
        assert!(last(&heard).is_disjoint(&last(&theirs)), "{strategy}");
        let kept = last(&heard);
        assert!(heard.lock().unwrap().iter().all(|heard| heard.is_superset(&kept)), "{strategy}: {heard:?}");
        two.leave().await;
        assert_eq!(last(&theirs).len(), 2, "{strategy}: its record goes on with them");
        becomes(&mut [&mut one], || last(&heard).len() == 4).await;
        one.leave().await;
        assert_eq!(last(&heard).len(), 4, "{strategy}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_and_comes_back_was_never_gone() {
    for strategy in ["range", "cooperative-sticky"] {
        let kafka = cluster(&[("words", 2)]).await;
        fill(&kafka, "words", &[0, 1], 1);
        let topic = words(&kafka, "words").settings([("partition.assignment.strategy", strategy)]).unwrap();
        let mut one = FakeFlow::new("lost").read(&topic).await;
        let heard = hears(&one);
        one.take(2).await;
        lose_member(&kafka);
        becomes(&mut [&mut one], || heard.lock().unwrap().len() > 1).await;
        fill(&kafka, "words", &[0, 1], 1);
        becomes(&mut [&mut one], || last(&heard).len() == 2).await;
        assert!(heard.lock().unwrap().iter().all(|heard| heard.len() == 2), "{strategy}: {heard:?}");
        one.leave().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_without_a_group_has_all_of_its_partitions() {
    let kafka = cluster(&[("words", 3)]).await;
    fill(&kafka, "words", &[0, 1, 2], 1);
    let mut one = FakeFlow::new("all").read(&words(&kafka, "words").broadcast()).await;
    let heard = hears(&one);
    one.take(3).await;
    assert_eq!(*heard.lock().unwrap(), [BTreeSet::from([0, 1, 2])]);
    one.leave().await;
}
