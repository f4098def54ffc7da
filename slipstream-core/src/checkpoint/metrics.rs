//! What a checkpoint tells whoever gathers metrics.
//!
//! | metric | kind | labels |
//! |---|---|---|
//! | `slipstream_dependency_lag_seconds` | gauge | `checkpoint`, `dependency` |
//! | `slipstream_dependency_down` | gauge, 0 or 1 | `checkpoint`, `dependency` |
//! | `slipstream_dependency_outages_total` | counter | `checkpoint`, `dependency` |
//! | `slipstream_dependency_updates_too_late` | gauge, since the flow began | `checkpoint`, `dependency` |
//! | `slipstream_checkpoint_paused` | gauge, 0 or 1 | `checkpoint` |
//! | `slipstream_checkpoint_repairs_total` | counter | `checkpoint` |
use super::pulse::{DependencyState, Status};
use metrics::{counter, gauge};
use std::sync::Arc;

fn flag(is_set: bool) -> f64 {
    if is_set { 1.0 } else { 0.0 }
}

pub(super) fn tell<M>(status: &Status<M>, checkpoint: &Arc<str>) {
    gauge!("slipstream_checkpoint_paused", "checkpoint" => Arc::clone(checkpoint))
        .set(flag(status.is_paused));
    for dependency in &status.dependencies {
        let labels = [("checkpoint", Arc::clone(checkpoint)), ("dependency", Arc::clone(&dependency.name))];
        gauge!("slipstream_dependency_down", &labels).set(flag(dependency.state == DependencyState::Down));
        if let Some(lag) = dependency.lag {
            gauge!("slipstream_dependency_lag_seconds", &labels).set(lag.as_secs_f64());
        }
        #[allow(clippy::cast_precision_loss, reason = "a count of what is rare")]
        gauge!("slipstream_dependency_updates_too_late", &labels).set(dependency.too_late as f64);
    }
}

pub(super) fn outage(checkpoint: &Arc<str>, dependency: &Arc<str>) {
    let labels = [("checkpoint", Arc::clone(checkpoint)), ("dependency", Arc::clone(dependency))];
    counter!("slipstream_dependency_outages_total", &labels).increment(1);
}

pub(super) fn repair(checkpoint: &Arc<str>) {
    counter!("slipstream_checkpoint_repairs_total", "checkpoint" => Arc::clone(checkpoint)).increment(1);
}
