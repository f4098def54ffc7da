//! What must hold in the end, whatever has happened.
use crate::{
    log::Row,
    world::{World, count},
};
use slipstream::{BoxError, Cache, DependencyState};
use std::collections::BTreeMap;

/// Of one dependency the updates by key and time: the later one of two at the same.
type Final = BTreeMap<(i64, i64), u32>;

fn as_of(all: &Final, Row { key, time, .. }: &Row) -> Option<(i64, u32)> {
    let (at, number) = all.range((*key, i64::MIN)..=(*key, *time)).next_back()?;
    Some((at.1, *number))
}

/// Compares all that the store has with the join of all rows.
pub(crate) fn check(world: &World) -> Result<(), BoxError> {
    let schedule = &world.schedule;
    if let Some(fault) = world.faults.lock().unwrap().first() {
        return Err(fault.clone().into());
    }
    let status = world.checkpoint().ok_or("no flow has run")?.status();
    let is_down = status.dependencies.iter().any(|dep| dep.state == DependencyState::Down);
    if is_down || status.is_repair_due {
        return Err(format!("it has ended before it was repaired: {status:?}").into());
    }
    let all = schedule
        .dependencies
        .iter()
        .map(|dep| dep.rows.iter().flatten().map(|row| ((row.key, row.time), row.number)).collect::<Final>());
    let all: Vec<Final> = all.collect();
    let once = |cache: &Cache<(i32, i64), u64>, at: &(i32, i64)| -> Result<(), BoxError> {
        let times = cache.get(at)?.unwrap_or(0);
        if times == 1 { Ok(()) } else { Err(format!("`{}` has {at:?} {times} times", cache.name()).into()) }
    };
    for (partition, rows) in (0..).zip(&schedule.messages) {
        for (offset, row) in (0..).zip(rows) {
            let at = (partition, offset);
            once(&world.counts, &at)?;
            once(&world.sums, &at)?;
            let answer = world.answers.get(&at)?.ok_or_else(|| format!("no answer for {at:?}"))?;
            for ((got, all), dep) in answer.iter().zip(&all).zip(&schedule.dependencies) {
                let want = as_of(all, row);
                if *got == want {
                    continue;
                }
                let lacks = || format!("{at:?}, {row:?}, has {got:?} and not {want:?}");
                if dep.threshold == 0 {
                    return Err(format!("threshold 0: {}", lacks()).into());
                }
                count(&world.seen.lacking);
                let (time, number) = want.ok_or_else(lacks)?;
                let late = row.time - time;
                let came_down = world.came_down.get(&number)?.ok_or_else(lacks)?;
                if late >= dep.threshold || came_down && !world.is_threaded {
                    let threshold = dep.threshold;
                    return Err(format!("threshold {threshold}, down {came_down}: {}", lacks()).into());
                }
            }
            if answer.len() != all.len() {
                return Err(format!("{at:?} has no whole answer").into());
            }
        }
    }
    Ok(())
}
