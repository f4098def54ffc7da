//! librdkafka's producer, where its crate's safe interface allocates for each record: a topic's name is looked up
//! once, and acknowledgements are read as librdkafka has them, all of a request at once.
//!
//! ```text
//! NativeTopic::produce ─▶ librdkafka ─▶ broker ─▶ main queue ─poll─▶ Event::{Reports, Error, Log}
//! ```
//!
//! Invariants: librdkafka has copied a record when `produce` returns; a topic keeps its client alive.
#![allow(unsafe_code)]
use super::Connection;
use rdkafka::{
    ClientConfig,
    bindings::{
        RD_KAFKA_EVENT_DR, RD_KAFKA_EVENT_ERROR, RD_KAFKA_EVENT_LOG, RD_KAFKA_MSG_F_COPY,
        rd_kafka_conf_set_events, rd_kafka_event_destroy, rd_kafka_event_error, rd_kafka_event_error_string,
        rd_kafka_event_log, rd_kafka_event_message_next, rd_kafka_event_type, rd_kafka_flush,
        rd_kafka_header_add, rd_kafka_headers_destroy, rd_kafka_headers_new, rd_kafka_headers_t,
        rd_kafka_last_error, rd_kafka_message_t, rd_kafka_producev, rd_kafka_queue_destroy,
        rd_kafka_queue_get_main, rd_kafka_queue_poll, rd_kafka_queue_t, rd_kafka_queue_yield,
        rd_kafka_resp_err_t, rd_kafka_topic_destroy, rd_kafka_topic_name, rd_kafka_topic_new,
        rd_kafka_topic_t, rd_kafka_vtype_t,
    },
    client::Client,
    error::{KafkaError, KafkaResult, RDKafkaErrorCode},
    types::{RDKafkaEvent, RDKafkaType},
};
use std::{
    ffi::{CStr, CString, c_char, c_int},
    marker::PhantomData,
    ptr::{self, NonNull},
    sync::Arc,
    time::Duration,
};

/// A producer, and the queue of what it has to say.
pub(super) struct NativeProducer {
    queue: NonNull<rd_kafka_queue_t>,
    client: Arc<Client<Connection>>,
}

// SAFETY: librdkafka's queues may be used by several threads at once; the client says so itself.
unsafe impl Send for NativeProducer {}
// SAFETY: as above.
unsafe impl Sync for NativeProducer {}

/// A topic of a producer.
pub(super) struct NativeTopic {
    topic: NonNull<rd_kafka_topic_t>,
    client: Arc<Client<Connection>>,
}

// SAFETY: librdkafka's topics may be used by several threads at once.
unsafe impl Send for NativeTopic {}
// SAFETY: as above.
unsafe impl Sync for NativeTopic {}

/// A record as it is on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawRecord<'r> {
    pub(super) key: Option<&'r [u8]>,
    pub(super) value: Option<&'r [u8]>,
    /// By its key where it is `None`.
    pub(super) partition: Option<i32>,
    /// In milliseconds; now where it is `None`.
    pub(super) millis: Option<i64>,
}

/// What a producer says.
pub(super) enum Event<'e> {
    /// Records are acknowledged, or given up.
    Reports(Reports<'e>),
    /// The client has met an error that is not one record's.
    Error(RDKafkaErrorCode, String),
    /// With syslog's level, and where in librdkafka it comes from.
    Log(i32, String, String),
}

/// The records of one event.
pub(super) struct Reports<'e> {
    event: NonNull<RDKafkaEvent>,
    lives: PhantomData<&'e ()>,
}

/// What became of one record.
pub(super) struct Report<'e> {
    message: &'e rd_kafka_message_t,
}

impl NativeProducer {
    pub(super) fn new(config: &ClientConfig, connection: Connection) -> KafkaResult<Self> {
        let native = config.create_native_config()?;
        // SAFETY: the configuration is alive, and nobody else has it.
        unsafe { rd_kafka_conf_set_events(native.ptr(), RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR) };
        let client = Client::new(config, native, RDKafkaType::RD_KAFKA_PRODUCER, connection)?;
        // SAFETY: the client is alive. The reference to its queue is ours, until it is destroyed.
        let queue = NonNull::new(unsafe { rd_kafka_queue_get_main(client.native_ptr()) })
            .ok_or_else(|| KafkaError::ClientCreation("it has no queue of events".to_owned()))?;
        Ok(NativeProducer { queue, client: Arc::new(client) })
    }

