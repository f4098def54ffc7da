//! A queue of our own, to which the partitions of one topic are forwarded: it is drained in batches, and one
//! waking says that there is something in it.
//!
//! Invariants: the waking is switched off, and the queue gone, before the consumer is; a native message lives
//! until its bytes are copied, and no longer.
use crate::kafka::batch::{Batch, NO_TIME};
use futures::task::AtomicWaker;
use rdkafka::{
    bindings as native,
    consumer::{BaseConsumer, Consumer, ConsumerContext},
    error::RDKafkaErrorCode,
    types::RDKafkaRespErr,
};
use std::{
    ffi::{CStr, CString, c_int, c_void},
    ptr::{self, NonNull},
    slice,
    sync::Arc,
};

/// A queue of messages of one consumer.
pub(in crate::kafka) struct Queue<C: ConsumerContext> {
    queue: NonNull<native::rd_kafka_queue_t>,
    /// Woken when something comes into the empty queue. librdkafka has a pointer to it.
    waker: Arc<AtomicWaker>,
    /// Outlives the queue.
    consumer: Arc<BaseConsumer<C>>,
}

// SAFETY: librdkafka's queues may be used from any thread, and from several at a time.
unsafe impl<C: ConsumerContext> Send for Queue<C> {}
// SAFETY: as above.
unsafe impl<C: ConsumerContext> Sync for Queue<C> {}

/// What a queue gives.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::kafka) enum Taken {
    Message {
        partition: i32,
        offset: i64,
    },
    /// All of a partition has been read, up to this offset.
    End {
        partition: i32,
        offset: i64,
    },
    Error {
        partition: i32,
        code: RDKafkaErrorCode,
        text: String,
    },
}

/// How many messages are taken in one call at the most.
const MOST: usize = 128;

impl<C: ConsumerContext> Queue<C> {
    /// A new one, whose `waker` is woken whenever something comes into it while it is empty.
    pub(in crate::kafka) fn new(consumer: &Arc<BaseConsumer<C>>, waker: &Arc<AtomicWaker>) -> Option<Self> {
        // SAFETY: the consumer lives, and is kept alive by what is made here.
        let queue = unsafe { native::rd_kafka_queue_new(consumer.client().native_ptr()) };
        let queue = NonNull::new(queue)?;
        let (waker, consumer) = (Arc::clone(waker), Arc::clone(consumer));
        let opaque = Arc::as_ptr(&waker).cast_mut().cast::<c_void>();
        // SAFETY: the waker lives until the callback is switched off in `drop`; what runs takes it by shared
        // reference.
        unsafe { native::rd_kafka_queue_cb_event_enable(queue.as_ptr(), Some(wake), opaque) };
        Some(Queue { queue, waker, consumer })
    }

    /// From the next fetch on, messages of this partition come into this queue. Answers whether there is such a
    /// partition.
    pub(in crate::kafka) fn forward(&self, topic: &str, partition: i32) -> bool {
        let Ok(topic) = CString::new(topic) else { return false };
        let consumer = self.consumer.client().native_ptr();
        // SAFETY: the consumer lives, and the name for the length of the call.
        let own = unsafe { native::rd_kafka_queue_get_partition(consumer, topic.as_ptr(), partition) };
        if own.is_null() {
            return false;
        }
        // SAFETY: both queues live. librdkafka keeps what it needs of the second one; the reference to the first is
        // ours, and is not used again.
        unsafe {
            native::rd_kafka_queue_forward(own, self.queue.as_ptr());
            native::rd_kafka_queue_destroy(own);
        }
        true
    }

    /// Takes what is ready, without waiting: of the messages those that `admits` does into the batch. Answers how
    /// many there were, so that 0 says that the queue is empty and its waker will be woken.
    pub(in crate::kafka) fn take(&self, batch: &mut Batch, mut admits: impl FnMut(Taken) -> bool) -> usize {
        let mut messages = [ptr::null_mut::<native::rd_kafka_message_t>(); MOST];
        // SAFETY: the queue lives, and there is room for so many pointers.
        let count = unsafe {
            native::rd_kafka_consume_batch_queue(self.queue.as_ptr(), 0, messages.as_mut_ptr(), MOST)
        };
        let count = usize::try_from(count).unwrap_or(0);
        for message in messages.iter().take(count) {
            // SAFETY: librdkafka gave these pointers to us, each to a message of its own that lives until it is
            // destroyed below.
            if let Some(read) = unsafe { message.as_ref() } {
                copy(read, batch, &mut admits);
            }
            // SAFETY: nothing of the message is used after this.
            unsafe { native::rd_kafka_message_destroy(*message) };
        }
        count
    }
}

impl<C: ConsumerContext> Drop for Queue<C> {
    fn drop(&mut self) {
        // SAFETY: the callback runs under the queue's lock, which switching it off takes: it does not run
        // afterwards, and the waker may go. The queue is not used again, and the consumer is still there.
        unsafe {
            native::rd_kafka_queue_cb_event_enable(self.queue.as_ptr(), None, ptr::null_mut());
            native::rd_kafka_queue_destroy(self.queue.as_ptr());
        }
        self.waker.wake();
    }
}

