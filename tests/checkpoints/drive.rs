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

/// A partition that is being written.
struct Script {
    log: Log,
    partition: i32,
    left: VecDeque<Row>,
    speed: i64,
    is_dependent: bool,
}

fn scripts(world: &World) -> Vec<Script> {
    let speed = || world.rng.of(&[1, 5, 20, 60]);
    let of = |log: &Log, rows: &[Vec<Row>], is_dependent| {
        let scripts = (0..).zip(rows).map(|(partition, rows)| Script {
            log: log.clone(),
            partition,
            left: rows.iter().copied().collect(),
            speed: speed(),
            is_dependent,
        });
        scripts.collect::<Vec<_>>()
    };
    let mut scripts = of(&world.dependent, &world.schedule.messages, true);
    for (log, dep) in world.dependencies.iter().zip(&world.schedule.dependencies) {
        scripts.extend(of(log, &dep.rows, false));
    }
    scripts
}

/// Waits for nothing, for the others' turns, for what was written, for all that can happen, or until partitions idle.
async fn wait(world: &World, log: &Log, is_dependent: bool) {
    match world.rng.below(12) {
        0..5 => {}
        5..7 => {
            for _ in 0..world.rng.below(12) {
                yield_now().await;
            }
        }
        7..9 => {
            let mut progress = world.progress.subscribe();
            let is_done = |_: &u64| log.is_handled() || is_dependent && world.is_paused();
            let _ = progress.wait_for(is_done).await;
        }
        9..11 => sleep(Duration::from_millis(3)).await,
        _ => sleep(Duration::from_millis(70)).await,
    }
}

/// Writes all rows, and closes each log some time after its last one.
async fn drive(world: World) {
    let mut scripts = scripts(&world);
    let mut open: Vec<Log> = world.dependencies.iter().chain([&world.dependent]).cloned().collect();
    loop {
        if world.rng.percent(4) {
            scripts.iter_mut().for_each(|script| script.speed = world.rng.of(&[1, 5, 20, 60]));
        }
        if world.rng.percent(25) || scripts.is_empty() {
            let is_over = |log: &Log| !scripts.iter().any(|script| script.log.is(log));
            let over: Vec<usize> = (0..open.len()).filter(|number| is_over(&open[*number])).collect();
            if !over.is_empty() {
                let log = open.swap_remove(world.rng.of(&over));
                log.close();
                wait(&world, &log, log.is(&world.dependent)).await;
            }
        }
        let total: i64 = scripts.iter().map(|script| script.speed).sum();
        if total == 0 {
            if open.is_empty() {
                return;
            }
            continue;
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
        let (log, is_dependent) = (script.log.clone(), script.is_dependent);
        if script.left.is_empty() {
            scripts.swap_remove(number);
        }
        wait(&world, &log, is_dependent).await;
    }
}

/// Runs the flow until it ends.
pub(crate) async fn runs(world: &World) -> Result<(), BoxError> {
    let driver = tokio::spawn(drive(world.clone()));
    let last = Crash::after(i64::MAX, false);
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
