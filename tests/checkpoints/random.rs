//! Random schedules, each from its seed.
use crate::{cases, drive, oracle, rng::Rng, run, schedule::Schedule, world::World};
use slipstream::BoxError;

fn holds(seed: u64) -> Result<(), BoxError> {
    run(async {
        let rng = Rng::new(seed);
        let world = World::new(Schedule::new(&rng), rng)?;
        drive::runs(&world).await?;
        oracle::check(&world)
    })
}

/// With the schedule, to find out why.
fn check(seed: u64) {
    if let Err(error) = holds(seed) {
        panic!("seed {seed}: {error}\n{:?}", Schedule::new(&Rng::new(seed)));
    }
}

/// A seed of `SLIPSTREAM_SEED`, to be looked at, or so many from 0 on.
#[test]
fn the_last_answers_are_the_join_of_all_data_whatever_comes_when() {
    if let Ok(seed) = std::env::var("SLIPSTREAM_SEED") {
        return check(seed.parse().expect("SLIPSTREAM_SEED is a number"));
    }
    let broken = (0..cases(150)).filter_map(|seed| Some(format!("seed {seed}: {}", holds(seed).err()?)));
    let broken: Vec<_> = broken.collect();
    assert!(
        broken.is_empty(),
        "{} are broken, among them\n{}",
        broken.len(),
        broken[..broken.len().min(20)].join("\n")
    );
}
