//! What is asked of the brokers, on the poll thread: which partitions a topic has, where they begin and end,
//! and where a time is in them.
//!
//! Invariant: each question has a bound; none is asked under a gate.
use super::{Shared, context::Consumer, trouble};
use crate::kafka::{Offset, TopicError, native};
use rdkafka::{
    TopicPartitionList,
    consumer::Consumer as _,
    error::{KafkaError, RDKafkaErrorCode},
    topic_partition_list::Offset as Raw,
};
use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

/// A topic, as the brokers know it.
#[derive(Debug, Clone)]
pub(in crate::kafka) struct Described {
    pub(in crate::kafka) partitions: i32,
    pub(in crate::kafka) cluster: String,
}

/// Where the messages of a partition begin, and where they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kafka) struct Range {
    pub(in crate::kafka) low: i64,
    pub(in crate::kafka) high: i64,
}

/// How long one question may take, so that what else there is to do is done in between.
const ASK: Duration = Duration::from_millis(500);
/// A topic, or a partition, that was just made is not known to all brokers at once.
pub(super) const MADE_WITHIN: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_millis(50);

/// Asks once what partitions a topic has. `None` when there was no answer: it may be asked again.
///
/// # Errors
/// When it is known that there is none, or that it is not to be had.
pub(super) fn describe(
    shared: &Shared,
    consumer: &Consumer,
    topic: &str,
    since: Instant,
) -> Result<Option<Described>, TopicError> {
    let code = match consumer.fetch_metadata(Some(topic), ASK) {
        Err(error) => error.rdkafka_error_code(),
        Ok(metadata) => match metadata.topics().iter().find(|known| known.name() == topic) {
            None => Some(RDKafkaErrorCode::UnknownTopicOrPartition),
            Some(known) => match known.error() {
                Some(code) => Some(code.into()),
                None => {
                    let partitions = i32::try_from(known.partitions().len()).unwrap_or(i32::MAX);
                    let cluster = consumer.client().fetch_cluster_id(ASK);
                    let cluster = cluster.unwrap_or_else(|| shared.key.servers.clone());
                    return Ok(Some(Described { partitions, cluster }));
                }
            },
        },
    };
    let kind = code.map_or(trouble::Kind::Passing, trouble::kind);
    match kind {
        trouble::Kind::Unknown if since.elapsed() < MADE_WITHIN => thread::sleep(AGAIN),
        trouble::Kind::Passing => {}
        _ => return Err(shared.error(topic, kind, code.map(|code| code.to_string()).unwrap_or_default())),
    }
    Ok(None)
}

/// Where partitions of a topic begin and end.
pub(super) fn ranges(
    consumer: &Consumer,
    topic: &str,
    partitions: &[i32],
    within: Duration,
) -> Result<BTreeMap<i32, Range>, KafkaError> {
    // One question to each leader, for all partitions that it leads.
    let low =
        offsets(consumer, topic, partitions.iter().map(|partition| (*partition, Raw::Beginning)), within)?;
    let high = offsets(consumer, topic, partitions.iter().map(|partition| (*partition, Raw::End)), within)?;
    let range = |(partition, low): (i32, i64)| Some((partition, Range { low, high: *high.get(&partition)? }));
    Ok(low.into_iter().filter_map(range).collect())
}

/// The numbers of places in partitions: at the beginning, at the end, or at a time in milliseconds. One that is
/// not there is left out.
fn offsets(
    consumer: &Consumer,
    topic: &str,
    places: impl Iterator<Item = (i32, Raw)>,
    within: Duration,
) -> Result<BTreeMap<i32, i64>, KafkaError> {
    let mut list = TopicPartitionList::new();
    for (partition, place) in places {
        list.add_partition_offset(topic, partition, place)?;
    }
    if list.count() == 0 {
        return Ok(BTreeMap::new());
    }
    let list = consumer.offsets_for_times(list, within)?;
    let mut found = BTreeMap::new();
    for listed in native::listed(&list) {
        match listed.error {
            Some(code) => return Err(KafkaError::OffsetFetch(code)),
            None => listed.offset.map(|offset| found.insert(listed.partition, offset)),
        };
    }
    Ok(found)
}

/// The numbers that these places have now.
pub(super) fn resolve(
    consumer: &Consumer,
    topic: &str,
    places: &[(i32, Offset)],
    ranges: &BTreeMap<i32, Range>,
    within: Duration,
) -> Result<BTreeMap<i32, i64>, KafkaError> {
    let times = places.iter().filter_map(|(partition, place)| match place {
        // The broker counts in milliseconds: a time within one is before the next.
        Offset::Time(time) => {
            let millis = time.as_micros().saturating_add(999).div_euclid(1000).max(0);
            Some((*partition, Raw::Offset(millis)))
        }
        _ => None,
    });
    let times = offsets(consumer, topic, times, within)?;
    let number = |(partition, place): &(i32, Offset)| {
        let range = ranges.get(partition)?;
        let number = match place {
            Offset::Beginning => range.low,
            Offset::End => range.high,
            Offset::At(offset) => *offset,
            Offset::Time(_) => times.get(partition).copied().unwrap_or(range.high),
        };
        Some((*partition, number))
    };
    Ok(places.iter().filter_map(number).collect())
}

/// The partitions of a topic for which a group has offsets, each with what is beside it.
pub(super) fn committed(
    consumer: &Consumer,
    topic: &str,
    partitions: std::ops::Range<i32>,
    within: Duration,
) -> Result<BTreeMap<i32, (i64, Vec<u8>)>, KafkaError> {
    let mut list = TopicPartitionList::new();
    for partition in partitions {
        list.add_partition(topic, partition);
    }
    let list = consumer.committed_offsets(list, within)?;
    let mut found = BTreeMap::new();
    for listed in native::listed(&list) {
        if let Some(code) = listed.error {
            return Err(KafkaError::OffsetFetch(code));
        }
        if let Some(offset) = listed.offset {
            found.insert(listed.partition, (offset, listed.metadata));
        }
    }
    Ok(found)
}
