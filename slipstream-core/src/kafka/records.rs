//! Records that wait: their bytes one after the other in one place, so that none of them is an allocation.
//!
//! ```text
//! bytes  │ key │ value │ header's name │ its value │ key │ value │ …
//! spans  │ lengths, topic, partition, time         │ lengths …
//! ```
//!
//! Invariants: a record is there whole or not at all, also when its codec fails or panics; records leave in the order
//! in which they came.
use super::{
    deliveries::Ticket,
    native_producer::{NativeTopic, RawRecord},
};
use rdkafka::error::RDKafkaErrorCode;
use std::sync::Arc;

/// How many bytes stay allocated when the records are gone. Less, and a usual message allocates again; more, and one
/// large message is felt for ever.
const KEPT_BYTES: usize = 1 << 20;

/// How many topics stay known when the records are gone. Fewer, and each message counts its topics' holders; more, and
/// topics that nobody has any more are kept.
const KEPT_TOPICS: usize = 16;

/// Records for the topics of one producer.
#[derive(Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    headers: Vec<Lengths>,
    /// Those that the spans name by their places.
    topics: Vec<Arc<NativeTopic>>,
    /// How many have left.
    gone: usize,
}

#[derive(Clone, Copy)]
struct Span {
    /// Of the key; the rest follows it.
    begin: usize,
    /// `None` is null.
    key: Option<usize>,
    value: Option<usize>,
    first_header: usize,
    headers: usize,
    topic: usize,
    partition: Option<i32>,
    millis: Option<i64>,
    ticket: Ticket,
}

#[derive(Clone, Copy)]
struct Lengths {
    name: usize,
    value: Option<usize>,
}

impl Records {
    pub(super) fn len(&self) -> usize {
        self.spans.len() - self.gone
    }

