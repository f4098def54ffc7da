//! A channel: one handler splits orders into items, another takes the items from the stock, and both are
//! one message. If an item is missing, nothing of its order is taken and the flow stops; with
//! `on_error`, the order goes on without the item.
//!
//! `cargo run --example channel`
#![allow(clippy::print_stdout)] // an example may
use slipstream::{Cache, Channel, Iter, OnError, Result, flow, handle, iter};
use std::sync::Arc;

struct App {
    orders: Iter<[&'static str; 3]>,
    items: Channel<&'static str>,
    stock: Cache<String, u32>,
}

#[handle(app.orders, sink = app.items)]
fn split(app: &App, order: &'static str) -> Vec<&'static str> {
    order.split(' ').collect()
}

/// Takes one from the stock, or fails.
#[handle(app.items, sink = app.stock)]
fn take(app: &App, item: &'static str) -> Result<(String, u32)> {
    let left = app.stock.get(item)?.unwrap_or(0).checked_sub(1);
    Ok((item.to_owned(), left.ok_or(format!("there is no {item} left"))?))
}

/// The same, but what is missing is left out.
#[handle(app.items, sink = app.stock, on_error = OnError::skip())]
fn take_what_is_there(app: &App, item: &'static str) -> Result<(String, u32)> {
    take(app, item)
}

impl App {
    fn new() -> Result<Arc<Self>> {
        let stock = Cache::in_memory()?;
        for (item, count) in [("apple", 3), ("fig", 1), ("pear", 2)] {
            stock.insert(item, count)?;
        }
        Ok(Arc::new(App {
            orders: iter(["apple fig", "apple fig pear", "pear"]),
            items: Channel::new(),
            stock,
        }))
    }

    fn print_stock(&self) -> Result<()> {
        for row in &self.stock {
            let (item, count) = row?;
            println!("  {item}: {count}");
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let app = App::new()?;
    // The second order has taken no apple either, and the third was not begun.
    if let Err(error) = flow![split, take].run(Arc::clone(&app)).await {
        println!("stopped: {error:?}");
    }
    app.print_stock()?;

    let app = App::new()?;
    flow![split, take_what_is_there].run(Arc::clone(&app)).await?;
    println!("all orders, without what was missing:");
    app.print_stock()
}
