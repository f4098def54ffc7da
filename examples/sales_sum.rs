//! Sums over a stream that is handled again where a price comes late: what no revision changes is added once, and of
//! what it does change the earlier answer is taken back.
//!
//! `cargo run --example sales_sum`
#![allow(clippy::print_stdout)] // an example may
use serde::{Deserialize, Serialize};
use slipstream::{
    Cache, Checkpoint, Csv, Dependency, Iter, Named, Result, Store, Timestamp, flow, handle, is_replayed,
    iter, named, replay,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::Notify;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Sale {
    number: u32,
    time: Timestamp,
    pieces: i64,
}

struct App {
    prices: Named<Iter<[(&'static str, i64); 3]>>, // from when on, and how much a piece is
    sales: Csv<Sale>,
    price: Cache<Timestamp, i64>,
    bills: Cache<u32, i64>,
    sums: Cache<String, i64>,
    checkpoint: Checkpoint,
    noticed: Arc<Notify>,
}

#[handle(app.prices, sink = app.price)]
async fn handle_price(app: &App, (from, price): (&'static str, i64)) -> Result<(Timestamp, i64)> {
    if from == "10:00" {
        app.sales.resume(); // the first price is there,
        app.noticed.notified().await; // and this one comes after a sale has asked for it
    }
    app.checkpoint.heartbeat(time(from))?;
    Ok((time(from), price))
}

#[handle(app.sales, sink = |line: &String| println!("{line}"))]
fn handle_sale(app: &App, Sale { number, time, pieces }: Sale) -> Result<String> {
    let pulse = app.checkpoint.check_pulse(time)?; // what is known is answered; a revision will follow
    let price = app.price.as_of(&time)?.map_or(0, |(_, price)| price);
    let bill = pieces * price;

    // Whoever adds whatever comes adds some sales twice.
    app.add("pieces, whatever comes", pieces)?;
    // How many there are is the same however often they come. (A topic's message says it too: `message.replayed`.)
    if !is_replayed() {
        app.add("pieces", pieces)?;
    }
    // How much they cost is not: what was billed before is taken back.
    let before = app.bills.get(&number)?.unwrap_or(0);
    app.bills.insert(&number, bill)?;
    app.add("billed", bill - before)?;

    let again = if is_replayed() { ", again" } else { "" };
    let late = if pulse.is_down() { ", and prices are late" } else { "" };
    Ok(format!("sale {number}: {pieces} at {price} is {bill}{again}{late}"))
}

impl App {
    fn open() -> Result<Self> {
        let store = Store::in_memory()?;
        let prices = named("prices", iter([("09:00", 10), ("10:00", 11), ("11:00", 12)]));
        let sales = replay(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/sales.csv")).csv();
        sales.pause(); // until the first price is there
        let noticed = Arc::new(Notify::new());
        let wakes = Arc::clone(&noticed);
        let checkpoint = Checkpoint::builder("sales", &sales)
            .dependency(Dependency::new("prices", &prices).threshold(Duration::from_hours(1)))
            .on_downtime(move |_| wakes.notify_one())
            .build()?;
        let (price, bills, sums) = (store.cache("price")?, store.cache("bills")?, store.cache("sums")?);
        Ok(App { prices, sales, price, bills, sums, checkpoint, noticed })
    }

    fn add(&self, to: &str, amount: i64) -> Result<()> {
        self.sums.update(to, |sum| sum.unwrap_or(0) + amount)?;
        Ok(())
    }
}

fn time(at: &str) -> Timestamp {
    format!("2023-01-01T{at}:00Z").parse().expect("hours and minutes")
}

#[tokio::main]
async fn main() -> Result<()> {
    let app = Arc::new(App::open()?);
    flow![handle_price, handle_sale].checkpoint(&app.checkpoint).run(Arc::clone(&app)).await?;
    for row in &app.sums {
        let (name, sum) = row?;
        println!("{name}: {sum}");
    }
    Ok(())
}