/// librdkafka calls it on a thread of its own, under the queue's lock.
unsafe extern "C" fn wake(_: *mut native::rd_kafka_t, opaque: *mut c_void) {
    // SAFETY: it is the waker of a queue that has not been dropped.
    if let Some(waker) = unsafe { opaque.cast::<AtomicWaker>().as_ref() } {
        waker.wake();
    }
}

/// Copies a message, or tells what came in its place.
#[inline]
fn copy(message: &native::rd_kafka_message_t, batch: &mut Batch, admits: &mut impl FnMut(Taken) -> bool) {
    let (partition, offset) = (message.partition, message.offset);
    match message.err {
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => {
            if !admits(Taken::Message { partition, offset }) {
                return;
            }
            let mut kind = native::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
            // SAFETY: the message lives, and `kind` for the length of the call.
            let millis = unsafe { native::rd_kafka_message_timestamp(message, &raw mut kind) };
            let has_time = kind != native::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
            let millis = if has_time { millis } else { NO_TIME };
            // SAFETY: a message has so many bytes at these places, for as long as it lives.
            let (key, value) =
                unsafe { (bytes(message.key, message.key_len), bytes(message.payload, message.len)) };
            batch.push((partition, offset, millis), key, value);
            if may_have_headers(message) {
                headers(message, batch);
            }
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__PARTITION_EOF => {
            admits(Taken::End { partition, offset });
        }
        code => {
            // SAFETY: the text is the message's own, or a constant.
            let text = unsafe { text(native::rd_kafka_message_errstr(message)) };
            admits(Taken::Error { partition, code: code.into(), text });
        }
    }
}

/// The librdkafka that leaves what it has fetched as it came: [`may_have_headers`]. Read its
/// `rd_kafka_msgset_reader_msg_v2` again before this is raised.
const KNOWN: c_int = 0x020c_01ff;

/// Whether a message may have headers. librdkafka makes a reader for them on the heap to find that there are none,
/// which is a third of what a small message costs in all.
///
/// In what came over the wire the headers follow the value, and begin with their number, a varint. That has no other
/// form for zero than one byte of zero.
#[inline]
fn may_have_headers(message: &native::rd_kafka_message_t) -> bool {
    // A value without bytes is a constant of librdkafka's own.
    // SAFETY: it answers a constant.
    if message.payload.is_null() || message.len == 0 || unsafe { native::rd_kafka_version() } != KNOWN {
        return true;
    }
    // SAFETY: the message lives.
    if unsafe { native::rd_kafka_message_leader_epoch(message) } < 0 {
        // As it is of messages in the formats before Kafka 0.11, which have no headers, nor a byte for them.
        return true;
    }
    // SAFETY: this librdkafka has not copied the value, but points into what it fetched, and keeps that as long as
    // the message. Of a message in the format that has an epoch, the number of headers follows there.
    unsafe { *message.payload.cast::<u8>().add(message.len) != 0 }
}

/// Copies the headers of a message.
#[inline]
fn headers(message: &native::rd_kafka_message_t, batch: &mut Batch) {
    let mut headers = ptr::null_mut();
    // SAFETY: the message lives. What it answers is the message's own.
    let found = unsafe { native::rd_kafka_message_headers(message, &raw mut headers) };
    if found != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
        return;
    }
    for at in 0.. {
        let (mut name, mut value, mut length) = (ptr::null(), ptr::null(), 0);
        // SAFETY: the headers live as long as the message; past the last one it answers an error.
        let found = unsafe {
            native::rd_kafka_header_get_all(headers, at, &raw mut name, &raw mut value, &raw mut length)
        };
        if found != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            return;
        }
        // SAFETY: a name ends with a zero, and a value that is not null has so many bytes.
        let (name, value) = unsafe { (CStr::from_ptr(name), bytes(value.cast_mut(), length)) };
        batch.header(name.to_bytes(), value);
    }
}

/// The bytes at a place, which may be null.
///
/// # Safety
/// There are so many, and they live and stay as they are as long as what is returned.
unsafe fn bytes<'a>(begin: *mut c_void, length: usize) -> Option<&'a [u8]> {
    // SAFETY: as the caller promises.
    (!begin.is_null()).then(|| unsafe { slice::from_raw_parts(begin.cast::<u8>(), length) })
}

/// A text of librdkafka's, which may be null.
///
/// # Safety
/// It ends with a zero, and lives for the length of the call.
unsafe fn text(begin: *const std::ffi::c_char) -> String {
    if begin.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(begin) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_librdkafka_that_is_linked_is_the_one_whose_messages_are_known() {
        // Else each message is asked for its headers, which is right but slow: see `KNOWN`.
        // SAFETY: it answers a constant.
        assert_eq!(unsafe { native::rd_kafka_version() }, KNOWN);
    }
}
