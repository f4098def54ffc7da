//! Topics are read: in order, from where they are to be, to where they are to end.
use super::fake::{FakeFlow, cluster, collect, fill, group_offsets, join_within, words};
use crate::kafka::{Kafka, Offset, TopicError};
use std::time::Duration;

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
