//! What is not yet acknowledged: how many records, by the flushes that wait for them.
//!
//! ```text
//! hand_over(3) ─▶ open:  │ 0: 12 records │ 1: 3 records │      a flush closes the newest group, and waits until
//! settle(…)    ─▶            │ flush A waits                   this one and those before it are empty
//! ```
//!
//! Invariants: a flush waits for what was handed over before it, and for nothing later; the first record that was
//! given up fails it and all later ones.
use super::{TopicError, connect::Refusal};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
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

    /// The client is of no use: whatever is on its way fails. Where nothing is, the next record may find it well.
    pub(super) fn refuse(&self, refusal: &Refusal) {
        let mut state = self.lock();
        let calls = std::mem::take(&mut state.calls);
        if matches!(refusal, Refusal::Fatal { .. }) || !state.is_settled() {
            state.failure.get_or_insert_with(|| Failure::Client(refusal.clone()));
        }
        drop(state);
        for call in calls.into_values() {
            // Whoever has dropped its call does not want to know.
            let _ = call.send(Err(Failure::Client(refusal.clone())));
        }
        self.changed.notify_waiters();
    }

    pub(super) fn has_failed(&self) -> bool {
        self.lock().failure.is_some()
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
