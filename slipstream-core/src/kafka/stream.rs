//! A topic that is read without a flow: all of its partitions, without a group, and nothing is committed.
//!
//! ```text
//! first poll ─▶ join, as a member of nothing ─▶ TopicFeed ─▶ Encoded ─▶ Message
//! ```
//!
//! Invariant: the consumer is there as long as the stream, and not before it is polled.
use super::{
    Encoded, Topic, TopicError,
    feed::TopicFeed,
    member::{Member, Slot},
    source::{self, Reading},
    topic::TopicConfig,
};
use crate::{
    BoxError, Message,
    error::Cause,
    position::Positions,
    source::{Chunk, Control, Feed, Joining, Judged, Mark, Standing},
};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use std::{future::poll_fn, sync::Arc, time::Duration};

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Topic<K, V> {
    /// Reads the topic without a flow: all partitions, from [`start`](Topic::start) to [`until`](Topic::until) or for
    /// ever, without a group, so that nothing is remembered of it. Within a partition messages keep their order.
    ///
    /// An error ends the stream, but one of decoding does not: the next message follows it. It is not steered by
    /// [`seek`](Topic::seek) and [`pause`](Topic::pause), which are a flow's.
    ///
    /// ```
    /// use futures::TryStreamExt;
    /// use slipstream_core::kafka::{Kafka, Offset};
    ///
    /// # async fn read() -> slipstream_core::Result<()> {
    /// let kafka = Kafka::new([("bootstrap.servers", "localhost:9092")])?;
    /// let words = kafka.topic::<(), String>("words").text().until(Offset::End);
    /// let all: Vec<String> = words.stream().map_ok(|message| message.value).try_collect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(&self) -> impl Stream<Item = Result<Message<K, V>, TopicError>> + Send + Unpin + 'static {
        self.encoded().map(|item| item?.message())
    }

    /// The same, not yet decoded.
    pub(super) fn encoded(
        &self,
    ) -> impl Stream<Item = Result<Encoded<K, V>, TopicError>> + Send + Unpin + 'static + use<K, V> {
        let topic = self.alone();
        let chunks = stream::try_unfold(Reads::Not(topic), |reads| async move {
            let (mut feed, mut chunk) = match reads {
                Reads::Not(topic) => (open(&topic).await?, Chunk::new()),
                Reads::Is(feed, chunk) => (feed, chunk),
            };
            poll_fn(|cx| feed.poll_chunk(&mut chunk, cx))
                .await
                .map_err(|fault| told(fault.cause, feed.topic()))?;
            chunk.positions.clear();
            let items: Vec<_> = chunk.items.drain(..).map(Ok).collect();
            Ok::<_, TopicError>((!items.is_empty()).then(|| (stream::iter(items), Reads::Is(feed, chunk))))
        });
        // Boxed once, so that it need not be pinned to be read.
        chunks.try_flatten().boxed()
    }
}

enum Reads<K, V> {
    Not(Topic<K, V>),
    Is(TopicFeed<K, V>, Chunk<Encoded<K, V>>),
}

async fn open<K, V>(topic: &Topic<K, V>) -> Result<TopicFeed<K, V>, TopicError> {
    let flow = Joining::new(None, None, false);
    let (member, slot, _): (Arc<Member>, Arc<Slot>, _) =
        source::join(topic, &flow, source::JOINS_WITHIN).await?;
    slot.stands(Some(Arc::new(Nowhere)));
    Ok(TopicFeed::new(member, slot, Arc::clone(&topic.config.codecs)))
}

fn told(cause: Cause, topic: &str) -> TopicError {
    let said = |cause: BoxError| TopicError::Read { topic: topic.to_owned(), said: cause.to_string() };
    match cause {
        Cause::Source(cause) => cause.downcast().map_or_else(said, |error| *error),
        cause => said(format!("{cause:?}").into()),
    }
}

impl<K, V> Topic<K, V> {
    /// The same topic as another source, for no flow and in no group.
    pub(super) fn alone(&self) -> Self {
        let mut config = TopicConfig::clone(&self.config);
        (config.group, config.is_broadcast) = (None, true);
        Topic { config: Arc::new(config), control: Control::default(), reading: Reading::default() }
    }
}

/// No flow: nothing is known, and nothing is kept.
struct Nowhere;

impl Standing for Nowhere {
    fn known(&self) -> Result<Positions, BoxError> {
        Ok(Positions::default())
    }
    fn begin(&self, _: Positions) -> Result<(), BoxError> {
        Ok(())
    }
    fn judge(&self, _: &Mark) -> Result<Judged, BoxError> {
        Ok(Judged::Accept)
    }
    fn is_in_memory(&self) -> bool {
        true
    }
    fn commit(&self, _: Duration) -> Result<(), BoxError> {
        Ok(())
    }
}
