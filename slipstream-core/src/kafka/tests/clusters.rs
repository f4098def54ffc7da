//! Handles on clusters, and what they say of their brokers.
use crate::{
    kafka::{Connection, Kafka, SettingError, TopicError, connect::Refusal},
    outgoing::Outgoing,
};
use rdkafka::error::RDKafkaErrorCode;
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

#[test]
fn a_handle_without_brokers_is_an_error() {
    for settings in [vec![], vec![("bootstrap.servers", " ")], vec![("linger_ms", "5")]] {
        let error = Kafka::new(settings).unwrap_err();
        assert!(matches!(error, SettingError::Missing { name: "bootstrap.servers", .. }), "{error}");
    }
    let kafka = Kafka::new([("metadata_broker_list", "a:1,b:2")]).unwrap();
    assert_eq!(kafka.bootstrap_servers(), "a:1,b:2");
    assert_eq!(format!("{kafka:?}"), r#"Kafka { bootstrap_servers: "a:1,b:2", .. }"#);
}

#[tokio::test]
async fn a_topic_is_created_where_it_is_missing_and_else_stays_as_it_is() {
    let kafka = Kafka::in_process().unwrap();
    for partitions in [3, 3, 5] {
        kafka.create_topic("weather", partitions).await.unwrap();
    }
    let topic = kafka.topic::<(), String>("weather").text();
    let producer = topic.config.outlet().unwrap().producer.clone();
    let found = producer.look_up("weather", Duration::from_secs(30), &AtomicBool::new(false)).unwrap();
    assert_eq!(found, 3);
    let error = kafka.create_topic("none", 0).await.unwrap_err();
    assert_eq!(error.to_string(), "topic `none` with 0 partitions cannot be created");
}

#[tokio::test]
async fn a_topic_that_another_handle_has_created_is_left_as_it_is() {
    let kafka = Kafka::in_process().unwrap();
    kafka.create_topic("weather", 3).await.unwrap();
    let other = Kafka::new([("bootstrap.servers", kafka.bootstrap_servers())]).unwrap();
    other.create_topic("weather", 5).await.unwrap();
}

#[test]
fn brokers_that_do_not_answer_are_named_with_the_topic_within_the_time_given() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let kafka = Kafka::new([("bootstrap.servers", format!("127.0.0.1:{port}"))]).unwrap();
    let producer = kafka.producer(kafka.settings()).unwrap();
    let error = producer.look_up("weather", Duration::from_millis(700), &AtomicBool::new(false)).unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, TopicError::Unreachable { .. }), "{told}");
    assert!(told.contains(&format!("127.0.0.1:{port}")) && told.contains("`weather`"), "{told}");
    assert!(told.contains("refused"), "{told}");

    // Nobody waits for it any more.
    assert!(producer.look_up("weather", Duration::MAX, &AtomicBool::new(true)).is_err());
}

#[test]
fn a_refused_login_and_a_fatal_error_are_remembered_and_others_are_not() {
    let connection = Connection::new("a:1");
    for code in [RDKafkaErrorCode::BrokerTransportFailure, RDKafkaErrorCode::AllBrokersDown] {
        assert!(connection.hear(code, "a:1: connection refused").is_none());
        assert!(connection.refusal().is_none());
    }
    assert!(connection.hear(RDKafkaErrorCode::Authentication, "wrong password").is_some());
    assert!(connection.hear(RDKafkaErrorCode::BrokerTransportFailure, "disconnected").is_none());
    let refusal = TopicError::from(connection.refusal().unwrap());
    assert_eq!(refusal.to_string(), "the brokers at `a:1` refuse the login: wrong password");
    assert!(matches!(connection.hear(RDKafkaErrorCode::Fatal, "fenced"), Some(Refusal::Fatal { .. })));
}

#[tokio::test]
async fn idempotence_gives_way_to_settings_that_exclude_it() {
    for (name, value, is_idempotent) in [
        ("linger.ms", "5", true),
        ("acks", "all", true),
        ("acks", "1", false),
        ("request.required.acks", "0", false),
        ("retries", "0", false),
        ("max.in.flight", "6", false),
        ("max.in.flight", "5", true),
        ("enable.idempotence", "false", false),
    ] {
        let kafka = Kafka::new([("bootstrap.servers", "127.0.0.1:1"), (name, value)]).unwrap();
        let config = Kafka::producer_config(kafka.settings());
        let native = config.create_native_config().unwrap();
        assert_eq!(native.get("enable.idempotence").unwrap(), is_idempotent.to_string(), "{name} {value}");
        kafka.producer(kafka.settings()).unwrap();
    }
}

#[tokio::test]
async fn a_login_that_is_refused_is_told_at_once_by_all_that_connect() {
    let cluster = Kafka::in_process().unwrap();
    let kafka = Kafka::new([
        ("bootstrap.servers", cluster.bootstrap_servers()),
        ("security.protocol", "sasl_plaintext"),
        ("sasl.mechanism", "PLAIN"),
        ("sasl.username", "anna"),
        ("sasl.password", "wrong"),
    ])
    .unwrap();
    let topic = kafka.topic::<(), String>("weather").text();
    let expected = format!("the brokers at `{}` refuse the login: ", cluster.bootstrap_servers());
    for error in [
        kafka.create_topic("weather", 1).await.unwrap_err(),
        topic.open_as_sink().await.unwrap_err(),
        topic.send((), "rain".into()).await.unwrap_err(),
    ] {
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
    // A message that is sent all the same.
    let mut outgoing = Outgoing::default();
    topic.config.put(&(&((), "rain".to_owned())).into(), None, &mut outgoing).unwrap();
    let mut outboxes = Vec::new();
    outgoing.hand_over(|outbox| outboxes.push(Arc::clone(outbox)));
    let error = outboxes[0].flush().await.unwrap_err();
    assert!(error.to_string().starts_with(&expected), "{error}");
}
