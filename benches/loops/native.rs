//! What `rdkafka` has no safe interface for: a queue to which partitions are forwarded, and which is drained in
//! batches; and a flush that ends when all is delivered, where `rdkafka`'s polls for 100 ms.
//!
//! Invariant: a queue is dropped before the consumer whose partitions come to it, else the consumer's drop hangs;
//! the borrow sees to it.
#![allow(unsafe_code, reason = "the queue is librdkafka's")]
use super::Result;
use rdkafka::{
    bindings::{
        rd_kafka_consume_batch_queue, rd_kafka_flush, rd_kafka_handle_mock_cluster, rd_kafka_message_destroy,
        rd_kafka_message_t, rd_kafka_mock_group_initial_rebalance_delay_ms, rd_kafka_queue_cb_event_enable,
        rd_kafka_queue_destroy, rd_kafka_queue_forward, rd_kafka_queue_get_partition, rd_kafka_queue_new,
        rd_kafka_queue_t, rd_kafka_t,
    },
    client::{Client, ClientContext},
    consumer::{BaseConsumer, Consumer},
    producer::{BaseProducer, Producer},
    types::RDKafkaRespErr,
};
use std::{
    ffi::{CString, c_void},
    marker::PhantomData,
    ptr, slice,
    thread::{self, Thread},
    time::Duration,
};

/// Messages to a call.
const AT_ONCE: usize = 1_000;

/// A queue of one consumer, drained by the thread that made it.
pub(crate) struct Queue<'c> {
    queue: *mut rd_kafka_queue_t,
    batch: Vec<*mut rd_kafka_message_t>,
    /// Whom librdkafka wakes.
    owner: Box<Thread>,
    consumer: PhantomData<&'c BaseConsumer>,
}

/// A message that is lent for as long as it is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Lent<'m> {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) payload: &'m [u8],
}

/// Called by a thread of librdkafka, under the queue's lock.
unsafe extern "C" fn wake(_: *mut rd_kafka_t, owner: *mut c_void) {
    // SAFETY: it is the queue's `owner`, which is there until the call-back is taken back.
    unsafe { &*owner.cast::<Thread>() }.unpark();
}

impl<'c> Queue<'c> {
    pub(crate) fn new(consumer: &'c BaseConsumer) -> Self {
        let owner = Box::new(thread::current());
        // SAFETY: the client is there for as long as this borrows its consumer.
        let queue = unsafe { rd_kafka_queue_new(consumer.client().native_ptr()) };
        // SAFETY: the queue is open; the thread's handle stays in its box until the call-back is taken back.
        unsafe {
            rd_kafka_queue_cb_event_enable(queue, Some(wake), ptr::from_ref(&*owner).cast_mut().cast());
        };
        Queue { queue, batch: vec![ptr::null_mut(); AT_ONCE], owner, consumer: PhantomData }
    }

    /// Messages of this partition come to this queue; before it is assigned.
    pub(crate) fn forward(&self, consumer: &'c BaseConsumer, topic: &str, partition: i32) -> Result<()> {
        let topic = CString::new(topic)?;
        // SAFETY: the client is there, and copies the name.
        let from = unsafe {
            rd_kafka_queue_get_partition(consumer.client().native_ptr(), topic.as_ptr(), partition)
        };
        if from.is_null() {
            return Err("there is no such partition".into());
        }
        // SAFETY: both queues are open; librdkafka counts its reference to the second.
        unsafe { rd_kafka_queue_forward(from, self.queue) };
        // SAFETY: it is this function's reference, and is not used again.
        unsafe { rd_kafka_queue_destroy(from) };
        Ok(())
    }

    /// Gives what there is to `each`, in order; how much it was, the ends of partitions included.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(Lent<'_>) -> Result<()>) -> Result<usize> {
        // SAFETY: the batch has room for as many pointers.
        let taken =
            unsafe { rd_kafka_consume_batch_queue(self.queue, 0, self.batch.as_mut_ptr(), self.batch.len()) };
        let taken = usize::try_from(taken)?;
        let mut answer = Ok(taken);
        for &message in self.batch.iter().take(taken) {
            // SAFETY: librdkafka has written so many pointers to messages, which are this function's.
            let native = unsafe { &*message };
            match native.err {
                RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR if answer.is_ok() => {
                    let payload = match native.payload.is_null() {
                        true => &[],
                        // SAFETY: the payload has this length, and is there until the message is destroyed.
                        false => unsafe { slice::from_raw_parts(native.payload.cast::<u8>(), native.len) },
                    };
                    let lent = Lent { partition: native.partition, offset: native.offset, payload };
                    answer = each(lent).and(answer);
                }
                RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR
                | RDKafkaRespErr::RD_KAFKA_RESP_ERR__PARTITION_EOF => {}
                code => answer = Err(format!("a partition says {code:?}").into()),
            }
            // SAFETY: the message is this function's, and what was lent of it is not used again.
            unsafe { rd_kafka_message_destroy(message) };
        }
        answer
    }

    /// Waits for more, when a drain has found nothing.
    pub(crate) fn wait(&self) {
        thread::park_timeout(Duration::from_millis(10));
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        // SAFETY: the queue is open; librdkafka takes its lock, so that no call-back runs after this.
        unsafe { rd_kafka_queue_cb_event_enable(self.queue, None, ptr::null_mut()) };
        // SAFETY: the queue is not used again.
        unsafe { rd_kafka_queue_destroy(self.queue) };
        let _owner = &self.owner;
    }
}

/// Waits until all is delivered, without waiting for more that would go with it. Another thread has to take the
/// deliveries.
pub(crate) fn flush<C: ClientContext>(client: &Client<C>) {
    // SAFETY: the client is there.
    let _ended = unsafe { rd_kafka_flush(client.native_ptr(), 1_000) };
}

/// Groups of the client's mock cluster do not wait for more members.
pub(crate) fn no_rebalance_delay(client: &BaseProducer) {
    // SAFETY: the client is there.
    let cluster = unsafe { rd_kafka_handle_mock_cluster(client.client().native_ptr()) };
    if !cluster.is_null() {
        // SAFETY: the cluster lives as long as its client.
        unsafe { rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0) };
    }
}
