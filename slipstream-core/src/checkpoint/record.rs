//! What the store keeps of a checkpoint: all that a restart has to know.
//!
//! Invariant: it is the judge's memory as of one commit, so what is read back judges as if nothing had happened; what
//! is only of the process (hands, ends, assignments, counts) is not in it.
use super::{
    judge::{Judge, Outage, Part},
    marker::Marker,
    window::Window,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The layout that this version writes, and the newest that it reads.
const LAYOUT: u32 = 1;

/// Named fields, so that a later version may add some.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound = "M: Marker")]
pub(super) struct Record<M> {
    layout: u32,
    dependencies: BTreeMap<String, OfDependency<M>>,
    first_pulse: Option<M>,
    marker: Option<M>,
    open: BTreeMap<i32, Window<M>>,
    late_from: Option<M>,
    told: BTreeMap<i32, i64>,
    recovered: Vec<(String, Outage<M>)>,
    dropped: Option<M>,
    state: Option<Vec<u8>>,
    /// The handlers that check this pulse.
    checkers: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound = "M: Marker")]
struct OfDependency<M> {
    parts: BTreeMap<i32, Part<M>>,
    down: Option<Outage<M>>,
    state: Option<Vec<u8>>,
}

impl<M: Marker> Record<M> {
    pub(super) fn of(judge: &Judge<M>, names: &[Arc<str>], checkers: BTreeSet<String>) -> Self {
        let dependencies = names.iter().zip(&judge.deps).map(|(name, dep)| {
            let (parts, down, state) = (dep.parts.clone(), dep.down.clone(), dep.state.clone());
            (name.to_string(), OfDependency { parts, down, state })
        });
        let recovered = judge
            .recovered
            .iter()
            .filter_map(|outage| Some((names.get(outage.dependency)?.to_string(), outage.clone())));
        Record {
            layout: LAYOUT,
            dependencies: dependencies.collect(),
            first_pulse: judge.first_pulse.clone(),
            marker: judge.marker.clone(),
            open: judge.open.clone(),
            late_from: judge.late_from.clone(),
            told: judge.told.clone(),
            recovered: recovered.collect(),
            dropped: judge.dropped.clone(),
            state: judge.state.clone(),
            checkers,
        }
    }

    pub(super) fn write(&self) -> Result<Vec<u8>, String> {
        rmp_serde::to_vec_named(self).map_err(|error| error.to_string())
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            layout: u32,
        }
        let head: Head = rmp_serde::from_slice(bytes).map_err(|error| error.to_string())?;
        if head.layout > LAYOUT {
            return Err(format!(
                "it was written by a later version: its layout is {}, and {LAYOUT} is known",
                head.layout
            ));
        }
        rmp_serde::from_slice(bytes).map_err(|error| error.to_string())
    }

    /// Goes on in `judge`, which is new. A dependency that is not known any more is left out, and what was down with
    /// it; one that is new has sent nothing yet. Answers the handlers that check.
    pub(super) fn resume(self, judge: &mut Judge<M>, names: &[Arc<str>]) -> BTreeSet<String> {
        let number = |name: &str| names.iter().position(|known| **known == *name);
        for (name, of) in self.dependencies {
            let Some((at, dep)) = number(&name).and_then(|at| Some((at, judge.deps.get_mut(at)?))) else {
                continue;
            };
            (dep.parts, dep.state) = (of.parts, of.state);
            dep.down = of.down.map(|outage| Outage { dependency: at, ..outage });
        }
        let recovered = self.recovered.into_iter();
        let recovered =
            recovered.filter_map(|(name, outage)| Some(Outage { dependency: number(&name)?, ..outage }));
        judge.recovered = recovered.collect();
        judge.first_pulse = self.first_pulse;
        judge.marker = self.marker;
        judge.open = self.open;
        judge.late_from = self.late_from;
        judge.told = self.told;
        judge.dropped = self.dropped;
        judge.state = self.state;
        judge.settle();
        self.checkers
    }
}
