//! What a client says of its connection to the brokers, and whether a topic is there.
//!
//! ```text
//! librdkafka ──error──▶ Connection: the login refused? a fatal error?     look_up ──▶ number of partitions
//!                          └── log: "no broker answers" once in a while      └── or an error that says what is missing
//! ```
//!
//! Invariants: whoever waits for brokers waits for a bounded time, and the error names brokers and topic; a thread
//! that waits stops when nobody waits for it any more.
use super::TopicError;
use rdkafka::{
    ClientContext,
    client::Client,
    config::RDKafkaLogLevel,
    error::{KafkaError, RDKafkaErrorCode},
};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a client may look for its brokers when it starts. Shorter, and a cluster that is just electing its leaders
/// is an error; longer, and a wrong address is told late.
pub(super) const LOOK_UP: Duration = Duration::from_secs(30);

/// How often it is said that no broker answers: librdkafka says it twenty times a second.
const DOWN_AGAIN: Duration = Duration::from_secs(10);

/// How soon a client that looks for its brokers hears that nobody waits for it, or that its login is refused.
const STEP: Duration = Duration::from_millis(200);

/// How long a topic that a broker does not know may be one that was created a moment ago.
const JUST_CREATED: Duration = Duration::from_secs(1);

/// How long a refused login is believed. Shorter, and nobody hears of one that lasts: librdkafka repeats it only after
/// half a minute. Longer, and one that was mended long ago is still an error.
pub(super) const BELIEVED: Duration = Duration::from_secs(45);

/// What a client has said of its connection.
#[derive(Debug)]
pub(super) struct Connection {
    brokers: String,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    refusal: Option<(Refusal, Instant)>,
    /// The newest error, whatever it was.
    last: Option<String>,
    told_down: Option<Instant>,
}

/// Why a client has no use for its connection.
#[derive(Debug, Clone)]
pub(super) enum Refusal {
    /// The brokers do not let it in.
    Login { brokers: String, reason: String },
    /// librdkafka has given it up.
    Fatal { reason: String },
}

impl From<Refusal> for TopicError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Login { brokers, reason } => TopicError::Login { brokers, reason },
            Refusal::Fatal { reason } => TopicError::Fatal { reason },
        }
    }
}

impl Connection {
    /// For a client of these brokers.
    pub(super) fn new(brokers: &str) -> Self {
        Connection { brokers: brokers.to_owned(), said: Mutex::default() }
    }

