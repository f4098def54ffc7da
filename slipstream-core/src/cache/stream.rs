//! A scan as a stream, which gives way to the executor now and then.
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use serde::de::DeserializeOwned;

use super::iter::Range;
use crate::key::Key;
use crate::store::StoreError;

/// Rows between two yields. Fewer cost more than they bring (a yield is half a microsecond); many
/// more would hold up the other tasks of the thread when each row comes from the disk.
const CHUNK: usize = 64;

/// The rows of a [`Range`], as a [`Stream`]: made by [`Range::stream`].
#[must_use = "streams do nothing unless polled"]
pub struct RangeStream<K, V> {
    rows: Range<K, V>,
    left: usize,
}

impl<K, V> RangeStream<K, V> {
    pub(super) fn new(rows: Range<K, V>) -> Self {
        Self { rows, left: CHUNK }
    }
}

impl<K: Key, V: DeserializeOwned> Stream for RangeStream<K, V> {
    type Item = Result<(K, V), StoreError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.left == 0 {
            self.left = CHUNK;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.left -= 1;
        Poll::Ready(self.rows.next())
    }
}

impl<K, V> fmt::Debug for RangeStream<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RangeStream").field(&self.rows).finish()
    }
}
