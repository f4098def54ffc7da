//! Topics are sought, paused and asked how far they are, in every order.
use super::fake::{FakeFlow, GROUP, LONG, cluster, fill, words};
use crate::{
    Flow,
    kafka::{Encoded, Offset, Topic, TopicError},
    source,
};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

#[tokio::test(flavor = "multi_thread")]
async fn after_a_seek_the_first_message_is_the_one_sought() {
    for fetched in [0, 1, 1000] {
        let kafka = cluster(&[("words", 2)]).await;
        fill(&kafka, "words", &[0, 1], fetched + 10);
        let mut reader = FakeFlow::new("seeks").read(&words(&kafka, "words")).await;
        if fetched > 0 {
            reader.take(1).await;
        }
        for (to, again) in [(3, 5), (7, 0), (0, 9)] {
            // The last of several counts, whatever was on its way.
            reader.topic.seek([(0, again)]).await.unwrap();
            reader.topic.seek([(0, to)]).await.unwrap();
            let first = loop {
                let places = reader.next().await;
                if let Some((_, offset)) = places.into_iter().find(|(partition, _)| *partition == 0) {
                    break offset;
                }
            };
            assert_eq!(first, to, "{fetched} fetched");
        }
        reader.leave().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seek_of_one_partition_leaves_the_others_as_they_are() {
    let kafka = cluster(&[("words", 2)]).await;
    fill(&kafka, "words", &[0, 1], 400);
    let mut reader = FakeFlow::new("other").read(&words(&kafka, "words")).await;
    let mut of_one = Vec::new();
    let mut turns = 0;
    while of_one.len() < 400 {
        for (partition, offset) in reader.next().await {
            if partition == 1 {
                of_one.push(offset);
            }
        }
        turns += 1;
        if turns < 20 {
            reader.topic.control.seek(0, turns);
        }
    }
    assert_eq!(of_one, (0..400).collect::<Vec<_>>());
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seek_before_the_assignment_is_applied_with_it() {
    let kafka = cluster(&[("words", 3)]).await;
    fill(&kafka, "words", &[0, 1, 2], 10);
    let topic = words(&kafka, "words");
    // Before a flow has it, as numbers and as places; then between the opening and the assignment.
    topic.seek([(0, 8)]).await.unwrap();
    topic.seek([(1, Offset::End), (2, Offset::Beginning)]).await.unwrap();
    let mut reader = FakeFlow::new("early").read(&topic).await;
    topic.seek([(2, 7)]).await.unwrap();
    assert_eq!(reader.take(5).await, [(0, vec![8, 9]), (2, vec![7, 8, 9])].into());
    fill(&kafka, "words", &[1], 1);
    assert_eq!(reader.take(1).await, [(1, vec![10])].into());
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_that_are_not_ours_are_named_and_the_others_sought() {
    let kafka = cluster(&[("words", 2)]).await;
    fill(&kafka, "words", &[0, 1], 10);
    let mut reader = FakeFlow::new("ours").read(&words(&kafka, "words")).await;
    reader.take(20).await;
    let error = reader.topic.seek([(0, 3), (7, 0)]).await.unwrap_err();
    assert!(matches!(&error, TopicError::NotOurs { partitions, .. } if *partitions == [7]), "{error}");
    assert_eq!(reader.take(7).await, [(0, (3..10).collect())].into());
    let error = reader.topic.seek([(0, 11)]).await.unwrap_err();
    assert!(matches!(error, TopicError::OutOfRange { offset: 11, low: 0, high: 10, .. }), "{error}");
    reader.topic.seek([(1, Offset::End)]).await.unwrap();
    fill(&kafka, "words", &[1], 1);
    assert_eq!(reader.take(1).await, [(1, vec![10])].into());
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_the_log_does_not_have_ends_the_source_that_is_sought_there() {
    let kafka = cluster(&[("words", 1)]).await;
    fill(&kafka, "words", &[0], 10);
    let mut reader = FakeFlow::new("beyond").read(&words(&kafka, "words")).await;
    reader.take(10).await;
    reader.topic.control.seek(0, 99);
    let error = reader.try_chunk().await.unwrap_err();
    assert!(
        matches!(error.downcast_ref(), Some(TopicError::OutOfRange { offset: 99, low: 0, high: 10, .. })),
        "{error}"
    );
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lag_is_what_is_not_published_yet() {
    let kafka = cluster(&[("words", 2)]).await;
    let topic = words(&kafka, "words");
    assert_eq!(topic.lag().await.unwrap(), [].into(), "nobody reads it");
    fill(&kafka, "words", &[0], 10);
    let mut reader = FakeFlow::new("lag").read(&topic).await;
    reader.take(10).await;
    assert_eq!(topic.lag().await.unwrap(), [(0, 0), (1, 0)].into(), "an empty partition has none");
    fill(&kafka, "words", &[0, 1], 4);
    assert_eq!(topic.lag().await.unwrap(), [(0, 4), (1, 4)].into());
    reader.take(8).await;
    assert_eq!(topic.lag().await.unwrap(), [(0, 0), (1, 0)].into());
    assert_eq!(topic.position().iter().collect::<Vec<_>>(), [(0, 14), (1, 4)]);
    reader.leave().await;
    assert_eq!(topic.lag().await.unwrap(), [].into(), "its consumer is closed");
    reader.leave().await;
    drop(reader);
    assert_eq!(topic.lag().await.unwrap(), [].into());
}

/// Partitions and offsets.
type Seen = Arc<Mutex<Vec<(i32, i64)>>>;

/// Handles each message in a flow, and gives them in the order handled.
fn handled(topic: &Topic<String, String>) -> (Seen, Flow<()>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let route = source(topic).handle(move |message: Encoded<String, String>| {
        sees.lock().unwrap().push((message.partition(), message.offset()));
    });
    (seen, Flow::new().named("steered").with(route))
}

async fn until(is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < LONG);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_seek_and_resume_in_every_order_go_on_at_the_message_sought() {
    let kafka = cluster(&[("words", 1)]).await;
    fill(&kafka, "words", &[0], 300);
    for (at, order) in ["psr", "spr", "prs", "sr", "pssr", "ppsrs", "rs"].into_iter().enumerate() {
        let topic = words(&kafka, "words").group(format!("order {at}"));
        let (seen, flow) = handled(&topic);
        let handle = flow.handle();
        let running = tokio::spawn(flow.run(()));
        until(|| seen.lock().unwrap().len() >= 300).await;
        for step in order.chars() {
            match step {
                'p' => topic.pause(),
                's' => topic.seek([(0, 250)]).await.unwrap(),
                _ => topic.resume(),
            }
        }
        until(|| seen.lock().unwrap().len() >= 350).await;
        handle.stop();
        running.await.unwrap().unwrap();
        let seen = seen.lock().unwrap();
        let sought = order.matches('s').count();
        assert_eq!(seen.iter().filter(|place| place.1 < 250).count(), 250, "{order}");
        assert_eq!(seen[300], (0, 250), "{order}");
        assert!(seen.iter().filter(|place| place.1 == 299).count() <= 1 + sought, "{order}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_fetched_before_a_pause_is_handled_once_after_it() {
    let kafka = cluster(&[("words", 1)]).await;
    fill(&kafka, "words", &[0], 1000);
    let topic = words(&kafka, "words");
    let (seen, flow) = handled(&topic);
    let handle = flow.handle();
    let running = tokio::spawn(flow.run(()));
    for count in [10, 200, 500] {
        until(|| seen.lock().unwrap().len() >= count).await;
        topic.pause();
        topic.resume();
        topic.resume();
    }
    until(|| seen.lock().unwrap().len() >= 1000).await;
    handle.stop();
    running.await.unwrap().unwrap();
    assert_eq!(*seen.lock().unwrap(), (0..1000).map(|offset| (0, offset)).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_member_keeps_its_place_in_the_group() {
    let kafka = cluster(&[("words", 1)]).await;
    fill(&kafka, "words", &[0], 10);
    let settings = GROUP.into_iter().chain([("max.poll.interval.ms", "6000")]);
    let topic = kafka.topic::<String, String>("words").text().settings(settings).unwrap();
    topic.pause();
    let (seen, flow) = handled(&topic);
    let handle = flow.handle();
    let running = tokio::spawn(flow.run(()));
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert!(seen.lock().unwrap().is_empty());
    assert!(topic.is_paused());
    topic.resume();
    until(|| seen.lock().unwrap().len() >= 10).await;
    handle.stop();
    running.await.unwrap().unwrap();
    assert_eq!(seen.lock().unwrap().len(), 10);
}
