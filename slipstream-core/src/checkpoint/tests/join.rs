//! The last answers are those of the join of all the data, whatever the schedule.
use super::{
    cases,
    draw::Draw,
    scenario::{Scenario, Source, as_of},
    world::World,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Copy)]
enum Choice {
    Update(Source),
    Idle(Source),
    Begin(usize),
    Step(usize),
    Repair,
}

/// More than any schedule needs that comes to its end.
const STEPS: usize = 20_000;
/// After so many steps there are no crashes any more, so that it can come to its end.
const CRASHES_UNTIL: usize = 3000;

fn speeds(scenario: &Scenario, draw: &mut Draw, of: &[f64]) -> BTreeMap<Source, f64> {
    scenario.updates.keys().map(|source| (*source, draw.one_of(of))).collect()
}

fn run<'a>(scenario: &'a Scenario, draw: &mut Draw) -> World<'a> {
    let (defers, cap) = (draw.happens(0.5), draw.one_of(&[2, 4, 1000]));
    let (crashes, repair_speed) = (draw.one_of(&[0.0, 0.0, 0.01, 0.05]), draw.one_of(&[0.05, 0.5, 5.0]));
    let idles = draw.happens(0.3);
    let mut world = World::new(scenario, cap, defers);
    let mut speed = speeds(scenario, draw, &[0.05, 0.3, 1.0, 3.0]);
    for step in 0..STEPS {
        if draw.happens(0.02) {
            speed = speeds(scenario, draw, &[0.02, 0.3, 1.0, 3.0]);
        }
        if draw.happens(crashes) && step < CRASHES_UNTIL {
            world.crash();
            continue;
        }
        if draw.happens(0.15) {
            world.save();
        }
        let (is_due, is_empty) = (world.judge.is_due(), world.hands.is_empty());
        let mut choices: Vec<(Choice, f64)> = Vec::new();
        for source in scenario.updates.keys().filter(|source| !world.ended.contains(source)) {
            choices.push((Choice::Update(*source), speed[source]));
            if idles && !world.is_quiet(*source) {
                choices.push((Choice::Idle(*source), 0.2));
            }
        }
        choices.extend(world.hands.keys().map(|partition| (Choice::Step(*partition), 1.0)));
        if is_due && is_empty {
            choices.push((Choice::Repair, repair_speed));
        }
        if !world.judge.is_down() && (is_empty || !is_due) {
            let free = (0..scenario.inputs.len()).filter(|partition| !world.hands.contains_key(partition));
            choices.extend(free.filter(|free| world.has_next(*free)).map(|free| (Choice::Begin(free), 1.0)));
        }
        if choices.is_empty() {
            return world;
        }
        match draw.weighted(&choices) {
            Choice::Update(source) => world.update(source),
            Choice::Idle((dependency, partition)) => drop(world.judge.fall_quiet(dependency, partition)),
            Choice::Begin(partition) => world.begin(partition, draw.happens(0.5)),
            Choice::Step(partition) => world.step(partition),
            Choice::Repair => world.repair(),
        }
    }
    panic!("it does not come to an end");
}

/// How many messages, repairs, deferred messages, and updates that answers lack.
fn hold(seed: u64) -> [usize; 4] {
    let mut draw = Draw::new(seed);
    let scenario = Scenario::new(&mut draw);
    let world = run(&scenario, &mut draw);
    assert!(!world.judge.is_down(), "paused for ever");
    assert!(!world.judge.is_pending(), "a repair waits for ever");
    let complete = scenario.complete();
    let (mut messages, mut lacking) = (0, 0);
    for (partition, inputs) in scenario.inputs.iter().enumerate() {
        for (offset, input) in (0..).zip(inputs) {
            messages += 1;
            let place = (partition, offset);
            let answer = world.answers.get(&place).unwrap_or_else(|| panic!("no answer for {place:?}"));
            let of = |counts: &std::collections::HashMap<_, u32>| counts.get(&place).copied().unwrap_or(0);
            assert_eq!(of(&world.rows.counts), 1, "how often the other handler saw {place:?}");
            assert_eq!(of(&world.rows.sums), 1, "how often {place:?} came as not replayed");
            for (dependency, got) in answer.iter().enumerate() {
                let wanted = as_of(&complete[dependency], input.key, input.time);
                if *got == wanted {
                    continue;
                }
                lacking += 1;
                let threshold = scenario.thresholds[dependency];
                assert!(threshold > 0, "threshold 0: {place:?}, {input:?} has {got:?}, not {wanted:?}");
                let came = wanted.and_then(|(_, number)| world.rows.came.get(&number));
                let is_tolerable = came.is_some_and(|(late, down)| *late < threshold as i64 && !down);
                assert!(
                    is_tolerable,
                    "threshold {threshold}: {place:?}, {input:?} lacks {wanted:?}, which came so late: {came:?}"
                );
            }
        }
    }
    [messages, world.repairs, world.rows.deferred.len(), lacking]
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, ..cases(400) })]
    #[test]
    fn the_last_answers_are_those_of_the_join_of_all_the_data(seed: u64) {
        hold(seed);
    }
}

/// Else the property above would hold of nothing.
#[test]
fn schedules_repair_defer_and_tolerate() {
    let mut all = [0; 4];
    for seed in 0..300 {
        all.iter_mut().zip(hold(seed)).for_each(|(all, one)| *all += one);
    }
    assert!(all.iter().all(|count| *count > 20), "messages, repairs, deferred, lacking: {all:?}");
}
