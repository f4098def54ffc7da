use crate::kafka::known::{Kind, KnownSettings};
use crate::kafka::{SettingError, Settings};
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

const PASSWORD: &str = "correct horse battery staple";

/// Texts that nobody keeps secret.
const PUBLIC: [&str; 8] = [
    "bootstrap.servers",
    "client.id",
    "client.rack",
    "group.instance.id",
    "metadata.broker.list",
    "partition.assignment.strategy",
    "sasl.mechanism",
    "sasl.mechanisms",
];

fn error(settings: &[(&str, &str)]) -> SettingError {
    Settings::new(settings.iter().copied()).unwrap_err()
}

fn told(name: &str, value: &str) -> String {
    error(&[(name, value)]).to_string()
}

#[test]
fn all_of_librdkafkas_settings_are_listed_and_known_to_it() {
    let known = KnownSettings::of_librdkafka().unwrap();
    assert!(known.iter().count() > 150, "only {} settings were read", known.iter().count());
    for (name, setting) in known.iter() {
        let set = ClientConfig::new().set(name, "?").create_native_config();
        let is_unknown =
            matches!(set, Err(KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, ..)));
        assert!(!is_unknown, "`{name}`: {setting:?}");
        if let Some(canonical) = &setting.alias_of {
            assert!(
                known.get(canonical).is_some_and(|known| known.alias_of.is_none()),
                "`{name}`: {setting:?}"
            );
        }
        if setting.kind != Kind::Text && setting.kind != Kind::Handle && name != "builtin.features" {
            assert!(!setting.range.is_empty(), "`{name}`: {setting:?}");
        }
    }
    assert_eq!(known.canonical("bootstrap.servers"), "metadata.broker.list");
}

#[test]
fn an_underscore_stands_for_a_point_unless_the_name_has_one() {
    let settings = Settings::new([("bootstrap_servers", "a:1"), ("log_level", "3")]).unwrap();
    assert_eq!(settings.get("bootstrap.servers"), Some("a:1"));
    assert_eq!(settings.get("log_level"), Some("3"));
}

#[test]
fn a_topics_settings_stand_over_its_clusters_under_whatever_name() {
    let cluster =
        Settings::new([("bootstrap.servers", "a:1"), ("linger.ms", "5"), ("client.id", "c")]).unwrap();
    let topic = Settings::new([("metadata.broker.list", "b:2"), ("queue.buffering.max.ms", "7")]).unwrap();
    let both = topic.over(&cluster);
    for name in ["bootstrap.servers", "metadata.broker.list"] {
        assert_eq!(both.get(name), Some("b:2"));
    }
    assert_eq!(both.get("linger.ms"), Some("7"));
    assert_eq!(both.get("client.id"), Some("c"));
    assert_eq!(cluster.get("linger.ms"), Some("5"));
}

#[test]
fn each_side_gets_its_own_settings_and_those_of_both() {
    let settings =
        Settings::new([("client.id", "c"), ("linger.ms", "5"), ("fetch.wait.max.ms", "10")]).unwrap();
    let consumer: Vec<_> = settings.consumer().collect();
    let producer: Vec<_> = settings.producer().collect();
    assert_eq!(consumer, [("client.id", "c"), ("fetch.wait.max.ms", "10")]);
    assert_eq!(producer, [("client.id", "c"), ("queue.buffering.max.ms", "5")]);
    let config = consumer.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert!(config.collect::<ClientConfig>().create_native_config().is_ok());
}

#[test]
fn an_unknown_setting_is_told_with_its_value_and_the_nearest_known_one() {
    assert_eq!(
        told("bootstrap_server", "a:1"),
        "there is no Kafka setting `bootstrap_server` with the value `a:1`: did you mean `bootstrap.servers`?"
    );
    assert_eq!(
        told("session.timeout", "6000"),
        "there is no Kafka setting `session.timeout` with the value `6000`: did you mean `session.timeout.ms`?"
    );
    assert_eq!(told("utterly.different", "x"), "there is no Kafka setting `utterly.different`");
}

#[test]
fn a_value_of_another_kind_is_told_with_what_it_has_to_be() {
    for value in ["soon", "6000ms", "6 000", "1e4", "06000", "4294973296", "-1", "3600001", ""] {
        assert_eq!(
            told("session.timeout.ms", value),
            format!(
                "the Kafka setting `session.timeout.ms` cannot be `{value}`: it is an integer, 1 .. 3600000"
            )
        );
    }
    assert_eq!(
        told("enable.idempotence", "yes"),
        "the Kafka setting `enable.idempotence` cannot be `yes`: it is `true` or `false`"
    );
    assert_eq!(
        told("isolation_level", "read_all"),
        "the Kafka setting `isolation_level` cannot be `read_all`: \
         it is of these words: read_uncommitted, read_committed"
    );
    assert!(told("linger.ms", "5,5").ends_with("it is a number, 0 .. 900000"));
    assert!(told("client.id", "a\0b").ends_with("it has a zero byte"));
}

