//! What Slipstream adds to `rdkafka`.
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]
#[path = "bare/options.rs"]
mod bare_options;
mod loops;
mod twin;

use loops::{Result, cluster::Cluster, consume, data, keep, produce};
use std::{hint::black_box, sync::Arc};
use tokio::runtime::Builder;
use twin::Twins;

fn reading(twins: &mut Twins, runtime: &tokio::runtime::Runtime, cluster: &Cluster, whose: &str) -> Result<()> {
    for partitions in [1, 4] {
        let name = format!("read, {partitions} partitions, {whose}");
        if !twins.wants(&name) {
            continue;
        }
        let filled = cluster.filled(runtime, partitions, twins.size(500_000, 100_000, 2_000), data::hundred)?;
        let batch = || consume::batches(&filled, |message| { black_box(message.payload); Ok(()) });
        twins.several(
            &name,
            filled.count,
            &mut || batch(),
            &mut [
                ("stream", &mut || consume::stream(runtime, &filled)),
                ("poll", &mut || consume::poll(&filled)),
                ("batches", &mut || batch()),
                ("batches, copied", &mut || consume::copied(&filled)),
            ],
        )?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut twins = Twins::from_args();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let mock = Cluster::in_process()?;
    let given = Cluster::given();
    reading(&mut twins, &runtime, &mock, "in process")?;
    if let Some(real) = &given {
        reading(&mut twins, &runtime, real, "real")?;
    }
    let clusters = std::iter::once((&mock, "in process")).chain(given.as_ref().map(|real| (real, "real")));
    for (cluster, whose) in clusters {
        for partitions in [1, 4] {
            let count = twins.size(500_000, 100_000, 2_000);
            let topic = cluster.topic(&runtime, partitions)?;
            let keys: Vec<Arc<[u8]>> = (0..1_000_u64).map(|n| Arc::from(data::user(n).to_be_bytes())).collect();
            let go = |window| {
                produce::produce(&cluster.producing(), window, &topic, count, &keys, &[b'm'; 100])
            };
            twins.several(
                &format!("write, {partitions} partitions, {whose}"),
                count,
                &mut || go(10_000),
                &mut [("window of 10,000", &mut || go(10_000)), ("queue of 100,000", &mut || go(100_000))],
            )?;
            let filled = cluster.filled(&runtime, partitions, count, data::hundred)?;
            twins.several(
                &format!("keep, {partitions} partitions, {whose}"),
                count,
                &mut || keep::texts(&filled),
                &mut [("map", &mut || keep::texts(&filled))],
            )?;
        }
    }
    if let Some(real) = &given {
        let count = twins.size(500_000, 100_000, 2_000);
        let purchases = real.filled(&runtime, 1, count, data::purchase)?;
        let decode = || {
            consume::batches(&purchases, |message| {
                black_box(serde_json::from_slice::<data::Purchase>(message.payload)?);
                Ok(())
            })
        };
        twins.several("decode", count, &mut || decode(), &mut [("batches", &mut || decode())])?;
        twins.several("count", count, &mut || keep::count(&purchases), &mut [("map", &mut || keep::count(&purchases)), ("all in memory", &mut || keep::count_in_memory(&purchases))])?;
        let updates = real.filled(&runtime, 1, count, data::update)?;
        let orders = real.filled(&runtime, 1, count, data::order)?;
        let out = real.topic(&runtime, 1)?;
        let join = || keep::join(real, &updates, &orders, &out);
        twins.several("nearby join", 2 * count, &mut || join(), &mut [("map", &mut || join())])?;
    }
    Ok(())
}
