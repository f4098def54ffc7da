//! By what a program steers a topic that a flow reads: seek, pause, resume; and how far it is.
//!
//! Invariants: what is sought before the first assignment, or between two, is kept and applied with the next one;
//! a place such as the end is resolved to a number once, when it is asked for.
use super::{
    Offset, Topic, TopicError,
    member::{Assigned, Phase},
    source,
};
use crate::{position::Positions, source::Joining};
use std::collections::BTreeMap;

impl<K, V> Topic<K, V> {
    /// The next message of each of these partitions is the one at this place: a number, or an [`Offset`]. What was
    /// fetched before and has not begun is dropped. The stored position moves with the first message handled after
    /// it, so a crash before that goes on where it was. Of two seeks, the later counts.
    ///
    /// Before a flow reads the topic, or before it has its partitions, the seeks are kept and applied with the
    /// assignment.
    ///
    /// ```no_run
    /// # async fn seek(topic: slipstream_core::kafka::Topic<(), String>) -> slipstream_core::Result<()> {
    /// use slipstream_core::kafka::Offset;
    ///
    /// topic.seek([(0, 3)]).await?;
    /// topic.seek([(0, Offset::Beginning), (1, Offset::At(7))]).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`TopicError::NotOurs`] names the partitions that are another process's; the others are sought.
    /// [`TopicError::OutOfRange`] for a number that the log does not have, and then nothing is sought. Where the
    /// brokers have to be asked, what they answer.
    ///
    /// # Cancel safety
    /// Dropped before it is done, it has sought all or nothing.
    pub async fn seek<O: Into<Offset>>(
        &self,
        places: impl IntoIterator<Item = (i32, O)>,
    ) -> Result<(), TopicError> {
        let places: Vec<(i32, Offset)> =
            places.into_iter().map(|(partition, place)| (partition, place.into())).collect();
        let Some((member, slot)) = self.reading.now() else { return self.seek_later(&places).await };
        let resolved = match member.shared.resolve(&slot, places.clone()).await {
            Ok(resolved) => resolved,
            // It has just been closed.
            Err(TopicError::Read { .. }) if !member.is_open() => {
                return self.seek_later(&places).await;
            }
            Err(error) => return Err(error),
        };
        let topic = || self.config.name.to_string();
        for (partition, offset) in &resolved.offsets {
            if let Some(range) = resolved.ranges.get(partition)
                && !(range.low..=range.high).contains(offset)
            {
                let (partition, offset, low, high) = (*partition, *offset, range.low, range.high);
                return Err(TopicError::OutOfRange { topic: topic(), partition, offset, low, high });
            }
        }
        let is_kept = |partition: &i32| resolved.phase == Phase::Waiting || resolved.ours.contains(partition);
        for (partition, offset) in resolved.offsets.iter().filter(|(partition, _)| is_kept(partition)) {
            self.control.seek(*partition, *offset);
        }
        let partitions = places.iter().map(|(partition, _)| *partition);
        let is_sought = |partition: &i32| is_kept(partition) && resolved.offsets.contains_key(partition);
        let partitions: Vec<_> = partitions.filter(|partition| !is_sought(partition)).collect();
        if partitions.is_empty() { Ok(()) } else { Err(TopicError::NotOurs { topic: topic(), partitions }) }
    }

    /// Nobody reads it: numbers are kept, and what is no number is asked for.
    async fn seek_later(&self, places: &[(i32, Offset)]) -> Result<(), TopicError> {
        let unresolved = places.iter().any(|(_, place)| !matches!(place, Offset::At(_)));
        let offsets = if unresolved { self.resolve_alone(places).await? } else { BTreeMap::new() };
        for (partition, place) in places {
            match (place, offsets.get(partition)) {
                (_, Some(offset)) | (Offset::At(offset), None) => self.control.seek(*partition, *offset),
                _ => {
                    let (topic, partitions) = (self.config.name.to_string(), vec![*partition]);
                    return Err(TopicError::NotOurs { topic, partitions });
                }
            }
        }
        Ok(())
    }

    /// The numbers of these places, asked for by a consumer of its own.
    async fn resolve_alone(&self, places: &[(i32, Offset)]) -> Result<BTreeMap<i32, i64>, TopicError> {
        let flow = Joining::new(None, None, false);
        let (member, slot, _) = source::join(&self.alone(), &flow, source::JOINS_WITHIN).await?;
        Ok(member.shared.resolve(&slot, places.to_vec()).await?.offsets)
    }

    /// From the next message on nothing is handled of it, whatever was fetched, until [`resume`](Topic::resume). A
    /// message that has begun is finished. The group keeps this process as its member.
    pub fn pause(&self) {
        self.control.pause();
    }

    /// Ends a [`pause`](Topic::pause). It goes on with the next message when nobody else holds the topic.
    pub fn resume(&self) {
        self.control.resume();
    }

    /// Whether anybody holds the topic: the program by [`pause`](Topic::pause), or the runtime.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.control.is_paused()
    }

    /// Where the partitions go on after what is published: after the messages whose writes others see, also
    /// where a commit is still to come. Without a running flow what the last one has committed; empty before the
    /// first.
    #[must_use]
    pub fn position(&self) -> Positions {
        self.control.positions()
    }

    /// For each partition that is assigned to this process, the messages between what is published and its end.
    /// It is 0 when all was read, although the log may end with a transaction's marker, which has an offset too.
    /// Empty where no flow reads the topic.
    ///
    /// # Errors
    /// When the brokers do not answer in time, or no longer have the topic.
    ///
    /// # Cancel safety
    /// Dropped before it is done, it has changed nothing.
    pub async fn lag(&self) -> Result<BTreeMap<i32, u64>, TopicError> {
        let Some((member, slot)) = self.reading.now() else { return Ok(BTreeMap::new()) };
        let published = self.position();
        let ends = match member.shared.ends(&slot).await {
            Ok(ends) => ends,
            Err(TopicError::Read { .. }) if !member.is_open() => return Ok(BTreeMap::new()),
            Err(error) => return Err(error),
        };
        let lag = |(known, end): (Assigned, i64)| {
            let published = published.next(known.partition).unwrap_or(known.began);
            // All that was read is published: then what is behind it is no message.
            let reached = if published >= known.next { known.reached.max(published) } else { published };
            (known.partition, u64::try_from(end - reached).unwrap_or(0))
        };
        Ok(ends.into_iter().map(lag).collect())
    }
}
