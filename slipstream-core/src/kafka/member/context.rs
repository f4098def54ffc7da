//! What librdkafka calls back, all of it on the poll thread.
use super::{Shared, trouble, trouble::Kind};
use rdkafka::{
    TopicPartitionList,
    client::ClientContext,
    config::RDKafkaLogLevel,
    consumer::{BaseConsumer, Consumer as _, ConsumerContext},
    error::{KafkaError, RDKafkaErrorCode},
    types::RDKafkaRespErr,
};
use std::sync::{Arc, atomic::Ordering};

/// The consumer of a member.
pub(in crate::kafka) type Consumer = BaseConsumer<Context>;

/// Whom librdkafka calls.
pub(in crate::kafka) struct Context {
    pub(super) shared: Arc<Shared>,
}

impl Context {
    /// Something was taken from the consumer's own queue, so there may be more.
    fn called(&self) {
        self.shared.calls.fetch_add(1, Ordering::Relaxed);
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        self.called();
        match level {
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error => {
                // Each of them is an error as well, which `error` tells.
                tracing::debug!(target: "librdkafka", "{facility}: {line}");
            }
            RDKafkaLogLevel::Warning => tracing::warn!(target: "librdkafka", "{facility}: {line}"),
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => {
                tracing::info!(target: "librdkafka", "{facility}: {line}");
            }
            RDKafkaLogLevel::Debug => tracing::debug!(target: "librdkafka", "{facility}: {line}"),
        }
    }

    fn stats_raw(&self, statistics: &[u8]) {
        self.called();
        tracing::info!(target: "librdkafka", "{}", String::from_utf8_lossy(statistics));
    }

    fn error(&self, error: KafkaError, said: &str) {
        self.called();
        let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
        self.shared.hear(code, said);
    }
}

impl ConsumerContext for Context {
    fn rebalance(&self, consumer: &Consumer, what: RDKafkaRespErr, list: &mut TopicPartitionList) {
        self.called();
        match what {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => self.shared.assigned(consumer, list),
            _ => self.shared.revoked(consumer, list),
        }
    }
}

impl Shared {
    /// librdkafka tells of an error that is not one message's.
    fn hear(&self, code: RDKafkaErrorCode, said: &str) {
        let kind = trouble::kind(code);
        let is_of_group = code == RDKafkaErrorCode::GroupAuthorizationFailed;
        if kind == Kind::Passing || is_of_group && self.key.group.is_none() {
            self.heard.keep(said);
            if let Some(kept_back) = self.limit.admits() {
                let servers = &self.key.servers;
                tracing::warn!(
                    "the brokers at {servers}: {code}: {said} ({kept_back} lines kept back before)"
                );
            }
            return;
        }
        let topic =
            self.slots().iter().map(|slot| slot.topic.to_string()).find(|topic| said.contains(&**topic));
        let topic = topic.or_else(|| self.slots().first().map(|slot| slot.topic.to_string()));
        self.fail(self.error(&topic.unwrap_or_default(), kind, format!("{code}: {said}")).into());
    }
}

/// Tells apart how assignments are changed.
pub(super) fn is_incremental(consumer: &Consumer) -> bool {
    matches!(consumer.rebalance_protocol(), rdkafka::consumer::RebalanceProtocol::Cooperative)
}
