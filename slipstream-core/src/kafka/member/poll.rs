//! The thread that polls a consumer, and does what others ask for: nobody else calls it.
//!
//! ```text
//! its queue is not empty ─┐                ┌─▶ poll: rebalances, errors, lines for the log
//! command, seek, commit ──┼──unpark──▶ turn┼─▶ commands, seeks, what is to be committed
//! 100 ms ─────────────────┘                └─▶ park
//! ```
//!
//! Invariants: no turn waits for a broker but to answer a question, to assign
//! and to let go; the consumer is dropped here, after its queues.
use super::{
    Command, Reply, Shared,
    broker::{self, Described},
    context::Consumer,
    instances::Claim,
    slot::{Phase, Slot, Trouble},
    telling,
    trouble::{self, Kind},
};
use crate::kafka::{
    Kafka, TopicError,
    native::{Queue, Replies, listed},
};
use rdkafka::{
    Offset, TopicPartitionList,
    consumer::Consumer as _,
    error::{KafkaError, RDKafkaErrorCode},
};
use std::{
    sync::{Arc, PoisonError, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

/// How the threads are called.
pub(super) const NAME: &str = "kafka-poll";

/// Between two turns at the most: what nobody wakes it for is seen this late.
const TURN: Duration = Duration::from_millis(100);
/// A seek that comes before the fetching has begun is tried again this soon, and then ever later.
const SOON: Duration = Duration::from_millis(1);
/// For the last commit, when the group is left.
const LAST_COMMIT: Duration = Duration::from_secs(10);
/// For a question of the program's.
const ANSWER: Duration = Duration::from_secs(10);

struct Poller {
    shared: Arc<Shared>,
    consumer: Arc<Consumer>,
    describing: Vec<Describing>,
    is_reading: bool,
    /// When the topics were looked at last, without a group.
    looked: Instant,
    /// When a seek is tried again, and how long was waited for it.
    seek_again: Option<Duration>,
    // A cluster inside of this process lives as long as its consumers, and the instance's name is taken as long.
    _kafka: Kafka,
    _claim: Option<Claim>,
}

struct Describing {
    topic: Arc<str>,
    since: Instant,
    within: Duration,
    reply: Reply<Described>,
}

/// Begins.
pub(super) fn start(
    shared: Arc<Shared>,
    mut consumer: Consumer,
    kafka: Kafka,
    claim: Option<Claim>,
) -> Result<(), TopicError> {
    let run = move || {
        let this = thread::current();
        let _ends = Ends(Arc::clone(&shared));
        let _ = shared.thread.set(this.clone());
        consumer.set_nonempty_callback(move || this.unpark());
        let consumer = Arc::new(consumer);
        shared.committing().replies = Replies::new(&consumer);
        let poller = Poller {
            shared,
            consumer,
            describing: Vec::new(),
            is_reading: false,
            looked: Instant::now(),
            seek_again: None,
            _kafka: kafka,
            _claim: claim,
        };
        poller.run();
    };
    let started = thread::Builder::new().name(NAME.to_owned()).spawn(run);
    started.map(drop).map_err(|error| TopicError::client(KafkaError::ClientCreation(error.to_string())))
}

impl Poller {
    fn run(mut self) {
        loop {
            self.poll();
            if self.shared.quits() {
                return self.close();
            }
            let mut leaving = Vec::new();
            self.commands(&mut leaving);
            if !leaving.is_empty() {
                self.last_commit();
                // Whoever asks from now on is told that it is closed.
                self.close();
                leaving.into_iter().for_each(|reply| drop(reply.send(Ok(()))));
                return;
            }
            self.describe();
            if !self.is_reading && self.shared.is_read.load(Ordering::Acquire) {
                self.is_reading = true;
                if let Err(error) = self.read() {
                    self.shared.fail(error);
                }
            }
            self.called_for();
            self.shared.commit_on_the_way();
            self.look();
            let wait = if self.describing.is_empty() { TURN } else { SOON };
            thread::park_timeout(self.seek_again.map_or(wait, |again| again.min(wait)));
        }
    }

    /// While partitions are being dealt out the group takes no offsets. That goes on only while the consumer is
    /// polled, and then they are told again.
    fn last_commit(&self) {
        const AGAIN: Duration = Duration::from_millis(20);
        let deadline = Instant::now() + LAST_COMMIT;
        loop {
            self.shared.commit_due(deadline);
            let has_all = self.shared.key.group.is_none() || self.shared.due().is_empty();
            if has_all || self.shared.has_failed() || Instant::now() >= deadline {
                return;
            }
            thread::park_timeout(AGAIN);
            self.poll();
        }
    }

    /// Takes all that has come, also what the crate calls nothing: after each call back there may be more.
    fn poll(&self) {
        loop {
            let calls = self.shared.calls.load(Ordering::Relaxed);
            match self.consumer.poll(Duration::ZERO) {
                Some(Ok(message)) => {
                    // It would be lost: no partition is assigned whose queue is not forwarded.
                    let said = "a message has come past its queue".to_owned();
                    let topic = rdkafka::Message::topic(&message).to_owned();
                    self.shared.fail(TopicError::Read { topic, said }.into());
                }
                Some(Err(KafkaError::MessageConsumptionFatal(code))) => {
                    let said = self
                        .consumer
                        .client()
                        .fatal_error()
                        .map_or_else(|| code.to_string(), |(_, said)| said);
                    let topic = self.shared.slots().first().map(|slot| slot.topic.to_string());
                    self.shared.fail(TopicError::Read { topic: topic.unwrap_or_default(), said }.into());
                }
                // The context has heard of it.
                Some(Err(_)) => {}
                None if calls == self.shared.calls.load(Ordering::Relaxed) => return,
                None => {}
            }
        }
    }

    fn commands(&mut self, leaving: &mut Vec<Reply<()>>) {
        let commands = self.shared.commands().as_mut().map(std::mem::take);
        for command in commands.into_iter().flatten() {
            match command {
                Command::Describe { topic, since, within, reply } => {
                    self.describing.push(Describing { topic, since, within, reply });
                }
                Command::Resolve { slot, places, reply } => {
                    drop(reply.send(self.shared.resolved(&self.consumer, &slot, &places)));
                }
                Command::Ends { slot, reply } => drop(reply.send(self.shared.ended(&self.consumer, &slot))),
                Command::Leave { reply } => leaving.push(reply),
            }
        }
    }

    /// Asks once for each topic that somebody waits for.
    fn describe(&mut self) {
        for waiting in std::mem::take(&mut self.describing) {
            let Describing { topic, since, within, reply } = waiting;
            if reply.is_canceled() {
                continue;
            }
            let answer = if self.shared.has_failed() {
                let cause = self.shared.failure_of(&topic);
                let other = |cause: crate::BoxError| TopicError::Read {
                    topic: topic.to_string(),
                    said: cause.to_string(),
                };
                Err(cause.downcast::<TopicError>().map_or_else(other, |error| *error))
            } else {
                broker::describe(&self.shared, &self.consumer, &topic, since)
            };
            match answer {
                Ok(Some(described)) => {
                    self.count(&topic, described.partitions);
                    drop(reply.send(Ok(described)));
                }
                Ok(None) if since.elapsed() < within => {
                    self.describing.push(Describing { topic, since, within, reply });
                }
                Ok(None) => {
                    drop(reply.send(Err(self.shared.unreachable(&topic, since.elapsed()))));
                }
                Err(error) => drop(reply.send(Err(error))),
            }
        }
    }

    fn count(&self, topic: &Arc<str>, partitions: i32) {
        let mut counts = self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let other = counts.iter().find(|(other, count)| *other != topic && **count != partitions);
        if let Some((other, count)) = other
            && self.shared.key.group.is_some()
        {
            tracing::warn!(
                "topic `{topic}` has {partitions} partitions and topic `{other}` {count}: messages of equal keys may meet \
                 in different processes"
            );
        }
        counts.insert(Arc::clone(topic), partitions);
    }

    /// Begins to read: all topics have joined.
    fn read(&mut self) -> Result<(), crate::BoxError> {
        let slots = self.shared.slots();
        for slot in &slots {
            let queue = Queue::new(&self.consumer, &slot.waker);
            slot.gate().queue = Some(queue.ok_or("there is no memory for a queue of librdkafka's")?);
        }
        if self.shared.key.group.is_some() {
            let topics: Vec<&str> = slots.iter().map(|slot| &*slot.topic).collect();
            self.consumer.subscribe(&topics)?;
            return Ok(());
        }
        self.looked = Instant::now();
        let all = slots.into_iter().map(|slot| {
            let partitions = (0..self.shared.partitions(&slot.topic)).collect();
            (slot, partitions)
        });
        self.shared.assign(&self.consumer, &all.collect::<Vec<_>>(), false, false)
    }

    /// Without a group nobody else tells of new partitions.
    fn look(&mut self) {
        let is_due = self.is_reading && self.looked.elapsed() >= self.shared.looks_every;
        if self.shared.key.group.is_some() || !is_due || self.shared.has_failed() {
            return;
        }
        self.looked = Instant::now();
        for slot in self.shared.slots() {
            let known = self.shared.partitions(&slot.topic);
            let Ok(Some(described)) =
                broker::describe(&self.shared, &self.consumer, &slot.topic, Instant::now())
            else {
                continue;
            };
            if described.partitions > known {
                tracing::info!("topic `{}` has {} partitions now", slot.topic, described.partitions);
                self.count(&slot.topic, described.partitions);
                let new = [(slot, (known..described.partitions).collect())];
                if let Err(error) = self.shared.assign(&self.consumer, &new, true, false) {
                    self.shared.fail(error);
                }
            }
        }
    }

    /// Does what feeds have left for this thread.
    fn called_for(&mut self) {
        let mut any = false;
        for slot in self.shared.slots() {
            if slot.places.until.is_some() && matches!(slot.gate().phase, Phase::Empty(_)) {
                // It looks at the clock.
                slot.waker.wake();
            }
            if !slot.calls.swap(false, Ordering::AcqRel) {
                continue;
            }
            // Not in the loop's head, which would keep the gate while it runs.
            let troubles = slot.gate().take_troubles();
            for trouble in troubles {
                self.troubled(&slot, &trouble);
            }
            if !self.seek(&slot) {
                slot.calls.store(true, Ordering::Release);
                any = true;
            }
        }
        self.seek_again = any.then(|| self.seek_again.map_or(SOON, |before| (before * 2).min(TURN)));
    }

    /// Seeks the partitions of a topic that are this process's. Answers whether all of them are.
    fn seek(&self, slot: &Slot) -> bool {
        let mut gate = slot.gate();
        let due = gate.sought.iter().filter(|(partition, _)| gate.is_ours(**partition));
        let due: Vec<_> = due.map(|(partition, offset)| (*partition, *offset)).collect();
        let mut list = TopicPartitionList::new();
        for (partition, offset) in &due {
            if list.add_partition_offset(&slot.topic, *partition, Offset::Offset(*offset)).is_err() {
                return false;
            }
        }
        if due.is_empty() {
            return true;
        }
        let sought = match self.consumer.seek_partitions(list, Duration::from_secs(1)) {
            Ok(sought) => listed(&sought),
            Err(error) => {
                self.warn(&format!("topic `{}` cannot be sought yet: {error}", slot.topic));
                return false;
            }
        };
        let mut all = true;
        for sought in sought {
            match (sought.error, sought.offset) {
                (None, Some(offset)) => {
                    gate.sought.remove(&sought.partition);
                    gate.goes_on(sought.partition, offset);
                }
                // The fetching has not begun, which takes a millisecond.
                _ => all = false,
            }
        }
        all
    }

    fn troubled(&self, slot: &Slot, trouble: &Trouble) {
        let Trouble { partition, code, text } = trouble;
        let topic = slot.topic.to_string();
        if matches!(code, RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) {
            let ranges = broker::ranges(&self.consumer, &topic, &[*partition], ANSWER);
            let next =
                slot.gate().assigned().find(|known| known.partition == *partition).map(|known| known.next);
            if let (Ok(ranges), Some(offset)) = (ranges, next)
                && let Some(range) = ranges.get(partition)
            {
                let (low, high) = (range.low, range.high);
                let error = TopicError::OutOfRange { topic, partition: *partition, offset, low, high };
                return self.shared.fail(error.into());
            }
        }
        match trouble::kind(*code) {
            Kind::Passing => self.warn(&format!("partition {partition} of topic `{topic}`: {code}: {text}")),
            kind => {
                let said = format!("partition {partition}: {code}: {text}");
                self.shared.fail(self.shared.error(&topic, kind, said).into());
            }
        }
    }

    fn warn(&self, said: &str) {
        if let Some(kept_back) = self.shared.limit.admits() {
            tracing::warn!("{said} ({kept_back} lines kept back before)");
        }
    }

    /// Closes the consumer, which takes it out of the group.
    fn close(self) {
        let Poller { shared, consumer, .. } = self;
        shared.close();
        drop(consumer);
    }
}

/// When the thread ends, in whatever way, nobody waits for it.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        if thread::panicking() {
            let topic = self.0.slots().first().map(|slot| slot.topic.to_string()).unwrap_or_default();
            self.0.fail(TopicError::Read { topic, said: "its thread has panicked".into() }.into());
        }
        self.0.close();
    }
}

