//! What cannot be read, and what is said about it.
use crate::{
    broker::{self, Expendable},
    group::Group,
    log::{Log, SOON, unique},
    running::{Running, Seen, chain, comes, ends, fails, seeing, topic, topic_with},
};
use slipstream::{Kafka, Offset, OnLostState, Result, Store, Topic};
use std::{collections::BTreeMap, time::Duration};

/// A stop is followed within this, whatever the brokers do.
const STOPS: Duration = Duration::from_secs(15);

/// K18.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_topic_is_named() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::there(servers, &unique("unknown"));
    let error = fails(seeing(&topic(&log), &Seen::default()).named(&log.name)).await;
    assert!(error.contains(&log.name) && error.contains("topic"), "{error}");
    Ok(())
}

/// K18. No broker is needed for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_port_is_named_within_a_bound() {
    let log = Log::there("127.0.0.1:1", &unique("port"));
    let error = fails(seeing(&topic(&log), &Seen::default()).named(&log.name)).await;
    assert!(error.contains("127.0.0.1:1") && error.contains(&log.name), "{error}");
}

/// K18.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_works_while_no_broker_answers() {
    let log = Log::there("127.0.0.1:1", &unique("meanwhile"));
    let running = Running::new(seeing(&topic(&log), &Seen::default()).named(&log.name));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let stopped = tokio::time::timeout(STOPS, running.stops()).await;
    drop(stopped.expect("it does not stop"));
}

/// K18.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_called_that() -> Result<()> {
    let (Some(servers), Some(secured)) = (broker::one(), broker::with_password()) else { return Ok(()) };
    let log = Log::of_numbers(servers, "password", 10).await;
    let with = |password| -> Result<Topic<(), String>> {
        let kafka = Kafka::new([
            ("bootstrap.servers", secured),
            ("security.protocol", "sasl_plaintext"),
            ("sasl.mechanism", "PLAIN"),
            ("sasl.username", "slipstream"),
            ("sasl.password", password),
        ])?;
        Ok(kafka.topic(&log.name).text().until(Offset::End))
    };
    let error = fails(seeing(&with("wr0ng")?, &Seen::default()).named(&log.name)).await;
    assert!(error.to_lowercase().contains("authentication"), "{error}");
    assert!(!error.contains("wr0ng"), "{error}");
    let seen = Seen::default();
    ends(seeing(&with("correct")?, &seen).named(&log.name)).await?;
    assert_eq!(seen.len(), 10);
    Ok(())
}

/// F6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_is_deleted_ends_the_flow_with_an_error_that_names_it() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "deleted", 10).await;
    let seen = Seen::default();
    let topic = topic_with(&log, &[("topic.metadata.refresh.interval.ms", "300")]);
    let running = Running::new(seeing(&topic, &seen).named(&log.name));
    seen.has(10).await;
    log.delete().await;
    let error = running.ends().await.expect_err("it goes on");
    assert!(chain(&*error).contains(&log.name), "{}", chain(&*error));
    Ok(())
}

/// F6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_stops_within_a_bound_while_the_broker_is_gone_or_frozen() -> Result<()> {
    let Some(cluster) = Expendable::new() else { return Ok(()) };
    for is_killed in [false, true] {
        let log = Log::of_numbers(&cluster.servers, "gone", 10).await;
        let seen = Seen::default();
        let running = Running::new(seeing(&topic(&log), &seen).named(&log.name));
        seen.has(10).await;
        if is_killed {
            cluster.kill();
        } else {
            cluster.freeze();
        }
        let stopped = tokio::time::timeout(2 * STOPS, running.stops()).await;
        cluster.thaw_if_alive();
        // Its last commit may have been refused; it has ended.
        drop(stopped.unwrap_or_else(|_| panic!("it does not stop, killed: {is_killed}")));
    }
    Ok(())
}

/// A broker that comes back is read on from where it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_goes_on_when_its_broker_comes_back() -> Result<()> {
    let Some(cluster) = Expendable::new() else { return Ok(()) };
    let log = Log::of_numbers(&cluster.servers, "back", 10).await;
    let seen = Seen::default();
    let topic = topic_with(&log, &[("reconnect.backoff.max.ms", "500")]);
    let running = Running::new(seeing(&topic, &seen).named(&log.name).store(&Store::in_memory()?));
    seen.has(10).await;
    cluster.restart();
    log.numbers(0, 10..20);
    comes(2 * SOON, || (seen.len() >= 20).then_some(())).await;
    assert_eq!(seen.of(0), (0..20).collect::<Vec<_>>());
    running.stops().await
}

