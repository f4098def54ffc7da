//! What is not yet acknowledged: how many records, by the flushes that wait for them.
//!
//! ```text
//! hand_over(3) ─▶ open:  │ 0: 12 records │ 1: 3 records │      a flush closes the newest group, and waits until
//! settle(…)    ─▶            │ flush A waits                   this one and those before it are empty
//! ```
//!
//! Invariants: a flush waits for what was handed over before it, and for nothing later; the first record that was
//! given up fails it and all later ones.
use super::{
    TopicError,
    connect::{BELIEVED, Refusal},
};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};
use tokio::sync::{Notify, oneshot};

/// What a record is counted as: the number of its group, or of the call that awaits it, told apart by the last bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ticket(usize);

impl Ticket {
    fn of_group(number: usize) -> Self {
        Ticket(number << 1)
    }
    fn of_call(number: usize) -> Self {
        Ticket(number << 1 | 1)
    }
    fn call(self) -> Option<usize> {
        (self.0 & 1 == 1).then_some(self.0 >> 1)
    }
    fn group(self) -> usize {
        self.0 >> 1
    }
    pub(super) fn as_opaque(self) -> usize {
        self.0
    }
    pub(super) fn from_opaque(opaque: usize) -> Self {
        Ticket(opaque)
    }
}

/// Why records were not delivered.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// A record was given up.
    Record { topic: String, partition: Option<i32>, cause: RDKafkaErrorCode },
    /// The brokers do not let the producer in, or librdkafka has given it up.
    Client(Refusal),
}

impl From<Failure> for TopicError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Record { topic, partition, cause } => {
                TopicError::Delivery { topic, partition, cause: KafkaError::MessageProduction(cause) }
            }
            Failure::Client(refusal) => refusal.into(),
        }
    }
}

/// The records of one producer that are not yet acknowledged.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    state: Mutex<State>,
    /// A group is empty, or something has failed.
    changed: Notify,
    /// There is a failure: looked at for each record, without the lock.
    has_failed: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the oldest group that is not empty, or of the newest.
    first: usize,
    /// How many records each group has; the last is that of the next records.
    groups: VecDeque<usize>,
    /// The calls that await a record each.
    calls: HashMap<usize, oneshot::Sender<Result<(), Failure>>>,
    next_call: usize,
    failure: Option<Failure>,
    /// The login was refused then, and nothing was acknowledged since.
    refused: Option<(Refusal, Instant)>,
}

impl State {
    /// The group of the next records.
    fn newest(&self) -> usize {
        self.first + self.groups.len().saturating_sub(1)
    }

    fn is_settled(&self) -> bool {
        self.groups.iter().all(|records| *records == 0)
    }
}

impl Deliveries {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many records are on their way from now on.
    pub(super) fn hand_over(&self, records: usize) -> Ticket {
        let mut state = self.lock();
        match state.groups.back_mut() {
            Some(newest) => *newest += records,
            None => state.groups.push_back(records),
        }
        Ticket::of_group(state.newest())
    }

    /// A record is on its way, of which the caller wants to hear.
    pub(super) fn call(&self) -> (Ticket, oneshot::Receiver<Result<(), Failure>>) {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.lock();
        let number = state.next_call;
        state.next_call = number.wrapping_add(1);
        state.calls.insert(number, sender);
        (Ticket::of_call(number), receiver)
    }

    /// These records are acknowledged, or were given up.
    pub(super) fn settle(&self, reports: impl Iterator<Item = (Ticket, Option<Failure>)>) {
        let mut is_news = false;
        let mut state = self.lock();
        for (ticket, failure) in reports {
            if failure.is_none() {
                state.refused = None;
            }
            if let Some(call) = ticket.call() {
                let heard = state.calls.remove(&call).map(|call| call.send(failure.map_or(Ok(()), Err)));
                if let Some(Err(Err(failure))) = heard {
                    let error = TopicError::from(failure);
                    tracing::warn!("a record was given up whose call was dropped: {error}");
                }
                continue;
            }
            let place = ticket.group().wrapping_sub(state.first);
            if let Some(records) = state.groups.get_mut(place) {
                *records = records.saturating_sub(1);
                is_news |= *records == 0;
            }
            if failure.is_some() && state.failure.is_none() {
                state.failure = failure;
                self.has_failed.store(true, Ordering::Release);
                is_news = true;
            }
        }
        if is_news {
            while state.groups.len() > 1 && state.groups.front() == Some(&0) {
                state.groups.pop_front();
                state.first += 1;
            }
            drop(state);
            self.changed.notify_waiters();
        }
    }

    /// The client is of no use: whatever is on its way fails. Where nothing is, a refused login may be mended in time.
    pub(super) fn refuse(&self, refusal: &Refusal) {
        let mut state = self.lock();
        let calls = std::mem::take(&mut state.calls);
        if matches!(refusal, Refusal::Fatal { .. }) || !state.is_settled() {
            state.failure.get_or_insert_with(|| Failure::Client(refusal.clone()));
            self.has_failed.store(true, Ordering::Release);
        }
        state.refused = Some((refusal.clone(), Instant::now()));
        drop(state);
        for call in calls.into_values() {
            // Whoever has dropped its call does not want to know.
            let _ = call.send(Err(Failure::Client(refusal.clone())));
        }
        self.changed.notify_waiters();
    }

    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// How many records are on their way.
    pub(super) fn unacknowledged(&self) -> usize {
        let state = self.lock();
        state.groups.iter().sum::<usize>() + state.calls.len()
    }

