//! The one place that calls librdkafka without its crate's safe interface: what it says of its own settings,
//! queues that are drained in batches, and commits whose answers come into a queue.
#![allow(unsafe_code)]
mod queue;
mod replies;

pub(super) use queue::{Queue, Taken};
pub(super) use replies::{Replies, listed};

use std::{io, ptr, slice};

use rdkafka::{
    bindings::{
        rd_kafka_conf_properties_show, rd_kafka_handle_mock_cluster,
        rd_kafka_mock_group_initial_rebalance_delay_ms,
    },
    client::{Client, ClientContext},
};

/// The table of all settings that librdkafka documents, as Markdown.
///
/// # Errors
/// When there is no memory for it.
pub(super) fn properties() -> io::Result<String> {
    let (mut text, mut length) = (ptr::null_mut(), 0);
    // SAFETY: both places outlive the stream, which is closed below and writes to nothing else.
    let stream = unsafe { libc::open_memstream(&raw mut text, &raw mut length) };
    if stream.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the stream is open. librdkafka prints its constant table to it and does not keep it.
    unsafe { rd_kafka_conf_properties_show(stream) };
    // SAFETY: the stream is open, and is not used again.
    let closed = unsafe { libc::fclose(stream) };
    let properties = if closed == 0 && !text.is_null() {
        // SAFETY: of a stream that was closed without an error `text` holds `length` bytes, which nobody changes
        // while they are copied.
        let bytes = unsafe { slice::from_raw_parts(text.cast::<u8>(), length) };
        Ok(String::from_utf8_lossy(bytes).into_owned())
    } else {
        Err(io::Error::last_os_error())
    };
    // SAFETY: the text of a closed stream is its owner's to free, once; it may be null.
    unsafe { libc::free(text.cast()) };
    properties
}

/// The groups of a client's own cluster, if it has one, begin with the first member: a real one waits three seconds for
/// others.
pub(super) fn groups_begin_at_once<C: ClientContext>(client: &Client<C>) {
    // SAFETY: the client lives. What it answers is null, or lives as long as the client.
    let cluster = unsafe { rd_kafka_handle_mock_cluster(client.native_ptr()) };
    if !cluster.is_null() {
        // SAFETY: as above; it sends a request to the cluster's thread.
        unsafe { rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0) };
    }
}
