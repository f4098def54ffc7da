//! Topics are read: in order, from where they are to be, to where they are to end.
use super::fake::{FakeFlow, cluster, collect, fill, group_offsets, join_within, words};
use crate::{
    Flow,
    kafka::{Encoded, Kafka, Offset, TopicError},
    source,
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

fn numbers(from: i64, to: i64) -> Vec<i64> {
    (from..to).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_partition_is_read_in_its_order_and_once() {
    let kafka = cluster(&[("words", 3)]).await;
    fill(&kafka, "words", &[0, 1, 2], 500);
    let mut reader = FakeFlow::new("plain").read(&words(&kafka, "words")).await;
    assert!(reader.name.starts_with("kafka:") && reader.name.ends_with("/plain/words"), "{}", reader.name);
    let taken = reader.take(1500).await;
    assert_eq!(taken.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    assert!(taken.values().all(|offsets| *offsets == numbers(0, 500)));
    fill(&kafka, "words", &[1], 3);
    assert_eq!(reader.take(3).await[&1], numbers(500, 503));
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_handles_messages_and_the_group_goes_on_after_them() {
    let kafka = cluster(&[("words", 2)]).await;
    fill(&kafka, "words", &[0, 1], 3);
    for expected in [vec!["v0", "v0", "v1", "v1", "v2", "v2"], vec!["v0"]] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (sees, topic) = (Arc::clone(&seen), words(&kafka, "words").until(Offset::End));
        let route = source(&topic).handle(move |message: Encoded<String, String>| {
            sees.lock().unwrap().push(message.value().unwrap());
        });
        Flow::<()>::new().named("real").with(route).run(()).await.unwrap();
        let mut seen = seen.lock().unwrap().clone();
        seen.sort();
        assert_eq!(seen, expected);
        fill(&kafka, "words", &[1], 1);
    }
    let offsets = group_offsets(&kafka, "real", "words", 2);
    assert_eq!(
        offsets.iter().map(|(partition, offset, _)| (*partition, *offset)).collect::<Vec<_>>(),
        [(0, 3), (1, 4)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_partition_is_never_a_message() {
    let kafka = cluster(&[("words", 2)]).await;
    let mut reader = FakeFlow::new("ends").read(&words(&kafka, "words")).await;
    // Each time all partitions come to their end again.
    for at in 0..200 {
        fill(&kafka, "words", &[0, 1], 1);
        assert_eq!(reader.take(2).await, [(0, vec![at]), (1, vec![at])].into());
        reader.flow.commit();
    }
    reader.leave().await;
    let offsets = group_offsets(&kafka, "ends", "words", 2);
    assert_eq!(offsets.len(), 2);
    assert!(offsets.iter().all(|(_, offset, text)| *offset == 200 && text.contains(r#""flow":"ends""#)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_taken_for_each_partition_where_the_group_knows_none() {
    let kafka = cluster(&[("words", 3)]).await;
    fill(&kafka, "words", &[0, 1, 2], 10);
    let topic =
        words(&kafka, "words").start(Offset::End).start_partition(1, 4).start_partition(2, Offset::Beginning);
    let mut reader = FakeFlow::new("starts").read(&topic).await;
    assert_eq!(reader.take(16).await, [(1, numbers(4, 10)), (2, numbers(0, 10))].into());
    // Nothing was committed by the flow, and still the start is the group's.
    reader.leave().await;
    fill(&kafka, "words", &[0], 2);
    let mut reader = FakeFlow::new("starts").read(&topic).await;
    let taken = reader.take(8 + 10).await;
    assert_eq!(taken[&0], numbers(10, 12));
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_ends_at_the_end_as_it_was_at_the_start() {
    let kafka = cluster(&[("words", 3)]).await;
    // Partition 2 has no message.
    fill(&kafka, "words", &[0, 1], 300);
    let mut reader = FakeFlow::new("until").read(&words(&kafka, "words").until(Offset::End)).await;
    let first = reader.next().await;
    fill(&kafka, "words", &[0, 1, 2], 5);
    let rest = reader.take(600 - first.len()).await;
    assert_eq!(rest.keys().copied().collect::<Vec<_>>(), [0, 1]);
    assert!(rest.values().all(|offsets| offsets.last() == Some(&299)), "nothing behind the end");
    assert_eq!(reader.next().await, []);
    reader.leave().await;

    let mut reader =
        FakeFlow::new("until two").read(&words(&kafka, "words").until(2).start_partition(1, 2)).await;
    assert_eq!(reader.take(4).await, [(0, vec![0, 1]), (2, vec![0, 1])].into());
    assert_eq!(reader.next().await, []);
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_is_a_stream_without_a_flow() {
    let kafka = cluster(&[("words", 2)]).await;
    fill(&kafka, "words", &[0, 1], 200);
    let topic = words(&kafka, "words").until(Offset::End);
    let all = collect(&topic).await.unwrap();
    for partition in [0, 1] {
        let of = all.iter().filter(|message| message.partition == partition);
        let (offsets, values): (Vec<_>, Vec<_>) =
            of.map(|message| (message.offset, message.value.clone())).unzip();
        assert_eq!(offsets, numbers(0, 200));
        assert_eq!(values, (0..200).map(|at| format!("v{at}")).collect::<Vec<_>>());
    }
    assert_eq!(all.len(), 400);
    assert_eq!(collect(&topic.clone().start(150)).await.unwrap().len(), 100);
    assert_eq!(collect(&topic.start(Offset::End)).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_decoded_does_not_end_a_stream() {
    use futures::{StreamExt, TryStreamExt};
    let kafka = cluster(&[("numbers", 1)]).await;
    fill(&kafka, "numbers", &[0], 2);
    let numbers = kafka.topic::<String, u32>("numbers").json().until(Offset::End);
    let all: Vec<_> = numbers.stream().collect().await;
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|item| matches!(item, Err(TopicError::Decode { .. }))));
    assert!(numbers.stream().try_next().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_of_all_partitions_notices_new_ones() {
    let kafka = cluster(&[("small", 2)]).await;
    fill(&kafka, "small", &[0, 1], 3);
    let mut reader = FakeFlow::new("all").read(&words(&kafka, "small").broadcast()).await;
    assert!(reader.name.ends_with("//small"), "{}", reader.name);
    assert_eq!(reader.take(6).await, [(0, numbers(0, 3)), (1, numbers(0, 3))].into());
    reader.leave().await;
    assert_eq!(group_offsets(&kafka, "all", "small", 2), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn items_are_given_again_from_the_last_chunk() {
    let kafka = cluster(&[("words", 1)]).await;
    fill(&kafka, "words", &[0], 3);
    let mut reader = FakeFlow::new("again").read(&words(&kafka, "words")).await;
    let items: Vec<Encoded<String, String>> = reader.try_chunk().await.unwrap();
    for (at, item) in items.iter().enumerate() {
        assert_eq!(reader.again(at).map(|again| again.offset()), Some(item.offset()));
    }
    assert!(reader.again(items.len()).is_none());
    assert_eq!(items[0].value().unwrap(), "v0", "a chunk that is kept is not written over");
    let kept = items.clone();
    fill(&kafka, "words", &[0], 1);
    while reader.next().await != [(0, 3)] {}
    assert_eq!((kept[0].key_bytes(), kept[0].value_bytes()), (Some(&b"k0"[..]), Some(&b"v0"[..])));
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_to_be_had_is_named() {
    let kafka = cluster(&[("words", 1)]).await;
    let error = join_within(&words(&kafka, "wrods"), Duration::from_secs(30)).await;
    assert!(matches!(&error, TopicError::Unknown { topic, .. } if topic == "wrods"), "{error}");

    let nobody = Kafka::new([("bootstrap.servers", "127.0.0.1:1")]).unwrap();
    let error = join_within(&words(&nobody, "words"), Duration::from_secs(1)).await;
    let said = error.to_string();
    assert!(matches!(error, TopicError::Unreachable { .. }), "{said}");
    assert!(said.contains("127.0.0.1:1") && said.contains("`words`"), "{said}");

    let unnamed = FakeFlow::of(crate::source::Joining::new(None, None, false), "", false);
    let error = unnamed.try_read(&words(&kafka, "words"), &[]).await.map(drop).unwrap_err().to_string();
    assert!(
        error.contains(".named(…)") && error.contains(".group(…)") && error.contains("`words`"),
        "{error}"
    );
    let mut reader = unnamed.read(&words(&kafka, "words").group("given")).await;
    fill(&kafka, "words", &[0], 1);
    reader.take(1).await;
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_of_one_group_share_a_consumer_and_its_settings() {
    let kafka = cluster(&[("one", 2), ("two", 2)]).await;
    fill(&kafka, "one", &[0, 1], 50);
    fill(&kafka, "two", &[0, 1], 70);
    let flow = FakeFlow::new("both");
    let mut readers = flow.try_read_all(&[&words(&kafka, "one"), &words(&kafka, "two")], &[]).await.unwrap();
    let mut two = readers.pop().unwrap();
    let mut one = readers.pop().unwrap();
    let (of_one, of_two) = tokio::join!(one.take(100), two.take(140));
    assert!(of_one.values().all(|offsets| *offsets == numbers(0, 50)));
    assert!(of_two.values().all(|offsets| *offsets == numbers(0, 70)));
    assert_eq!(one.members(), two.members());
    flow.commit();
    one.leave().await;
    two.leave().await;
    assert_eq!(group_offsets(&kafka, "both", "two", 2).len(), 2);

    let flow = FakeFlow::new("differ");
    let other = words(&kafka, "two").settings([("fetch.min.bytes", "2")]).unwrap();
    let error = flow.try_read_all(&[&words(&kafka, "one"), &other], &[]).await.map(drop).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(TopicError::TwoSettings { .. })), "{error}");
    let flow = FakeFlow::new("twice");
    let error =
        flow.try_read_all(&[&words(&kafka, "one"), &words(&kafka, "one")], &[]).await.map(drop).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(TopicError::TopicTwice { .. })), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_the_log_does_not_have_is_an_error_with_both_ends() {
    let kafka = cluster(&[("words", 1)]).await;
    fill(&kafka, "words", &[0], 5);
    let flow = FakeFlow::with_store("lost", "one", "store");
    let mut reader = flow.try_read(&words(&kafka, "words"), &[(0, 50)]).await.unwrap();
    let error = reader.try_chunk().await.unwrap_err();
    assert!(
        matches!(error.downcast_ref(), Some(TopicError::OutOfRange { offset: 50, low: 0, high: 5, .. })),
        "{error}"
    );
    reader.leave().await;
    // A seek is the way out.
    let flow = FakeFlow::with_store("lost", "one", "store");
    let topic = words(&kafka, "words");
    topic.seek([(0, 3)]).await.unwrap();
    let mut reader = flow.try_read(&topic, &[(0, 50)]).await.unwrap();
    assert_eq!(reader.take(2).await[&0], [3, 4]);
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_that_is_dropped_leaves_its_group_and_tells_it_nothing() {
    let kafka = cluster(&[("words", 1)]).await;
    fill(&kafka, "words", &[0], 5);
    let flow = FakeFlow::new("dropped");
    let mut reader = flow.read(&words(&kafka, "words")).await;
    reader.take(3).await;
    let topic = reader.topic.clone();
    drop((reader, flow));
    let mut reader = FakeFlow::new("dropped").read(&topic).await;
    assert_eq!(reader.take(5).await[&0], numbers(0, 5));
    reader.leave().await;
}
