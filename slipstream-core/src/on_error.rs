//! What becomes of a message when a handler fails on it: by the handler's policy.
//!
//! ```text
//! handler fails ─▶ retry, from its savepoint, so often ─▶ then stop (the flow ends) or skip (its part is dropped)
//! ```
use std::time::Duration;

/// What is done when a handler returns an error, panics, or cannot take its item:
/// `#[handle(app.orders, on_error = OnError::skip())]`.
///
/// It is about the handler itself, and about what its outputs become inside of the store. Where a sink
/// outside of the store fails, a pipe panics, or what a message has written cannot be stored, the flow stops,
/// whatever the policy.
///
/// ```
/// use slipstream_core::OnError;
/// use std::time::Duration;
///
/// let patient = OnError::retry(3, Duration::from_millis(100)); // after 100, 200 and 400 ms
/// let patient_then_generous = patient.then_skip();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnError {
    retries: u32,
    backoff: Duration,
    skips: bool,
}

/// No wait between two tries is longer.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

impl OnError {
    /// The flow ends with an error that names the handler and the source; the message is dropped whole,
    /// and comes again after a restart. What a handler does unless told otherwise.
    #[must_use]
    pub const fn stop() -> Self {
        OnError { retries: 0, backoff: Duration::ZERO, skips: false }
    }

    /// The handler's part of the message is dropped: what it has written, given out and locked. The other
    /// handlers' parts stand, and the position moves on. It is logged, with a count.
    #[must_use]
    pub const fn skip() -> Self {
        OnError { retries: 0, backoff: Duration::ZERO, skips: true }
    }

    /// The handler is called again with the same item, at most so many `times`; what it had written and
    /// locked is dropped before. It waits `backoff` before the first of these calls and twice as long
    /// before each further one, a minute at the most. Then the flow stops. Later messages wait.
    #[must_use]
    pub const fn retry(times: u32, backoff: Duration) -> Self {
        OnError { retries: times, backoff, skips: false }
    }

    /// When all tries have failed, the handler's part is dropped, as [`skip`](OnError::skip) does.
    #[must_use]
    pub const fn then_skip(self) -> Self {
        OnError { skips: true, ..self }
    }

    /// Whether a message may go on after a failure, so that its item and a savepoint are needed.
    pub(crate) const fn mends(self) -> bool {
        self.retries > 0 || self.skips
    }

    /// What to do after the failure number `failures` of one handling, from 1.
    pub(crate) fn verdict(self, failures: u32) -> Verdict {
        if failures <= self.retries {
            let doubled = self.backoff.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
            Verdict::Retry(doubled.min(LONGEST_BACKOFF))
        } else if self.skips {
            Verdict::Skip
        } else {
            Verdict::Stop
        }
    }
}

impl Default for OnError {
    fn default() -> Self {
        Self::stop()
    }
}

/// What becomes of a message after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is dropped, and the flow ends.
    Stop,
    /// It goes on without the part of the handler that failed.
    Skip,
    /// The handler is called again after so long.
    Retry(Duration),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_waits_twice_as_long_each_time_and_then_stops_or_skips() {
        let patient = OnError::retry(3, Duration::from_millis(100));
        let waits: Vec<_> = (1..=4).map(|failures| patient.verdict(failures)).collect();
        let wait = |millis| Verdict::Retry(Duration::from_millis(millis));
        assert_eq!(waits, [wait(100), wait(200), wait(400), Verdict::Stop]);
        assert_eq!(patient.then_skip().verdict(4), Verdict::Skip);
        assert_eq!(OnError::skip().verdict(1), Verdict::Skip);
        assert_eq!(OnError::default().verdict(1), Verdict::Stop);
        let endless = OnError::retry(u32::MAX, Duration::from_secs(1));
        assert_eq!(endless.verdict(u32::MAX), Verdict::Retry(LONGEST_BACKOFF));
    }
}