    /// Why the client is of no use, if it has said so.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let believed = said.refusal.as_ref().filter(|(refusal, heard)| {
            matches!(refusal, Refusal::Fatal { .. }) || heard.elapsed() < BELIEVED
        });
        believed.map(|(refusal, _)| refusal.clone())
    }

    /// Hears of an error of the client; answers why the client is of no use, where the error says so.
    pub(super) fn hear(&self, code: RDKafkaErrorCode, reason: &str) -> Option<Refusal> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let refusal = match code {
            RDKafkaErrorCode::Authentication | RDKafkaErrorCode::SaslAuthenticationFailed => {
                Some(Refusal::Login { brokers: self.brokers.clone(), reason: reason.to_owned() })
            }
            RDKafkaErrorCode::Fatal => Some(Refusal::Fatal { reason: reason.to_owned() }),
            RDKafkaErrorCode::AllBrokersDown => {
                if said.told_down.is_none_or(|told| told.elapsed() >= DOWN_AGAIN) {
                    said.told_down = Some(Instant::now());
                    let last = said.last.as_deref().unwrap_or(reason);
                    tracing::warn!(brokers = self.brokers, "no broker answers, trying again: {last}");
                }
                return None;
            }
            // librdkafka's log has a line for it.
            _ => {
                tracing::debug!(brokers = self.brokers, "{code}: {reason}");
                None
            }
        };
        said.last = Some(reason.to_owned());
        if let Some(refusal) = &refusal {
            said.refusal = Some((refusal.clone(), Instant::now()));
        }
        refusal
    }

    /// How many partitions the topic has, which may have been created a moment ago. Waits on this thread for the
    /// brokers, at most so long, and not once `quits`; `between` is called every now and then, for those who have to
    /// poll the client.
    ///
    /// # Errors
    /// [`TopicError`] when the topic is not there, when no broker answers, or when they do not let the client in.
    pub(super) fn look_up<C: ClientContext>(
        &self,
        client: &Client<C>,
        topic: &str,
        within: Duration,
        quits: &AtomicBool,
        between: impl FnMut(),
    ) -> Result<usize, TopicError> {
        self.look_up_again(client, topic, within, JUST_CREATED, quits, between)
    }

    /// As [`look_up`](Connection::look_up), and looks again for so long where the topic is not there.
    pub(super) fn look_up_again<C: ClientContext>(
        &self,
        client: &Client<C>,
        topic: &str,
        within: Duration,
        again: Duration,
        quits: &AtomicBool,
        mut between: impl FnMut(),
    ) -> Result<usize, TopicError> {
        let began = Instant::now();
        loop {
            let left = within.saturating_sub(began.elapsed());
            let fetched = client.fetch_metadata(Some(topic), left.min(STEP));
            between();
            let unknown = || TopicError::Unknown { topic: topic.to_owned(), brokers: self.brokers.clone() };
            let is_over = began.elapsed() >= within || quits.load(Ordering::Relaxed);
            match fetched {
                Ok(metadata) => {
                    let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else {
                        return Err(unknown());
                    };
                    let error = match found.error() {
                        None => return Ok(found.partitions().len()),
                        Some(error) => RDKafkaErrorCode::from(error),
                    };
                    match error {
                        RDKafkaErrorCode::UnknownTopicOrPartition if began.elapsed() < again && !is_over => {}
                        RDKafkaErrorCode::UnknownTopicOrPartition => return Err(unknown()),
                        // Its first leader is being elected.
                        RDKafkaErrorCode::LeaderNotAvailable if !is_over => {}
                        _ => {
                            let (topic, cause) = (topic.to_owned(), KafkaError::MetadataFetch(error));
                            return Err(TopicError::LookUp { topic, cause });
                        }
                    }
                }
                Err(cause) => {
                    if let Some(refusal) = self.refusal() {
                        return Err(refusal.into());
                    }
                    if is_over {
                        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).last.clone();
                        return Err(TopicError::Unreachable {
                            topic: topic.to_owned(),
                            brokers: self.brokers.clone(),
                            waited: began.elapsed(),
                            said: said.unwrap_or_else(|| cause.to_string()),
                        });
                    }
                }
            }
            // An answer may come at once.
            std::thread::sleep(Duration::from_millis(20).min(left));
        }
    }
}

impl ClientContext for Connection {
    fn log(&self, level: RDKafkaLogLevel, place: &str, line: &str) {
        match level {
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error
            | RDKafkaLogLevel::Warning => tracing::warn!(target: "librdkafka", "{place}: {line}"),
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => {
                tracing::info!(target: "librdkafka", "{place}: {line}");
            }
            RDKafkaLogLevel::Debug => tracing::debug!(target: "librdkafka", "{place}: {line}"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        if let Some(code) = error.rdkafka_error_code() {
            self.hear(code, reason);
        }
    }
}

/// Runs `work` on a thread that may wait. It sees by the flag that the future was dropped, and then has to return
/// soon: a runtime that is shut down waits for it.
///
/// # Cancel safety
/// As said.
pub(super) async fn waiting<T: Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, TopicError> {
    struct Quits(Arc<AtomicBool>);
    impl Drop for Quits {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let quits = Quits(Arc::default());
    let seen = Arc::clone(&quits.0);
    let done = tokio::task::spawn_blocking(move || work(&seen)).await;
    done.map_err(|cause| TopicError::Interrupted { cause: cause.into() })
}