    pub(super) fn client(&self) -> &Arc<Client<Connection>> {
        &self.client
    }

    pub(super) fn topic(&self, name: &str) -> KafkaResult<NativeTopic> {
        let name = CString::new(name)?;
        // SAFETY: the client is alive, the name ends with a zero, and without a configuration the client's own is
        // taken.
        let topic = unsafe { rd_kafka_topic_new(self.client.native_ptr(), name.as_ptr(), ptr::null_mut()) };
        match NonNull::new(topic) {
            Some(topic) => Ok(NativeTopic { topic, client: Arc::clone(&self.client) }),
            // SAFETY: it reads a number of this thread's own, which the failed call has set.
            None => Err(KafkaError::Global(unsafe { rd_kafka_last_error() }.into())),
        }
    }

    /// Waits for an event, so long or until [`wake`](NativeProducer::wake), and gives it to `take`; answers whether
    /// there was one.
    pub(super) fn poll(&self, within: Duration, take: impl FnOnce(Event<'_>)) -> bool {
        struct Destroyed(NonNull<RDKafkaEvent>);
        impl Drop for Destroyed {
            fn drop(&mut self) {
                // SAFETY: the event is ours, and what was borrowed of it is gone.
                unsafe { rd_kafka_event_destroy(self.0.as_ptr()) };
            }
        }
        // SAFETY: the queue is alive.
        let event = unsafe { rd_kafka_queue_poll(self.queue.as_ptr(), millis(within)) };
        let Some(event) = NonNull::new(event).map(Destroyed) else { return false };
        let pointer = event.0.as_ptr();
        // SAFETY: the event is alive.
        match unsafe { rd_kafka_event_type(pointer) } {
            RD_KAFKA_EVENT_DR => take(Event::Reports(Reports { event: event.0, lives: PhantomData })),
            RD_KAFKA_EVENT_ERROR => {
                // SAFETY: the event is alive, and is an error: its text is its own.
                let (code, text) =
                    unsafe { (rd_kafka_event_error(pointer), text(rd_kafka_event_error_string(pointer))) };
                take(Event::Error(code.into(), text));
            }
            RD_KAFKA_EVENT_LOG => {
                let (mut place, mut line, mut level) = (ptr::null(), ptr::null(), 0);
                // SAFETY: the event is alive, and the three places outlive the call.
                let is_none =
                    unsafe { rd_kafka_event_log(pointer, &raw mut place, &raw mut line, &raw mut level) };
                if is_none == 0 {
                    // SAFETY: both texts are the event's own, which is alive.
                    let (place, line) = unsafe { (text(place), text(line)) };
                    take(Event::Log(level, place, line));
                }
            }
            _ => {}
        }
        true
    }

    /// Whoever polls, or will poll next, returns without an event.
    pub(super) fn wake(&self) {
        // SAFETY: the queue is alive.
        unsafe { rd_kafka_queue_yield(self.queue.as_ptr()) };
    }

    /// Sends without linger, for so long or until all is acknowledged; answers whether all is. Another thread has to
    /// poll meanwhile.
    pub(super) fn hurry(&self, within: Duration) -> bool {
        // SAFETY: the client is alive. It serves no events here, since acknowledgements are events.
        let flushed = unsafe { rd_kafka_flush(self.client.native_ptr(), millis(within)) };
        flushed == rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR
    }
}

impl Drop for NativeProducer {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and is not used again; the client outlives it.
        unsafe { rd_kafka_queue_destroy(self.queue.as_ptr()) };
    }
}

