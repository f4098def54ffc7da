//! Reading a topic to its end, in three ways.
use super::{
    Result,
    cluster::Filled,
    meter::Meter,
    native::{Lent, Queue},
};
use crate::twin::clock::Took;
use futures::StreamExt;
use rdkafka::{
    Message,
    consumer::{BaseConsumer, Consumer, StreamConsumer},
    error::KafkaError,
};
use std::{hint::black_box, time::Duration};
use tokio::runtime::Runtime;

/// A stream of messages, in a task.
pub(crate) fn stream(runtime: &Runtime, filled: &Filled) -> Result<Took> {
    let _inside = runtime.enter();
    let consumer: StreamConsumer = filled.consuming().create()?;
    consumer.assign(&filled.assignment()?)?;
    let meter = Meter::new(filled.count);
    let task = async move {
        let mut messages = consumer.stream();
        while let Some(message) = messages.next().await {
            match message {
                Ok(message) => {
                    black_box(message.payload());
                    if !meter.message() {
                        break;
                    }
                }
                Err(KafkaError::PartitionEOF(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        meter.took()
    };
    runtime.block_on(runtime.spawn(task))?
}

/// A message at a call.
pub(crate) fn poll(filled: &Filled) -> Result<Took> {
    let consumer: BaseConsumer = filled.consuming().create()?;
    consumer.assign(&filled.assignment()?)?;
    let meter = Meter::new(filled.count);
    while !meter.is_done() {
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                black_box(message.payload());
                meter.message();
            }
            None | Some(Err(KafkaError::PartitionEOF(_))) => {}
            Some(Err(error)) => return Err(error.into()),
        }
    }
    meter.took()
}

/// A queue of our own, drained in batches; `each` looks at the messages.
pub(crate) fn batches(filled: &Filled, mut each: impl FnMut(Lent<'_>) -> Result<()>) -> Result<Took> {
    let consumer: BaseConsumer = filled.consuming().create()?;
    let mut queue = queue(&consumer, filled)?;
    consumer.assign(&filled.assignment()?)?;
    let meter = Meter::new(filled.count);
    while !meter.is_done() {
        let taken = queue.drain(|message| {
            each(message)?;
            meter.message();
            Ok(())
        })?;
        consumer.poll(Duration::ZERO).transpose()?;
        if taken == 0 {
            queue.wait();
        }
    }
    meter.took()
}

/// To which all partitions are forwarded.
pub(crate) fn queue<'c>(consumer: &'c BaseConsumer, filled: &Filled) -> Result<Queue<'c>> {
    let queue = Queue::new(consumer);
    for partition in 0..filled.partitions {
        queue.forward(consumer, &filled.topic, partition)?;
    }
    Ok(queue)
}

/// Looks at the bytes where they are.
pub(crate) fn lent(filled: &Filled) -> Result<Took> {
    batches(filled, |message| {
        black_box(message.payload);
        Ok(())
    })
}

/// Copies each batch into one piece of memory, as one has to who keeps messages beyond the batch.
pub(crate) fn copied(filled: &Filled) -> Result<Took> {
    let mut arena = Vec::with_capacity(1 << 20);
    batches(filled, |message| {
        if arena.len() + message.payload.len() > arena.capacity() {
            arena = Vec::with_capacity(1 << 20);
        }
        let start = arena.len();
        arena.extend_from_slice(message.payload);
        black_box(arena.get(start..));
        Ok(())
    })
}