impl Shared {
    /// From now on nothing is read, committed or answered: what holds the consumer is let go.
    fn close(&self) {
        self.closes.store(true, Ordering::Release);
        for slot in self.slots() {
            // Outside of the gate, since it wakes whoever reads.
            let queue = slot.gate().queue.take();
            drop(queue);
            slot.stands(None);
        }
        *self.committing() = telling::Committing::default();
        // Whoever waits is told by this.
        let unanswered = self.commands().take();
        drop(unanswered);
    }

    /// Answers what messages in hand may wait for. The rest of what is asked for has its time.
    pub(super) fn answer(&self, consumer: &Consumer) {
        let is_urgent =
            |command: &mut Command| matches!(command, Command::Resolve { .. } | Command::Ends { .. });
        let urgent =
            self.commands().as_mut().map(|commands| commands.extract_if(.., is_urgent).collect::<Vec<_>>());
        for command in urgent.into_iter().flatten() {
            match command {
                Command::Resolve { slot, places, reply } => {
                    drop(reply.send(self.resolved(consumer, &slot, &places)));
                }
                Command::Ends { slot, reply } => drop(reply.send(self.ended(consumer, &slot))),
                Command::Describe { .. } | Command::Leave { .. } => {}
            }
        }
    }

    fn resolved(
        &self,
        consumer: &Consumer,
        slot: &Slot,
        places: &[(i32, crate::kafka::Offset)],
    ) -> Result<super::Resolved, TopicError> {
        let partitions: Vec<_> = places.iter().map(|(partition, _)| *partition).collect();
        let (phase, ours): (_, Vec<_>) = {
            let gate = slot.gate();
            (gate.phase, partitions.iter().map(|partition| gate.is_ours(*partition)).collect())
        };
        let deadline = Instant::now() + ANSWER;
        let known: Vec<_> =
            partitions.iter().copied().filter(|at| (0..self.partitions(&slot.topic)).contains(at)).collect();
        let ranges = self
            .asked(&slot.topic, deadline, |within| broker::ranges(consumer, &slot.topic, &known, within))?;
        let offsets = self.asked(&slot.topic, deadline, |within| {
            broker::resolve(consumer, &slot.topic, places, &ranges, within)
        })?;
        let ours =
            partitions.into_iter().zip(ours).filter(|(_, is_ours)| *is_ours).map(|(partition, _)| partition);
        Ok(super::Resolved { offsets, ranges, phase, ours: ours.collect() })
    }

    fn ended(&self, consumer: &Consumer, slot: &Slot) -> Result<Vec<(super::Assigned, i64)>, TopicError> {
        let assigned: Vec<_> = slot.gate().assigned().collect();
        let partitions: Vec<_> = assigned.iter().map(|known| known.partition).collect();
        let ranges = self.asked(&slot.topic, Instant::now() + ANSWER, |within| {
            broker::ranges(consumer, &slot.topic, &partitions, within)
        })?;
        let end = |known: super::Assigned| Some((known, ranges.get(&known.partition)?.high));
        Ok(assigned.into_iter().filter_map(end).collect())
    }
}