/// S21.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_position_before_the_beginning_of_the_log_is_an_error_that_names_both() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    for with_store in [true, false] {
        let log = Log::of_numbers(servers, "cut", 50).await;
        let (store, seen) = (Store::in_memory()?, Seen::default());
        let flow = || {
            let flow = seeing(&topic(&log).until(Offset::End), &seen).named(&log.name);
            if with_store { flow.store(&store) } else { flow }
        };
        ends(flow()).await?;
        log.numbers(0, 50..100);
        log.cut(0, 80).await;
        let error = fails(flow()).await;
        assert!(error.contains("50") && error.contains("80") && error.contains(&log.name), "{error}");
        assert_eq!(seen.len(), 50, "{error}");
    }
    Ok(())
}

/// S21, with a log that was made anew and is shorter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_position_behind_the_end_of_the_log_is_an_error_that_names_both() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "short", 20).await;
    Group::new(servers, &log.name).commit(&log, 0, 70, "");
    let error = fails(seeing(&topic(&log), &Seen::default()).named(&log.name)).await;
    assert!(error.contains("70") && error.contains("20") && error.contains(&log.name), "{error}");
    Ok(())
}

/// S11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_store_is_named_and_the_state_is_built_anew_or_left_as_it_is() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "lost", 50).await;
    let (folder, seen) = (tempfile::tempdir()?, Seen::default());
    let open = |name: &str| Store::open(folder.path().join(name));
    let flow = |store: &Store| seeing(&topic(&log).until(Offset::End), &seen).named(&log.name).store(store);
    let first = open("first")?;
    ends(flow(&first)).await?;
    assert_eq!(seen.len(), 50);

    let second = open("second")?;
    let error = fails(flow(&second)).await;
    let (one, other) = (first.id().to_string(), second.id().to_string());
    for part in [one.as_str(), other.as_str(), "Rebuild", "Accept", &log.name] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(seen.len(), 50, "it was read although it stopped");
    let group = Group::new(servers, &log.name);
    assert!(group.committed(&log)[&0].1.contains(&one), "the group was told of the other store");

    seen.clear();
    ends(flow(&second).on_lost_state(OnLostState::Rebuild)).await?;
    assert_eq!(seen.of(0), (0..50).collect::<Vec<_>>());
    assert!(group.committed(&log)[&0].1.contains(&other));

    seen.clear();
    let third = open("third")?;
    log.numbers(0, 50..60);
    ends(flow(&third).on_lost_state(OnLostState::Accept)).await?;
    assert_eq!(seen.of(0), (50..60).collect::<Vec<_>>());
    Ok(())
}

/// S11: a store in memory is new at each start, and says so in the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_in_memory_goes_on_where_the_group_is() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "memory", 50).await;
    let seen = Seen::default();
    for range in [0..50, 50..60] {
        if range.start > 0 {
            log.numbers(0, range.clone());
        }
        let topic = topic(&log).until(Offset::End);
        ends(seeing(&topic, &seen).named(&log.name).store(&Store::in_memory()?)).await?;
        assert_eq!(seen.of(0), range.collect::<Vec<_>>());
        seen.clear();
    }
    let lines = crate::lines::with(&log.name);
    assert!(lines.iter().any(|line| line.contains("memory")), "{lines:#?}");
    Ok(())
}

/// An offset that an ordinary consumer has committed is where a flow begins that has stored nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offsets_of_an_ordinary_consumer_are_taken_over() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    for with_store in [false, true] {
        let log = Log::of_numbers(servers, "ordinary", 50).await;
        let group = Group::new(servers, &log.name);
        group.commit(&log, 0, 30, "");
        let seen = Seen::default();
        let flow = seeing(&topic(&log).until(Offset::End), &seen).named(&log.name);
        ends(if with_store { flow.store(&Store::in_memory()?) } else { flow }).await?;
        assert_eq!(seen.of(0), (30..50).collect::<Vec<_>>());
        assert_eq!(group.offsets(&log), BTreeMap::from([(0, 50)]));
    }
    Ok(())
}
