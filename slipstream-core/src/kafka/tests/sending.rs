//! Records sent by hand, outside of messages.
use super::read_back::{refuse_next, texts};
use crate::kafka::{Kafka, Record, TopicError};
use futures::future::{join_all, poll_immediate};

#[tokio::test]
async fn a_record_is_there_when_the_call_returns() {
    let kafka = Kafka::in_process().unwrap();
    kafka.create_topic("sent", 1).await.unwrap();
    let topic = kafka.topic::<String, String>("sent").text();
    topic.send("a".into(), "one".into()).await.unwrap();
    assert_eq!(texts(&kafka, "sent", 1), ["one"]);
    topic.send_record(Record::new("a".into(), "two".into()).header("a", "b")).await.unwrap();
    assert_eq!(texts(&kafka, "sent", 1), ["one", "two"]);
}

#[tokio::test]
async fn many_calls_may_wait_together_and_a_small_queue_makes_them_wait_for_room() {
    let kafka = Kafka::in_process().unwrap();
    kafka.create_topic("many", 1).await.unwrap();
    let topic = kafka.topic::<String, String>("many").text();
    let topic = topic.settings([("queue.buffering.max.messages", "5")]).unwrap();
    let calls = (0..100).map(|n| topic.send("a".into(), n.to_string()));
    for sent in join_all(calls).await {
        sent.unwrap();
    }
    let mut numbers: Vec<u32> = texts(&kafka, "many", 1).iter().map(|text| text.parse().unwrap()).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..100));
}

#[tokio::test]
async fn a_call_that_is_given_up_says_so_and_the_next_one_goes_on() {
    let kafka = Kafka::in_process().unwrap();
    kafka.create_topic("given up", 1).await.unwrap();
    let topic = kafka.topic::<String, String>("given up").text();
    topic.send("a".into(), "one".into()).await.unwrap();
    refuse_next(&kafka);
    let error = topic.send("a".into(), "lost".into()).await.unwrap_err();
    assert!(
        matches!(&error, TopicError::Delivery { topic, partition: Some(0), .. } if topic == "given up"),
        "{error}"
    );
    topic.send("a".into(), "two".into()).await.unwrap();
    assert_eq!(texts(&kafka, "given up", 1), ["one", "two"]);
}

#[tokio::test]
async fn a_dropped_call_does_not_disturb_the_others() {
    let kafka = Kafka::in_process().unwrap();
    kafka.create_topic("dropped", 1).await.unwrap();
    let topic = kafka.topic::<String, String>("dropped").text();
    topic.send("a".into(), "one".into()).await.unwrap();
    let mut dropped = Box::pin(topic.send("a".into(), "perhaps".into()));
    assert!(poll_immediate(&mut dropped).await.is_none());
    drop(dropped);
    topic.send("a".into(), "two".into()).await.unwrap();
    let mut sent = texts(&kafka, "dropped", 1);
    sent.retain(|text| text != "perhaps");
    assert_eq!(sent, ["one", "two"]);
}

#[tokio::test]
async fn a_topic_that_is_not_there_is_an_error_that_names_it_and_is_not_created() {
    let kafka = Kafka::in_process().unwrap();
    let topic = kafka.topic::<(), String>("wether").text();
    for _ in 0..2 {
        let error = topic.send((), "rain".into()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "there is no topic `wether` at `{}`: create it first, with `kafka.create_topic(…)` for example",
                kafka.bootstrap_servers()
            )
        );
    }
    assert!(topic.open_as_sink().await.is_err());
    kafka.create_topic("wether", 1).await.unwrap();
    topic.send((), "rain".into()).await.unwrap();
}
