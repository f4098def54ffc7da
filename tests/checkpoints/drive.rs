//! Writes the rows of a schedule to the logs in a random interleaving, while the flow is run, dropped and run again.
use crate::{
    HANGS,
    log::{Log, Row},
    world::{Crash, World, count},
};
use slipstream::BoxError;
use std::{collections::VecDeque, time::Duration};
use tokio::{
    task::yield_now,
    time::{sleep, timeout},
};

/// How often a partition is chosen.
const SPEEDS: [i64; 4] = [1, 5, 20, 60];

/// A partition that is being written.
pub(crate) struct Script {
    log: Log,
    partition: i32,
    left: VecDeque<Row>,
    speed: i64,
}

pub(crate) fn scripts(world: &World) -> Vec<Script> {
    let speed = || world.rng.of(&SPEEDS);
    let of = |log: &Log, rows: &[Vec<Row>]| {
        let scripts = (0..).zip(rows).map(|(partition, rows)| Script {
            log: log.clone(),
            partition,
            left: rows.iter().copied().collect(),
            speed: speed(),
        });
        scripts.collect::<Vec<_>>()
    };
    let mut scripts = of(&world.dependent, &world.schedule.messages);
    for (log, dep) in world.dependencies.iter().zip(&world.schedule.dependencies) {
        scripts.extend(of(log, &dep.rows));
    }
    scripts
}

/// Waits for nothing, for the others' turns, for what was written, for all that can happen, or until partitions idle.
async fn wait(world: &World, log: &Log) {
    match world.rng.below(12) {
        0..5 => {}
        5..7 => {
            for _ in 0..world.rng.below(12) {
                yield_now().await;
            }
        }
        7..9 => {
            let mut progress = world.progress.subscribe();
            let is_done = |_: &u64| log.is_handled() || world.dependent.is(log) && world.is_paused();
            // A handler may hang until the run is dropped, and on other threads it is published only after the step.
            let at_most = if world.is_threaded { Duration::from_millis(2) } else { Duration::from_secs(1) };
            let _ = timeout(at_most, progress.wait_for(is_done)).await;
        }
        9..11 => sleep(Duration::from_millis(3)).await,
        _ => sleep(Duration::from_millis(if world.is_threaded { 30 } else { 70 })).await,
    }
}

/// Writes one row or some of a partition, and waits.
pub(crate) async fn write_some(world: &World, scripts: &mut Vec<Script>) {
    if world.rng.percent(4) {
        scripts.iter_mut().for_each(|script| script.speed = world.rng.of(&SPEEDS));
    }
    let total: i64 = scripts.iter().map(|script| script.speed).sum();
    if total == 0 {
        return;
    }
    let mut chosen = world.rng.below(total);
    let number = scripts.iter().position(|script| {
        chosen -= script.speed;
        chosen < 0
    });
    let number = number.unwrap();
    let script = &mut scripts[number];
    for _ in 0..world.rng.of(&[1, 1, 2, 20]) {
        if let Some(row) = script.left.pop_front() {
            script.log.write(script.partition, row);
        }
    }
    let log = script.log.clone();
    if script.left.is_empty() {
        scripts.swap_remove(number);
    }
    wait(world, &log).await;
}

/// Writes all rows, and closes each log some time after its last one.
async fn drive(world: World) {
    let mut scripts = scripts(&world);
    let mut open = logs(&world);
    while !open.is_empty() {
        if world.rng.percent(25) || scripts.is_empty() {
            let is_over = |log: &Log| !scripts.iter().any(|script| script.log.is(log));
            let over: Vec<usize> = (0..open.len()).filter(|number| is_over(&open[*number])).collect();
            if !over.is_empty() {
                let log = open.swap_remove(world.rng.of(&over));
                log.close();
                wait(&world, &log).await;
            }
        }
        write_some(&world, &mut scripts).await;
    }
}

fn logs(world: &World) -> Vec<Log> {
    world.dependencies.iter().chain([&world.dependent]).cloned().collect()
}

pub(crate) fn close(world: &World) {
    logs(world).iter().for_each(Log::close);
}

/// Runs the flow until it ends.
pub(crate) async fn runs(world: &World) -> Result<(), BoxError> {
    let driver = tokio::spawn(drive(world.clone()));
    let last = Crash::never();
    let crashes = world.schedule.crashes.iter().map(|(steps, waits)| Crash::after(*steps, *waits));
    for crash in crashes.chain([last]) {
        let run = timeout(HANGS, world.flow(&crash)?.run(()));
        tokio::select! {
            biased;
            () = crash.now.notified() => {
                count(&world.seen.crashes);
                if world.is_down() {
                    count(&world.seen.down_at_crash);
                }
            }
            ended = run => {
                ended.map_err(|_| format!("it hangs: {:?}", world.checkpoint().map(|checkpoint| checkpoint.status())))??;
                break;
            }
        }
    }
    timeout(HANGS, driver).await.map_err(|_| "the writing hangs")??;
    Ok(())
}
