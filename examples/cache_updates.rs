//! A handler on a cache: it is called for each change, inside of the message that makes it. Here one
//! keeps the latest prices, and another tells when a price crosses a limit, whoever has set it.
//!
//! `cargo run --example cache_updates`
#![allow(clippy::print_stdout)] // an example may
use slipstream::{Cache, Iter, Result, Store, flow, handle, iter};

/// A share, and its price; none when it is no longer traded.
type Quote = (String, Option<u32>);

struct App {
    quotes: Iter<Vec<Quote>>,
    prices: Cache<String, u32>,
    /// The shares whose price is above the limit.
    high: Cache<String, ()>,
}

const LIMIT: u32 = 100;

/// A cache sets the value of a `Some`, and removes the key for a `None`.
#[handle(app.quotes, sink = app.prices)]
fn keep_latest(app: &App, quote: Quote) -> Quote {
    quote
}

#[handle(app.prices, sink = |alert| println!("{alert}"))]
fn alert(app: &App, (share, price): Quote) -> Result<Option<String>> {
    let was_high = app.high.contains_key(&share)?;
    match price {
        Some(price) if price > LIMIT && !was_high => {
            app.high.insert(&share, ())?;
            Ok(Some(format!("{share} is above {LIMIT}: {price}")))
        }
        Some(price) if price <= LIMIT && was_high => {
            app.high.remove(&share)?;
            Ok(Some(format!("{share} is down again: {price}")))
        }
        Some(_) => Ok(None),
        None => {
            app.high.remove(&share)?;
            Ok(Some(format!("{share} is no longer traded")))
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let quotes = [
        ("ACME", Some(96)),
        ("ACME", Some(104)),
        ("INITECH", Some(300)),
        ("ACME", Some(107)),
        ("ACME", Some(99)),
        ("INITECH", None),
        ("ACME", Some(101)),
    ];
    let store = Store::in_memory()?;
    let app = App {
        quotes: iter(quotes.map(|(share, price)| (share.to_owned(), price)).to_vec()),
        prices: store.cache("prices")?,
        high: store.cache("high")?,
    };
    flow![keep_latest, alert].run(app).await
}
