//! Topics into caches, and out of them.
use super::{kafka, run, whole};
use crate::{
    loops::{
        Result,
        cluster::Filled,
        data::{Joined, Now, Order, Purchase, Update, Weather, user},
        meter::Meter,
    },
    twin::clock::Took,
};
use slipstream::{Cache, Store, Timestamp, Topic, flow, handle, kafka::Encoded};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::runtime::Runtime;

struct Keeper {
    messages: Topic<(), String>,
    texts: Cache<u64, String>,
    meter: Meter,
}

#[handle(app.messages, sink = app.texts)]
fn keep(app: &Keeper, message: Encoded<(), String>) -> slipstream::Result<(u64, String)> {
    app.meter.message();
    Ok((user(message.offset().unsigned_abs()), message.value()?))
}

/// Keeps each message's text under one of 100,000 keys.
pub(crate) fn texts(runtime: &Runtime, filled: &Filled) -> Result<Took> {
    let directory = TempDir::new()?;
    let store = Store::open(directory.path())?;
    let keeper = Arc::new(Keeper {
        messages: whole!(filled, text),
        texts: store.cache("texts")?,
        meter: Meter::new(filled.count),
    });
    run(runtime, flow![keep].store(&store), Arc::clone(&keeper))?;
    keeper.meter.took()
}

struct Counter {
    purchases: Topic<(), Purchase>,
    counts: Cache<u64, u64>,
    meter: Meter,
}

#[handle(app.purchases)]
fn count_one(app: &Counter, purchase: Purchase) -> slipstream::Result<()> {
    app.meter.message();
    app.counts.update(&purchase.user, |count| count.unwrap_or(0) + 1)?;
    Ok(())
}

/// Counts purchases by user.
pub(crate) fn count(runtime: &Runtime, filled: &Filled) -> Result<Took> {
    let directory = TempDir::new()?;
    let store = Store::open(directory.path())?;
    let counter = Arc::new(Counter {
        purchases: whole!(filled, json),
        counts: store.cache("counts")?,
        meter: Meter::new(filled.count),
    });
    run(runtime, flow![count_one].store(&store), Arc::clone(&counter))?;
    counter.meter.took()
}

struct Shop {
    updates: Topic<(), Update>,
    orders: Topic<(), Order>,
    weather: Cache<Timestamp, Weather>,
    joined: Topic<(), Joined>,
    now: Now,
    meter: Meter,
}

#[handle(app.updates, sink = app.weather)]
fn updated(app: &Shop, update: Update) -> (Timestamp, Weather) {
    app.meter.message();
    app.now.updated(update.time);
    (Timestamp::from_micros(update.time), Weather { celsius: update.celsius, wind: update.wind })
}

#[handle(app.orders, sink = app.joined)]
fn ordered(app: &Shop, order: Order) -> slipstream::Result<Option<((), Joined)>> {
    app.meter.message();
    let Order { order, count, .. } = order;
    let held = app.weather.as_of(&Timestamp::from_micros(app.now.asked(order)))?;
    Ok(held.map(|(_, weather)| ((), Joined { order, count, celsius: weather.celsius })))
}

/// Joins each order to the weather as of its time, into a third topic.
pub(crate) fn join(runtime: &Runtime, updates: &Filled, orders: &Filled, out: &str) -> Result<Took> {
    let directory = TempDir::new()?;
    let store = Store::open(directory.path())?;
    let shop = Arc::new(Shop {
        updates: whole!(updates, json),
        orders: whole!(orders, json),
        weather: store.cache("weather")?,
        joined: kafka(&updates.servers)?.topic(out).json(),
        now: Now::default(),
        meter: Meter::new(updates.count + orders.count),
    });
    run(runtime, flow![updated, ordered].store(&store), Arc::clone(&shop))?;
    shop.meter.took()
}
