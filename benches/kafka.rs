//! What topics add to `rdkafka`: flows against loops written by hand, over the same topics, by turns.
//!
//! ```text
//! read      topic ──▶ handler ──▶ a sink that does nothing      StreamConsumer, poll, batches
//! write     numbers ──▶ topic                                   a window, acknowledged each 100 ms
//! keep      topic ──▶ handler ──▶ cache, committed each 100 ms  batches, a map, a synced batch of rows
//! decode    topic ──▶ JSON ──▶ nothing
//! count     topic ──▶ JSON ──▶ counts of 100,000 keys
//! join      two topics ──▶ JSON ──▶ rows by time ──as of──▶ JSON ──▶ a third topic
//! ```
//!
//! Messages have 100 bytes, JSON has about 50. The first three run on librdkafka's mock cluster, with one and four
//! partitions; all but `keep` on a real broker where there is one: `--bootstrap-servers=HOST:PORT`, or what
//! `scripts/kafka start` prints, `KAFKA_1=HOST:PORT`, in the environment.
//!
//! What is measured of reading begins with the first message handled and ends with the last: no start, no joining of
//! a group, no leaving. Writing is measured from the first message until all is acknowledged. The mock's broker is a
//! thread of this process, so that its time is in that of the process, ours as well as theirs; the time without it is
//! beside it. The mock keeps five megabytes of a partition as they were sent, so its topics are packed with lz4.
//!
//! `cargo bench --bench kafka -- read`; see `twin` for the arguments.
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]
#[path = "bare/options.rs"]
mod bare_options;
mod flows;
mod loops;
mod twin;

use loops::{Result, cluster::Cluster, consume, data, keep, produce::produce};
use std::{hint::black_box, sync::Arc};
use tokio::runtime::{Builder, Runtime};
use twin::Twins;

struct Bench {
    twins: Twins,
    runtime: Runtime,
    count: u64,
    /// Where a message costs microseconds.
    fewer: u64,
}

const HUNDRED: [u8; 100] = [b'm'; 100];

/// "1 partition" or more.
fn of(partitions: i32, whose: &str) -> String {
    let s = if partitions == 1 { "" } else { "s" };
    format!("{partitions} partition{s}, {whose}")
}

impl Bench {
    fn read(&mut self, cluster: &Cluster, partitions: i32, whose: &str) -> Result<()> {
        let Bench { twins, runtime, count, .. } = self;
        let name = format!("read, {}", of(partitions, whose));
        if !twins.wants(&name) {
            return Ok(());
        }
        let filled = cluster.filled(runtime, partitions, *count, |_, bytes| bytes.extend(HUNDRED))?;
        twins.several(
            &name,
            *count,
            &mut || flows::read::read(runtime, &filled),
            &mut [
                ("ours, values", &mut || flows::read::read_values(runtime, &filled)),
                ("stream", &mut || consume::stream(runtime, &filled)),
                ("poll", &mut || consume::poll(&filled)),
                ("batches", &mut || consume::lent(&filled)),
                ("batches, copied", &mut || consume::copied(&filled)),
            ],
        )
    }

    fn write(&mut self, cluster: &Cluster, partitions: i32, whose: &str) -> Result<()> {
        let Bench { twins, runtime, count, .. } = self;
        let name = format!("write, {}", of(partitions, whose));
        if !twins.wants(&name) {
            return Ok(());
        }
        let topic = cluster.topic(runtime, partitions)?;
        let keys: Arc<[Arc<[u8]>]> = (0..1_000).map(|n| Arc::from(data::user(n).to_be_bytes())).collect();
        let by_hand = |window| produce(&cluster.producing(), window, &topic, *count, &keys, &HUNDRED);
        twins.several(
            &name,
            *count,
            &mut || flows::write::write(runtime, cluster.servers(), &topic, *count, &keys, &HUNDRED),
            &mut [
                ("window of 10,000", &mut || by_hand(10_000)),
                ("window of 100,000", &mut || by_hand(100_000)),
            ],
        )
    }

    fn keep(&mut self, cluster: &Cluster, partitions: i32, whose: &str) -> Result<()> {
        let Bench { twins, runtime, count, .. } = self;
        let name = format!("keep, {}", of(partitions, whose));
        if !twins.wants(&name) {
            return Ok(());
        }
        let filled = cluster.filled(runtime, partitions, *count, |_, bytes| bytes.extend(HUNDRED))?;
        twins.several(
            &name,
            *count,
            &mut || flows::keep::texts(runtime, &filled),
            &mut [("map", &mut || keep::texts(&filled))],
        )
    }

    fn decode(&mut self, cluster: &Cluster) -> Result<()> {
        let Bench { twins, runtime, count, .. } = self;
        if !twins.wants("decode") {
            return Ok(());
        }
        let filled = cluster.filled(runtime, 1, *count, data::purchase)?;
        let by_hand = || {
            consume::batches(&filled, |message| {
                black_box(serde_json::from_slice::<data::Purchase>(message.payload)?);
                Ok(())
            })
        };
        twins.several(
            "decode",
            *count,
            &mut || flows::read::purchases(runtime, &filled),
            &mut [("batches", &mut || by_hand())],
        )
    }

    fn count(&mut self, cluster: &Cluster) -> Result<()> {
        let Bench { twins, runtime, fewer, .. } = self;
        if !twins.wants("count") {
            return Ok(());
        }
        let filled = cluster.filled(runtime, 1, *fewer, data::purchase)?;
        twins.several(
            "count",
            *fewer,
            &mut || flows::keep::count(runtime, &filled),
            &mut [
                ("map of what is new", &mut || keep::count(&filled)),
                ("all in memory", &mut || keep::count_in_memory(&filled)),
            ],
        )
    }

    fn join(&mut self, cluster: &Cluster) -> Result<()> {
        let Bench { twins, runtime, fewer, .. } = self;
        if !twins.wants("join") {
            return Ok(());
        }
        let updates = cluster.filled(runtime, 1, *fewer, data::update)?;
        let orders = cluster.filled(runtime, 1, *fewer, data::order)?;
        let out = cluster.topic(runtime, 1)?;
        twins.several(
            "join",
            2 * *fewer,
            &mut || flows::keep::join(runtime, &updates, &orders, &out),
            &mut [("map", &mut || keep::join(cluster, &updates, &orders, &out))],
        )
    }
}

fn main() -> Result<()> {
    let twins = Twins::from_args();
    let count = twins.size(500_000, 100_000, 2_000);
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let fewer = twins.size(300_000, 60_000, 2_000);
    let mut bench = Bench { twins, runtime, count, fewer };
    let mock = Cluster::in_process()?;
    for partitions in [1, 4] {
        bench.read(&mock, partitions, "in process")?;
        bench.write(&mock, partitions, "in process")?;
        bench.keep(&mock, partitions, "in process")?;
    }
    let Some(real) = Cluster::given() else {
        println!("\nWithout a real broker: no decoding, no count by key, no join.");
        return Ok(());
    };
    bench.read(&real, 1, "real broker")?;
    bench.write(&real, 1, "real broker")?;
    bench.decode(&real)?;
    bench.count(&real)?;
    bench.join(&real)
}
