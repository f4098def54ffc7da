//! What a commit stores of a checkpoint is its memory: a run that begins with it stands as the one before stood.
use crate::{
    HANGS, cases, drive, oracle,
    rng::Rng,
    run,
    schedule::Schedule,
    world::{Crash, World},
};
use slipstream::{BoxError, Status};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// How often it came to what is worth a comparison.
#[derive(Debug, Default)]
struct Seen {
    down: u64,
    repairing: u64,
    open: u64,
}

/// What a restart has to know of it.
fn kept(mut status: Status) -> Status {
    assert!(status.dependencies.iter().all(|dep| dep.too_late == 0), "{status:?}");
    status.repairs = 0;
    status.dependencies.iter_mut().for_each(|dep| dep.tolerated = 0);
    status
}

/// Writes some rows, waits until nothing moves, commits, drops the run, and compares how the next one begins; until all
/// rows are written.
async fn stays(world: &World, seen: &mut Seen) -> Result<(), BoxError> {
    let mut scripts = drive::scripts(world);
    let mut before: Option<Status> = None;
    loop {
        // A handler may hang in the middle of a message, and a callback before its repair.
        let crash = Crash::after(world.rng.below(40), true);
        let crash = if world.rng.percent(30) { crash } else { Crash::never() };
        world.lets_repair.send_replace(world.rng.percent(60) || scripts.is_empty());
        let flow = world.flow(&if scripts.is_empty() { Crash::never() } else { crash })?;
        let (handle, begun) = (flow.handle(), Arc::new(Mutex::new(None)));
        let checkpoint = world.checkpoint().ok_or("the flow has none")?;
        world.dependencies[0].on_open({
            let (begun, checkpoint) = (Arc::clone(&begun), checkpoint.clone());
            move || *begun.lock().unwrap() = Some(checkpoint.status())
        });
        let is_last = scripts.is_empty();
        let part = async {
            for _ in 0..world.rng.below(6) {
                drive::write_some(world, &mut scripts).await;
            }
            if is_last {
                drive::close(world);
                return std::future::pending().await;
            }
            sleep(Duration::from_secs(1)).await;
            handle.commit_now().await?;
            Ok::<_, BoxError>(checkpoint.status())
        };
        let stood = tokio::select! {
            ended = timeout(HANGS, flow.run(())) => Err(ended.map_err(|_| "it hangs")?),
            stood = part => Ok(stood?),
        };
        let begun = begun.lock().unwrap().take().ok_or("nothing was opened")?;
        if let Some(before) = before.take() {
            let before = kept(before);
            if before != begun {
                return Err(format!("it begins as\n{begun:?}\nand stood as\n{before:?}").into());
            }
            let is_down = world.is_down();
            seen.down += u64::from(is_down);
            seen.repairing += u64::from(begun.is_repair_due && !is_down);
            seen.open += u64::from(begun.window > 1);
        }
        match stood {
            Ok(status) => before = Some(status),
            Err(ended) => return ended,
        }
    }
}

#[test]
fn a_run_begins_as_the_one_before_stood_at_its_last_commit() {
    let mut seen = Seen::default();
    for seed in 0..cases(60) {
        let held = run(async {
            let rng = Rng::new(seed);
            let mut schedule = Schedule::new(&rng);
            // What is idle is not stored: it shows again.
            schedule.dependencies.iter_mut().for_each(|dep| dep.may_idle = false);
            let world = World::new(schedule, rng, &Arc::default())?;
            stays(&world, &mut seen).await?;
            oracle::check(&world)
        });
        if let Err(error) = held {
            panic!("seed {seed}: {error}");
        }
    }
    let Seen { down, repairing, open } = seen;
    assert!([down, repairing, open].iter().all(|times| *times > cases(60) / 20), "{seen:?}");
}