#[test]
fn a_value_may_be_all_that_librdkafka_takes() {
    for (name, value) in [
        ("acks", "all"),
        ("acks", "-1"),
        ("linger.ms", "0.5"),
        ("debug", "broker,topic"),
        ("compression.type", "lz4"),
        ("compression.type", "gzip"),
        ("enable.idempotence", "True"),
        ("sasl.mechanism", "PLAIN"),
        ("test.mock.num.brokers", "3"),
    ] {
        assert!(Settings::new([(name, value)]).is_ok(), "{name} {value}");
    }
}

#[test]
fn a_setting_of_the_librarys_is_refused_with_what_to_use_instead() {
    for name in [
        "enable.auto.commit",
        "enable_auto_offset_store",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "group_id",
        "partitioner",
        "enable.partition.eof",
        "transactional.id",
        "error_cb",
    ] {
        let error = error(&[(name, "earliest")]);
        assert!(matches!(&error, SettingError::Owned { name: told, .. } if told == name), "{error}");
    }
    assert_eq!(
        told("auto_offset_reset", "earliest"),
        "the Kafka setting `auto_offset_reset` is the library's own: \
         say with `.start(…)` where to begin when there is no stored position"
    );
}

#[test]
fn a_setting_that_is_given_twice_is_refused_under_both_of_its_names() {
    assert_eq!(
        error(&[("bootstrap.servers", "a:1"), ("metadata_broker_list", "b:2")]).to_string(),
        "the Kafka setting `metadata_broker_list` is given twice, before as `bootstrap.servers`: give it once"
    );
    assert_eq!(
        error(&[("acks", "1"), ("acks", "all")]).to_string(),
        "the Kafka setting `acks` is given twice: give it once"
    );
}

#[test]
fn javas_settings_that_librdkafka_knows_by_name_are_answered_in_its_words() {
    let error = error(&[("sasl.jaas.config", PASSWORD)]);
    assert!(error.to_string().contains("JAAS configuration is not supported"), "{error}");
    assert!(!format!("{error:?}").contains(PASSWORD));
}

#[test]
fn a_secret_is_neither_in_debug_nor_in_an_error() {
    let given = [("sasl.username", PASSWORD), ("sasl.password", PASSWORD), ("client.id", "shown")];
    let settings = Settings::new(given).unwrap();
    let debug = format!("{settings:?} {settings:#?}");
    assert!(
        !debug.contains(PASSWORD) && debug.contains("sasl.password") && debug.contains("shown"),
        "{debug}"
    );

    // Of whatever text librdkafka takes, misspelt, and with a zero byte.
    let zero = format!("{PASSWORD}\0");
    let known = KnownSettings::of_librdkafka().unwrap();
    let texts = known.iter().filter(|(_, known)| known.kind == Kind::Text).map(|(name, _)| name);
    let misspelt =
        ["sasl.pasword", "sasl_passwd", "ssl.keystore.pass", "password", "sasl.oauthbearer.secret"];
    for name in texts.filter(|name| !PUBLIC.contains(name)).chain(misspelt) {
        for value in [PASSWORD, zero.as_str()] {
            let told = match Settings::new([(name, value)]) {
                Ok(settings) => format!("{settings:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(!told.contains(PASSWORD), "{told}");
        }
    }
}

#[test]
#[cfg(not(feature = "ssl"))]
fn what_was_not_built_in_is_told_with_the_feature_that_has_it() {
    assert_eq!(
        told("security.protocol", "ssl"),
        "the Kafka setting `security.protocol` cannot be `ssl`: \
         OpenSSL not available at build time; build with the feature `ssl`"
    );
    assert_eq!(
        told("ssl.ca.location", "/ca.pem"),
        "the Kafka setting `ssl.ca.location` cannot be set: \
         OpenSSL not available at build time; build with the feature `ssl`"
    );
}

#[test]
#[cfg(not(feature = "zstd"))]
fn zstd_is_told_with_its_feature() {
    assert!(told("compression.codec", "zstd").ends_with("build with the feature `zstd`"));
}

#[test]
#[cfg(all(feature = "ssl", feature = "gssapi", feature = "zstd"))]
fn what_was_built_in_can_be_set() {
    for (name, value) in [
        ("security.protocol", "sasl_ssl"),
        ("sasl.mechanism", "SCRAM-SHA-512"),
        ("sasl.kerberos.keytab", "a"),
        ("compression.codec", "zstd"),
        ("ssl.ca.location", "a"),
    ] {
        assert!(Settings::new([(name, value)]).is_ok(), "{name}");
    }
}
