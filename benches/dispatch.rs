//! What Slipstream adds to a message: handlers between a source in memory and a sink that does
//! nothing, against the loop that one would write by hand in their place, in a task over the same
//! stream. Panics are caught and the message's transaction is set, without a store.
//!
//! `cargo bench --bench dispatch`; see `twin` for its arguments.
mod twin;

use futures::{Stream, StreamExt, future::ready, stream};
use slipstream::{AsyncIterable, Emitter, Flow, Items, flow, handle};
use std::{
    future::poll_fn,
    hint::black_box,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};
use tokio::runtime::{Builder, Runtime};
use twin::Twins;

struct App {
    numbers: Numbers,
    factor: u64,
}

/// A place in the context, so that handlers share it.
struct Numbers(u64);

impl AsyncIterable for Numbers {
    type Item = u64;
    fn open(&self) -> impl Stream<Item = u64> + Send + 'static {
        stream::iter(0..self.0)
    }
}

fn take(n: &u64) {
    black_box(n);
}

#[handle(app.numbers, sink = take)]
fn multiply(app: &App, n: u64) -> u64 {
    n.wrapping_mul(app.factor)
}

async fn multiply_by_hand(app: Arc<App>) {
    let mut numbers = pin!(app.numbers.open());
    while let Some(n) = numbers.next().await {
        take(&multiply(&app, n));
    }
}

#[handle(app.numbers, sink = take)]
async fn multiply_async(app: &App, n: u64) -> u64 {
    n.wrapping_mul(app.factor)
}

async fn multiply_async_by_hand(app: Arc<App>) {
    let mut numbers = pin!(app.numbers.open());
    while let Some(n) = numbers.next().await {
        take(&multiply_async(&app, n).await);
    }
}

#[handle(app.numbers, sink = take)]
async fn add_async(app: &App, n: u64) -> u64 {
    n.wrapping_add(app.factor)
}

async fn two_handlers_by_hand(app: Arc<App>) {
    let mut numbers = pin!(app.numbers.open());
    while let Some(n) = numbers.next().await {
        let (product, sum) = (multiply_async(&app, n).await, add_async(&app, n).await);
        take(&product);
        take(&sum);
    }
}

#[handle(app.numbers, sink = take)]
fn add(app: &App, n: u64) -> u64 {
    n.wrapping_add(app.factor)
}

async fn two_sync_handlers_by_hand(app: Arc<App>) {
    let mut numbers = pin!(app.numbers.open());
    while let Some(n) = numbers.next().await {
        let (product, sum) = (multiply(&app, n), add(&app, n));
        take(&product);
        take(&sum);
    }
}

#[handle(app.numbers, sink = [take, |n: &u64| { black_box(n); }])]
async fn into_two_sinks(app: &App, n: u64) -> u64 {
    n.wrapping_mul(app.factor)
}

async fn into_two_sinks_by_hand(app: Arc<App>) {
    let mut numbers = pin!(app.numbers.open());
    while let Some(n) = numbers.next().await {
        let product = into_two_sinks(&app, n).await;
        take(&product);
        take(&product);
    }
}

#[handle(app.numbers, sink = |n| async move { black_box(n); })]
async fn into_async_sink(app: &App, n: u64) -> u64 {
    n.wrapping_mul(app.factor)
}

async fn into_async_sink_by_hand(app: Arc<App>) {
    let sink = |n: u64| async move {
        black_box(n);
    };
    let mut numbers = pin!(app.numbers.open());
    while let Some(n) = numbers.next().await {
        sink(into_async_sink(&app, n).await).await;
    }
}

#[handle(app.numbers, sink = take)]
fn emit(app: &App, n: u64, out: &mut Emitter<u64>) {
    out.emit(n.wrapping_mul(app.factor));
}

async fn emit_by_hand(app: Arc<App>) {
    let mut numbers = pin!(app.numbers.open());
    while let Some(n) = numbers.next().await {
        let mut out = Emitter::default();
        emit(&app, n, &mut out);
        for product in out.into_vec() {
            take(&product);
        }
    }
}

fn differences(numbers: Items<u64>) -> impl Stream<Item = u64> {
    differences_of(numbers)
}

fn differences_of(numbers: impl Stream<Item = u64>) -> impl Stream<Item = u64> {
    numbers.scan(0, |before, n| ready(Some(n - std::mem::replace(before, n))))
}

#[handle(app.numbers, pipe = differences, sink = take)]
async fn piped(app: &App, n: u64) -> u64 {
    n.wrapping_mul(app.factor)
}

async fn piped_by_hand(app: Arc<App>) {
    let mut numbers = pin!(differences_of(app.numbers.open()));
    while let Some(n) = numbers.next().await {
        take(&piped(&app, n).await);
    }
}

#[handle(app.numbers, sink = take)]
async fn wait_once(app: &App, n: u64) -> u64 {
    let mut waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    n.wrapping_mul(app.factor)
}

async fn wait_once_by_hand(app: Arc<App>) {
    let mut numbers = pin!(app.numbers.open());
    while let Some(n) = numbers.next().await {
        take(&wait_once(&app, n).await);
    }
}

struct Bench {
    twins: Twins,
    runtime: Runtime,
    app: Arc<App>,
}

impl Bench {
    fn case<F>(&mut self, name: &str, flow: impl Fn() -> Flow<App>, by_hand: impl Fn(Arc<App>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Bench { twins, runtime, app } = self;
        let case = |_| {
            let flow = flow().run(Arc::clone(app));
            on_worker(runtime, async { flow.await.expect("no handler fails") })
        };
        let twin = |_| {
            let task = by_hand(Arc::clone(app));
            on_worker(runtime, async { tokio::spawn(task).await.expect("it does not panic") })
        };
        twins.compare(name, app.numbers.0, case, twin);
    }
}

/// Runs on the one worker, which is timed: waking another thread at both ends is not.
fn on_worker(runtime: &Runtime, work: impl Future<Output = ()> + Send + 'static) -> Duration {
    let timed = async {
        let start = Instant::now();
        work.await;
        start.elapsed()
    };
    runtime.block_on(runtime.spawn(timed)).expect("it does not panic")
}

fn main() {
    let twins = Twins::from_args();
    let runtime =
        Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("the system has a thread");
    let app = Arc::new(App { numbers: Numbers(twins.size(1_000_000, 500_000, 1_000)), factor: black_box(3) });
    let mut bench = Bench { twins, runtime, app };
    bench.case("handler, sync", || flow![multiply], multiply_by_hand);
    bench.case("handler, async", || flow![multiply_async], multiply_async_by_hand);
    bench.case("two handlers, sync", || flow![multiply, add], two_sync_handlers_by_hand);
    bench.case("two handlers, async", || flow![multiply_async, add_async], two_handlers_by_hand);
    bench.case("two sinks", || flow![into_two_sinks], into_two_sinks_by_hand);
    bench.case("async sink", || flow![into_async_sink], into_async_sink_by_hand);
    bench.case("emitter", || flow![emit], emit_by_hand);
    bench.case("pipe", || flow![piped], piped_by_hand);
    bench.case("handler that waits once", || flow![wait_once], wait_once_by_hand);
}
