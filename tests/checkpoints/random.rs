//! Random schedules, each from its seed.
use crate::{
    cases, drive,
    log::Row,
    oracle,
    rng::Rng,
    run,
    schedule::Schedule,
    world::{Crash, Seen, World},
};
use slipstream::BoxError;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::sleep;

fn holds(seed: u64, seen: &Arc<Seen>) -> Result<(), BoxError> {
    run(async {
        let rng = Rng::new(seed);
        let world = World::new(Schedule::new(&rng), rng, seen)?;
        drive::runs(&world).await?;
        oracle::check(&world)
    })
}

#[test]
fn so_they_are_on_several_threads() {
    for seed in 0..cases(40) {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        let threads = threads.worker_threads(3).enable_time().build().unwrap();
        let holds = threads.block_on(async {
            let rng = Rng::new(seed);
            let mut world = World::new(Schedule::new(&rng), rng, &Arc::default())?;
            world.is_threaded = true;
            drive::runs(&world).await?;
            oracle::check(&world)
        });
        if let Err(error) = holds {
            panic!("seed {seed}: {error}");
        }
    }
}

/// With the schedule, to find out why.
fn check(seed: u64) {
    if let Err(error) = holds(seed, &Arc::default()) {
        panic!("seed {seed}: {error}\n{:?}", Schedule::new(&Rng::new(seed)));
    }
}

/// The seed `SLIPSTREAM_SEED`, to be looked at, or so many from 0 on.
#[test]
fn the_last_answers_are_the_join_of_all_data_whatever_comes_when() {
    if let Ok(seed) = std::env::var("SLIPSTREAM_SEED") {
        return check(seed.parse().expect("SLIPSTREAM_SEED is a number"));
    }
    let (cases, seen) = (cases(150), Arc::default());
    let broken = |seed| Some(format!("seed {seed}: {}", holds(seed, &seen).err()?));
    let broken: Vec<_> = (0..cases).filter_map(broken).collect();
    let some = broken.get(..20).unwrap_or(&broken).join("\n");
    assert!(broken.is_empty(), "{} of {cases} are broken, among them\n{some}", broken.len());
    // It has come to all that the schedules are there for.
    let Seen { outages, repairs, replayed, deferred, crashes, down_at_crash, lacking, quiet } = &*seen;
    for counter in [outages, repairs, replayed, deferred, crashes, down_at_crash, lacking, quiet] {
        assert!(counter.load(Ordering::Relaxed) as u64 > cases / 20, "{cases} cases: {seen:?}");
    }
}

// The heartbeat of one partition closed the window over messages that another's first was still to change.
#[test]
fn the_first_update_of_a_partition_may_be_late() -> Result<(), BoxError> {
    run(async {
        let rows = |time, key, number| vec![Row { time, key, number }];
        let (first, second, messages) = (rows(10, 0, 1), rows(3, 1, 2), rows(5, 1, 0));
        let schedule = Schedule::plain(vec![first.clone(), second.clone()], vec![messages.clone()]);
        let world = World::new(schedule, Rng::new(0), &Arc::default())?;
        let flow = world.flow(&Crash::never())?;
        let (dependency, dependent) = (world.dependencies[0].clone(), world.dependent.clone());
        let driver = tokio::spawn(async move {
            let rows =
                [(&dependency, 0, first[0]), (&dependent, 0, messages[0]), (&dependency, 1, second[0])];
            for (log, partition, row) in rows {
                log.write(partition, row);
                // All that can happen has happened then.
                sleep(Duration::from_secs(1)).await;
            }
            dependency.close();
            dependent.close();
        });
        flow.run(()).await?;
        driver.await?;
        oracle::check(&world)
    })
}