    /// Begins a record at the end; it is not there until it is [finished](Draft::finish).
    pub(super) fn draft(&mut self, topic: &Arc<NativeTopic>) -> Draft<'_> {
        let topic = self.place(topic);
        let span = Span {
            begin: self.bytes.len(),
            key: None,
            value: None,
            first_header: self.headers.len(),
            headers: 0,
            topic,
            partition: None,
            millis: None,
            ticket: Ticket::default(),
        };
        Draft { records: self, span, is_finished: false }
    }

    fn place(&mut self, topic: &Arc<NativeTopic>) -> usize {
        match self.topics.iter().position(|known| Arc::ptr_eq(known, topic)) {
            Some(place) => place,
            None => {
                self.topics.push(Arc::clone(topic));
                self.topics.len() - 1
            }
        }
    }

    /// Forgets the newest.
    pub(super) fn drop_last(&mut self) {
        if self.len() > 0
            && let Some(span) = self.spans.pop()
        {
            self.truncate(&span);
        }
    }

    fn truncate(&mut self, span: &Span) {
        self.bytes.truncate(span.begin);
        self.headers.truncate(span.first_header);
    }

    /// All of them leave with this ticket.
    pub(super) fn stamp(&mut self, ticket: Ticket) {
        for span in &mut self.spans {
            span.ticket = ticket;
        }
    }

    /// Gives the records to librdkafka, oldest first, so many at the most, until its queue is full; answers whether it
    /// is. `refused` hears of those that it will never take.
    pub(super) fn produce(
        &mut self,
        most: usize,
        mut refused: impl FnMut(Ticket, &NativeTopic, Option<i32>, RDKafkaErrorCode),
    ) -> bool {
        for _ in 0..most {
            let Some(span) = self.spans.get(self.gone) else { break };
            let Some(topic) = self.topics.get(span.topic) else { break };
            match topic.produce(&self.raw(span), self.headers(span), span.ticket.as_opaque()) {
                Err(RDKafkaErrorCode::QueueFull) => return true,
                Err(error) => refused(span.ticket, topic, span.partition, error),
                Ok(()) => {}
            }
            self.gone += 1;
        }
        if self.gone == self.spans.len() {
            self.clear();
        }
        false
    }

    /// Takes all records of `others` to its own end.
    pub(super) fn append(&mut self, others: &mut Records) {
        for span in others.spans.get(others.gone..).unwrap_or_default() {
            let Some(topic) = others.topics.get(span.topic) else { continue };
            let (begin, first_header) = (self.bytes.len(), self.headers.len());
            let topic = self.place(topic);
            self.bytes.extend_from_slice(others.bytes.get(span.begin..others.end(span)).unwrap_or_default());
            self.headers.extend_from_slice(others.lengths(span));
            self.spans.push(Span { begin, first_header, topic, ..*span });
        }
        others.clear();
    }

    fn clear(&mut self) {
        self.gone = 0;
        self.bytes.clear();
        self.spans.clear();
        self.headers.clear();
        if self.topics.len() > KEPT_TOPICS {
            self.topics.clear();
        }
        self.bytes.shrink_to(KEPT_BYTES);
        self.spans.shrink_to(KEPT_BYTES / size_of::<Span>());
        self.headers.shrink_to(KEPT_BYTES / size_of::<Lengths>());
    }

    fn raw(&self, span: &Span) -> RawRecord<'_> {
        let value = span.begin + span.key.unwrap_or(0);
        RawRecord {
            key: self.part(span.begin, span.key),
            value: self.part(value, span.value),
            partition: span.partition,
            millis: span.millis,
        }
    }

    fn headers(&self, span: &Span) -> impl ExactSizeIterator<Item = (&[u8], Option<&[u8]>)> {
        let mut at = span.begin + span.key.unwrap_or(0) + span.value.unwrap_or(0);
        self.lengths(span).iter().map(move |lengths| {
            let name = self.part(at, Some(lengths.name)).unwrap_or_default();
            let value = self.part(at + lengths.name, lengths.value);
            at += lengths.name + lengths.value.unwrap_or(0);
            (name, value)
        })
    }

    fn part(&self, begin: usize, length: Option<usize>) -> Option<&[u8]> {
        length.and_then(|length| self.bytes.get(begin..begin + length))
    }

    fn lengths(&self, span: &Span) -> &[Lengths] {
        self.headers.get(span.first_header..span.first_header + span.headers).unwrap_or_default()
    }

    fn end(&self, span: &Span) -> usize {
        let headers = self.lengths(span).iter().map(|lengths| lengths.name + lengths.value.unwrap_or(0));
        span.begin + span.key.unwrap_or(0) + span.value.unwrap_or(0) + headers.sum::<usize>()
    }
}

/// A record that is being written. Dropped before it is finished, it leaves nothing.
pub(super) struct Draft<'r> {
    records: &'r mut Records,
    span: Span,
    is_finished: bool,
}

impl Draft<'_> {
    /// Writes the key, or says that it is null; before the value.
    pub(super) fn key<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<bool, E>) -> Result<(), E> {
        self.span.key = self.write(write)?;
        Ok(())
    }

    /// Writes the value, or says that it is null; before the headers.
    pub(super) fn value<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<bool, E>) -> Result<(), E> {
        self.span.value = self.write(write)?;
        Ok(())
    }

    fn write<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<bool, E>) -> Result<Option<usize>, E> {
        let begin = self.records.bytes.len();
        let is_there = write(&mut self.records.bytes)?;
        // A codec appends; one that took away what others wrote has written nothing.
        Ok(is_there.then(|| self.records.bytes.len().saturating_sub(begin)))
    }

    pub(super) fn header(&mut self, name: &[u8], value: Option<&[u8]>) {
        self.records.bytes.extend_from_slice(name);
        self.records.bytes.extend_from_slice(value.unwrap_or_default());
        self.records.headers.push(Lengths { name: name.len(), value: value.map(<[u8]>::len) });
        self.span.headers += 1;
    }

    /// The bytes written so far, and those of the value alone.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.records.bytes.len().saturating_sub(self.span.begin), self.span.value.unwrap_or(0))
    }

    /// The record is there.
    pub(super) fn finish(mut self, partition: Option<i32>, millis: Option<i64>) {
        let span = Span { partition, millis, ..self.span };
        self.records.spans.push(span);
        self.is_finished = true;
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            let span = self.span;
            self.records.truncate(&span);
        }
    }
}
