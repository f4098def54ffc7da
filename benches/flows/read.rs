//! A topic into a handler, and that into a sink that does nothing.
use super::{run, whole};
use crate::{
    loops::{Result, cluster::Filled, data::Purchase, meter::Meter},
    twin::clock::Took,
};
use slipstream::{Topic, flow, handle, kafka::Encoded};
use std::{hint::black_box, sync::Arc};
use tokio::runtime::Runtime;

struct Reader<V> {
    topic: Topic<(), V>,
    meter: Meter,
}

fn take(length: &usize) {
    black_box(length);
}

#[handle(app.topic, sink = take)]
fn look(app: &Reader<Vec<u8>>, message: Encoded<(), Vec<u8>>) -> usize {
    app.meter.message();
    black_box(message.value_bytes()).map_or(0, <[u8]>::len)
}

#[handle(app.topic, sink = take)]
fn own(app: &Reader<Vec<u8>>, value: Vec<u8>) -> usize {
    app.meter.message();
    black_box(value).len()
}

fn drop_it(purchase: &Purchase) {
    black_box(purchase);
}

#[handle(app.topic, sink = drop_it)]
fn decode(app: &Reader<Purchase>, purchase: Purchase) -> Purchase {
    app.meter.message();
    purchase
}

/// Looks at the bytes of each message.
pub(crate) fn read(runtime: &Runtime, filled: &Filled) -> Result<Took> {
    let reader = Arc::new(Reader { topic: whole!(filled, raw), meter: Meter::new(filled.count) });
    run(runtime, flow![look], Arc::clone(&reader))?;
    reader.meter.took()
}

/// Takes the value of each message, which is a `Vec`.
pub(crate) fn read_values(runtime: &Runtime, filled: &Filled) -> Result<Took> {
    let reader = Arc::new(Reader { topic: whole!(filled, raw), meter: Meter::new(filled.count) });
    run(runtime, flow![own], Arc::clone(&reader))?;
    reader.meter.took()
}

/// Decodes each message.
pub(crate) fn purchases(runtime: &Runtime, filled: &Filled) -> Result<Took> {
    let reader = Arc::new(Reader { topic: whole!(filled, json), meter: Meter::new(filled.count) });
    run(runtime, flow![decode], Arc::clone(&reader))?;
    reader.meter.took()
}
