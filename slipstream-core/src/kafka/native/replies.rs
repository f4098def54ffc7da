//! Commits of a group's offsets whose answers come into a queue of our own, so that nobody waits for one who
//! does not want to; and what a group's offsets come with.
//!
//! Invariant: the queue is gone before its consumer is.
use rdkafka::{
    Offset, TopicPartitionList, bindings as native,
    consumer::{BaseConsumer, Consumer, ConsumerContext},
    error::RDKafkaErrorCode,
    types::RDKafkaRespErr,
};
use std::{
    ffi::CStr,
    ptr::{self, NonNull},
    slice,
    sync::Arc,
    time::Duration,
};

/// Where the answers to the commits of one consumer come.
pub(in crate::kafka) struct Replies<C: ConsumerContext> {
    queue: NonNull<native::rd_kafka_queue_t>,
    /// Outlives the queue.
    consumer: Arc<BaseConsumer<C>>,
}

// SAFETY: librdkafka's queues may be used from any thread, and from several at a time.
unsafe impl<C: ConsumerContext> Send for Replies<C> {}
// SAFETY: as above.
unsafe impl<C: ConsumerContext> Sync for Replies<C> {}

/// A partition in a list of librdkafka's.
#[derive(Debug)]
pub(in crate::kafka) struct Listed {
    pub(in crate::kafka) topic: String,
    pub(in crate::kafka) partition: i32,
    /// `None` where it has none.
    pub(in crate::kafka) offset: Option<i64>,
    /// What was committed beside it: any bytes.
    pub(in crate::kafka) metadata: Vec<u8>,
    pub(in crate::kafka) error: Option<RDKafkaErrorCode>,
}

impl<C: ConsumerContext> Replies<C> {
    pub(in crate::kafka) fn new(consumer: &Arc<BaseConsumer<C>>) -> Option<Self> {
        // SAFETY: the consumer lives, and is kept alive by what is made here.
        let queue = unsafe { native::rd_kafka_queue_new(consumer.client().native_ptr()) };
        Some(Replies { queue: NonNull::new(queue)?, consumer: Arc::clone(consumer) })
    }

    /// Begins to commit these offsets. The answer comes by [`wait`](Replies::wait).
    pub(in crate::kafka) fn commit(&self, offsets: &TopicPartitionList) -> Result<(), RDKafkaErrorCode> {
        // SAFETY: consumer, list and queue live; librdkafka copies the list.
        let code = unsafe {
            native::rd_kafka_commit_queue(
                self.consumer.client().native_ptr(),
                offsets.ptr(),
                self.queue.as_ptr(),
                None,
                ptr::null_mut(),
            )
        };
        failed(code).map_or(Ok(()), Err)
    }

    /// Waits for the next answer: `None` when none came in time.
    pub(in crate::kafka) fn wait(&self, within: Duration) -> Option<Result<(), RDKafkaErrorCode>> {
        let millis = i32::try_from(within.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the queue lives; what it answers is null, or an event that is ours until it is destroyed below.
        let event = NonNull::new(unsafe { native::rd_kafka_queue_poll(self.queue.as_ptr(), millis) })?;
        // SAFETY: the event lives, and so does the list in it, which may be null.
        let (code, listed) = unsafe {
            let code = native::rd_kafka_event_error(event.as_ptr());
            (code, list(native::rd_kafka_event_topic_partition_list(event.as_ptr())))
        };
        // SAFETY: nothing of the event is used after this.
        unsafe { native::rd_kafka_event_destroy(event.as_ptr()) };
        let of_one = listed.into_iter().find_map(|listed| listed.error);
        Some(failed(code).or(of_one).map_or(Ok(()), Err))
    }
}

impl<C: ConsumerContext> Drop for Replies<C> {
    fn drop(&mut self) {
        // SAFETY: the queue is not used again, and the consumer is still there.
        unsafe { native::rd_kafka_queue_destroy(self.queue.as_ptr()) };
    }
}

/// What is in a list. The crate's own reader panics at metadata that are no text, which any program may have
/// committed.
pub(in crate::kafka) fn listed(of: &TopicPartitionList) -> Vec<Listed> {
    // SAFETY: the list lives for the length of the call.
    unsafe { list(of.ptr()) }
}

/// # Safety
/// The list is null, or lives for the length of the call.
unsafe fn list(list: *const native::rd_kafka_topic_partition_list_t) -> Vec<Listed> {
    // SAFETY: as the caller promises.
    let Some(list) = (unsafe { list.as_ref() }) else { return Vec::new() };
    if list.elems.is_null() {
        return Vec::new();
    }
    // SAFETY: a list has so many elements at this place, which nobody changes meanwhile.
    let elements = unsafe { slice::from_raw_parts(list.elems, usize::try_from(list.cnt).unwrap_or(0)) };
    elements
        .iter()
        .map(|element| Listed {
            // SAFETY: a topic's name ends with a zero.
            topic: unsafe { CStr::from_ptr(element.topic) }.to_string_lossy().into_owned(),
            partition: element.partition,
            offset: match Offset::from_raw(element.offset) {
                Offset::Offset(offset) => Some(offset),
                _ => None,
            },
            metadata: if element.metadata.is_null() {
                Vec::new()
            } else {
                // SAFETY: there are so many bytes at this place.
                unsafe { slice::from_raw_parts(element.metadata.cast::<u8>(), element.metadata_size) }
                    .to_vec()
            },
            error: failed(element.err),
        })
        .collect()
}

fn failed(code: RDKafkaRespErr) -> Option<RDKafkaErrorCode> {
    (code != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR).then(|| code.into())
}