    /// Waits until all that was handed over before the call is acknowledged; `hurry` is called if it is not yet, and
    /// what it gives is kept until then.
    pub(super) async fn flush<H>(&self, hurry: impl FnOnce() -> H) -> Result<(), Failure> {
        let group = {
            let mut state = self.lock();
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            if state.is_settled() {
                return Ok(());
            }
            if let Some((refusal, _)) = state.refused.take_if(|(_, when)| when.elapsed() < BELIEVED) {
                let failure = Failure::Client(refusal);
                state.failure = Some(failure.clone());
                self.has_failed.store(true, Ordering::Release);
                return Err(failure);
            }
            match state.groups.back() {
                // One before it is not empty.
                Some(0) => state.newest().saturating_sub(1),
                _ => {
                    let newest = state.newest();
                    state.groups.push_back(0);
                    newest
                }
            }
        };
        let _hurried = hurry();
        loop {
            let changed = self.changed.notified();
            {
                let state = self.lock();
                if let Some(failure) = &state.failure {
                    return Err(failure.clone());
                }
                let older = state.groups.iter().take((group + 1).saturating_sub(state.first));
                if older.sum::<usize>() == 0 {
                    return Ok(());
                }
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::poll_immediate;
    use std::pin::pin;

    fn settle(deliveries: &Deliveries, tickets: &[Ticket]) {
        deliveries.settle(tickets.iter().map(|ticket| (*ticket, None)));
    }

    fn no_hurry() {}

    fn failure() -> Failure {
        Failure::Record { topic: "t".into(), partition: Some(3), cause: RDKafkaErrorCode::MessageTimedOut }
    }

    #[tokio::test]
    async fn a_flush_waits_for_what_was_handed_over_before_it_and_for_nothing_later() {
        let deliveries = Deliveries::default();
        assert!(poll_immediate(deliveries.flush(no_hurry)).await.is_some(), "there is nothing");
        let first = deliveries.hand_over(2);
        let mut a = pin!(deliveries.flush(no_hurry));
        assert!(poll_immediate(&mut a).await.is_none());
        let mut b = pin!(deliveries.flush(no_hurry));
        assert!(poll_immediate(&mut b).await.is_none());
        let second = deliveries.hand_over(1);
        assert_ne!(first, second);
        let mut c = pin!(deliveries.flush(no_hurry));
        assert!(poll_immediate(&mut c).await.is_none());
        deliveries.hand_over(7);

        // They may be acknowledged in any order.
        settle(&deliveries, &[second]);
        assert!(poll_immediate(&mut a).await.is_none());
        assert!(poll_immediate(&mut c).await.is_none());
        settle(&deliveries, &[first, first]);
        for flush in [a, b, c] {
            assert!(matches!(poll_immediate(flush).await, Some(Ok(()))));
        }
        assert_eq!(deliveries.unacknowledged(), 7);
    }

    #[tokio::test]
    async fn the_first_failure_fails_those_who_wait_and_all_later_ones() {
        let deliveries = Deliveries::default();
        let ticket = deliveries.hand_over(2);
        let mut waiting = pin!(deliveries.flush(no_hurry));
        assert!(poll_immediate(&mut waiting).await.is_none());
        deliveries.settle([(ticket, Some(failure())), (ticket, None)].into_iter());
        assert!(deliveries.has_failed());
        assert!(matches!(poll_immediate(&mut waiting).await, Some(Err(Failure::Record { .. }))));
        assert!(matches!(poll_immediate(deliveries.flush(no_hurry)).await, Some(Err(_))));
    }

    #[tokio::test]
    async fn a_call_hears_of_its_own_record_and_no_flush_waits_for_it() {
        let deliveries = Deliveries::default();
        let (good, heard) = deliveries.call();
        let (bad, refused) = deliveries.call();
        assert!(poll_immediate(deliveries.flush(no_hurry)).await.is_some());
        deliveries.settle([(bad, Some(failure())), (good, None)].into_iter());
        assert!(matches!(heard.await, Ok(Ok(()))));
        assert!(matches!(refused.await, Ok(Err(Failure::Record { .. }))));
        assert!(!deliveries.has_failed());
    }

    #[tokio::test]
    async fn a_refused_login_fails_what_is_on_its_way_and_what_comes_next_unless_that_is_acknowledged() {
        let login = Refusal::Login { brokers: "a:1".into(), reason: "wrong password".into() };
        let deliveries = Deliveries::default();
        deliveries.refuse(&login);
        assert!(!deliveries.has_failed());
        let ticket = deliveries.hand_over(1);
        settle(&deliveries, &[ticket]);
        deliveries.hand_over(1);
        assert!(poll_immediate(deliveries.flush(no_hurry)).await.is_none(), "it is mended");

        let deliveries = Deliveries::default();
        deliveries.refuse(&login);
        deliveries.hand_over(1);
        assert!(matches!(poll_immediate(deliveries.flush(no_hurry)).await, Some(Err(Failure::Client(_)))));

        let deliveries = Deliveries::default();
        let (_, heard) = deliveries.call();
        deliveries.hand_over(1);
        deliveries.refuse(&login);
        assert!(matches!(heard.await, Ok(Err(Failure::Client(_)))));
        assert!(matches!(deliveries.flush(no_hurry).await, Err(Failure::Client(_))));
    }
}