impl NativeTopic {
    /// Gives a copy of the record to librdkafka; `opaque` comes back in its report.
    pub(super) fn produce<'r>(
        &self,
        record: &RawRecord<'_>,
        headers: impl ExactSizeIterator<Item = (&'r [u8], Option<&'r [u8]>)>,
        opaque: usize,
    ) -> Result<(), RDKafkaErrorCode> {
        let headers = if headers.len() == 0 { ptr::null_mut() } else { native_headers(headers) };
        let (key, key_length) = part(record.key);
        let (value, value_length) = part(record.value);
        // SAFETY: client and topic are alive and belong together. Each kind is followed by what librdkafka reads for
        // it, of that size. Key and value outlive the call, and are copied. The opaque is a number, which nobody
        // follows. The headers are ours, or null, and librdkafka's if it answers without an error.
        let produced = unsafe {
            rd_kafka_producev(
                self.client.native_ptr(),
                rd_kafka_vtype_t::RD_KAFKA_VTYPE_RKT,
                self.topic.as_ptr(),
                rd_kafka_vtype_t::RD_KAFKA_VTYPE_PARTITION,
                record.partition.unwrap_or(BY_KEY),
                rd_kafka_vtype_t::RD_KAFKA_VTYPE_MSGFLAGS,
                RD_KAFKA_MSG_F_COPY,
                rd_kafka_vtype_t::RD_KAFKA_VTYPE_VALUE,
                value.cast_mut(),
                value_length,
                rd_kafka_vtype_t::RD_KAFKA_VTYPE_KEY,
                key.cast_mut(),
                key_length,
                rd_kafka_vtype_t::RD_KAFKA_VTYPE_OPAQUE,
                ptr::without_provenance_mut::<u8>(opaque),
                rd_kafka_vtype_t::RD_KAFKA_VTYPE_TIMESTAMP,
                record.millis.unwrap_or(0),
                rd_kafka_vtype_t::RD_KAFKA_VTYPE_HEADERS,
                headers,
                rd_kafka_vtype_t::RD_KAFKA_VTYPE_END,
            )
        };
        if produced == rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
            return Ok(());
        }
        if !headers.is_null() {
            // SAFETY: they stayed ours, and are not used again.
            unsafe { rd_kafka_headers_destroy(headers) };
        }
        Err(produced.into())
    }

    pub(super) fn name(&self) -> String {
        // SAFETY: the topic is alive, and its name is its own.
        unsafe { text(rd_kafka_topic_name(self.topic.as_ptr())) }
    }
}

impl Drop for NativeTopic {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and is not used again; the client, a field of ours, outlives it.
        unsafe { rd_kafka_topic_destroy(self.topic.as_ptr()) };
    }
}

impl<'e> Iterator for Reports<'e> {
    type Item = Report<'e>;

    fn next(&mut self) -> Option<Report<'e>> {
        // SAFETY: the event is alive as long as `'e`, and keeps its messages as long.
        let message = unsafe { rd_kafka_event_message_next(self.event.as_ptr()).as_ref() };
        message.map(|message| Report { message })
    }
}

impl Report<'_> {
    /// What was given with the record.
    pub(super) fn opaque(&self) -> usize {
        self.message._private.addr()
    }
    /// Why it was given up, if it was.
    pub(super) fn error(&self) -> Option<RDKafkaErrorCode> {
        match self.message.err {
            rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR => None,
            error => Some(error.into()),
        }
    }
    pub(super) fn topic(&self) -> String {
        // SAFETY: a message of a report has a topic, which lives at least as long as it.
        unsafe { text(rd_kafka_topic_name(self.message.rkt)) }
    }
    pub(super) fn partition(&self) -> Option<i32> {
        Some(self.message.partition).filter(|partition| *partition >= 0)
    }
}

/// Of no partition: librdkafka's partitioner chooses one.
const BY_KEY: i32 = -1;

/// As librdkafka wants it: null is none, and no bytes are not.
fn part(bytes: Option<&[u8]>) -> (*const u8, usize) {
    bytes.map_or((ptr::null(), 0), |bytes| (bytes.as_ptr(), bytes.len()))
}

/// In an allocation of librdkafka's for each: it has no other form for them.
fn native_headers<'r>(
    headers: impl ExactSizeIterator<Item = (&'r [u8], Option<&'r [u8]>)>,
) -> *mut rd_kafka_headers_t {
    // SAFETY: it has no conditions.
    let native = unsafe { rd_kafka_headers_new(headers.len()) };
    for (name, value) in headers {
        let (value, length) = part(value);
        // SAFETY: the list is alive and ours; name and value are copied, so many bytes of them.
        unsafe {
            rd_kafka_header_add(
                native,
                name.as_ptr().cast(),
                signed(name.len()),
                value.cast(),
                signed(length),
            );
        }
    }
    native
}

/// No slice is longer.
fn signed(length: usize) -> isize {
    isize::try_from(length).unwrap_or(isize::MAX)
}

fn millis(within: Duration) -> c_int {
    c_int::try_from(within.as_millis()).unwrap_or(c_int::MAX)
}

/// # Safety
/// The text ends with a zero, or is null, and nobody changes it during the call.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: it is not null; the rest is the caller's to say.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned()
}
