//! What goes wrong with a consumer: what ends its sources, and what is only said, and how often.
//!
//! Invariants: the first failure counts; each source hears of it, one of them as it is, the others as text; what
//! comes in floods, as when no broker can be reached, is said once in ten seconds.
use crate::{BoxError, kafka::TopicError};
use rdkafka::error::RDKafkaErrorCode as Code;
use std::{
    error::Error,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Why a member's sources have ended.
#[derive(Debug, Default)]
pub(super) struct Failure {
    /// Looked at without the lock.
    is: AtomicBool,
    cause: Mutex<Option<Cause>>,
}

#[derive(Debug)]
struct Cause {
    /// Until a source has taken it.
    whole: Option<BoxError>,
    said: String,
}

impl Failure {
    #[inline]
    pub(super) fn is(&self) -> bool {
        self.is.load(Ordering::Acquire)
    }

    /// It has failed, unless it had before.
    pub(super) fn set(&self, cause: BoxError) {
        let mut kept = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            let said = whole_text(&*cause);
            tracing::error!("a consumer fails: {said}");
            *kept = Some(Cause { whole: Some(cause), said });
            self.is.store(true, Ordering::Release);
        }
    }

    /// Why, for the source of this topic.
    pub(super) fn tell(&self, topic: &str) -> BoxError {
        let mut kept = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(cause) = &mut *kept else {
            return TopicError::Read { topic: topic.to_owned(), said: "its consumer is closed".into() }
                .into();
        };
        cause
            .whole
            .take()
            .unwrap_or_else(|| TopicError::Read { topic: topic.to_owned(), said: cause.said.clone() }.into())
    }
}

fn whole_text(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// What is to be done about an error of librdkafka's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No such topic.
    Unknown,
    /// Not let in at all.
    Login,
    /// Not let to the topic or the group.
    Refused,
    /// It mends itself, or a later commit covers it.
    Passing,
    /// Nothing comes any more.
    Ends,
}

/// Of an error that is not fatal by librdkafka's own word.
pub(super) fn kind(code: Code) -> Kind {
    match code {
        Code::UnknownTopicOrPartition | Code::UnknownTopic => Kind::Unknown,
        Code::Authentication | Code::SaslAuthenticationFailed => Kind::Login,
        Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed => Kind::Refused,
        Code::Fatal
        | Code::AutoOffsetReset
        | Code::FencedInstanceId
        | Code::InvalidTopic
        | Code::OffsetMetadataTooLarge
        | Code::InvalidGroupId
        | Code::InconsistentGroupProtocol
        | Code::UnsupportedForMessageFormat
        | Code::NotImplemented => Kind::Ends,
        _ => Kind::Passing,
    }
}

/// How often something may be said.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// Lets a line through once in a while, and counts the others.
#[derive(Debug, Default)]
pub(super) struct Limit(Mutex<(Option<Instant>, u64)>);

impl Limit {
    /// How many were kept back before this one, if it may be said.
    pub(super) fn admits(&self) -> Option<u64> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, kept_back) = &mut *kept;
        if last.is_some_and(|last| last.elapsed() < SAID_EVERY) {
            *kept_back += 1;
            return None;
        }
        *last = Some(Instant::now());
        Some(std::mem::take(kept_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_told_whole_once_and_then_as_text() {
        let failure = Failure::default();
        assert!(!failure.is());
        failure.set(TopicError::NoGroup { topic: "first".into() }.into());
        failure.set("second".into());
        assert!(failure.is());
        let told = failure.tell("a");
        assert!(matches!(told.downcast_ref(), Some(TopicError::NoGroup { .. })), "{told}");
        let told = failure.tell("b").to_string();
        assert!(told.starts_with("topic `b` cannot be read: topic `first` has no consumer group"), "{told}");
    }

    #[test]
    fn what_comes_in_floods_is_said_once_and_counted() {
        let limit = Limit::default();
        assert_eq!(limit.admits(), Some(0));
        assert_eq!((limit.admits(), limit.admits()), (None, None));
    }

    #[test]
    fn what_mends_itself_ends_nothing() {
        for code in [
            Code::AllBrokersDown,
            Code::BrokerTransportFailure,
            Code::PollExceeded,
            Code::IllegalGeneration,
            Code::UnknownMemberId,
            Code::RebalanceInProgress,
            Code::CoordinatorNotAvailable,
        ] {
            assert_eq!(kind(code), Kind::Passing, "{code:?}");
        }
        assert_eq!(kind(Code::TopicAuthorizationFailed), Kind::Refused);
        assert_eq!(kind(Code::UnknownTopicOrPartition), Kind::Unknown);
    }
}
