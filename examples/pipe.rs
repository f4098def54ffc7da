//! Pipes: functions from stream to stream before a handler. Here the difference of each two prices
//! that follow each other (pairwise), and their running total (accumulate).
//!
//! `cargo run --example pipe`
use futures::{Stream, StreamExt, future::ready};
use slipstream::{Items, Result, flow, handle, iter, print};

const PRICES: [i64; 5] = [100, 102, 99, 99, 105];

fn pairwise(prices: Items<i64>) -> impl Stream<Item = (i64, i64)> {
    let pairs = prices.scan(None, |before: &mut Option<i64>, price| {
        ready(Some(before.replace(price).map(|before| (before, price))))
    });
    pairs.filter_map(ready)
}

fn accumulate(prices: Items<i64>) -> impl Stream<Item = i64> {
    prices.scan(0, |total, price| {
        *total += price;
        ready(Some(*total))
    })
}

#[handle(iter(PRICES), pipe = pairwise, sink = print)]
fn change((before, now): (i64, i64)) -> (&'static str, i64) {
    ("change", now - before)
}

#[handle(iter(PRICES), pipe = [accumulate, |totals| totals.skip(4)], sink = print)]
fn total(total: i64) -> (&'static str, i64) {
    ("total", total)
}

#[tokio::main]
async fn main() -> Result<()> {
    flow![change].run(()).await?;
    flow![total].run(()).await
}
