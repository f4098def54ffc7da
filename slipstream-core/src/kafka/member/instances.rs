//! The static members of this process: the same one twice would have the broker turn each of them out in turn.
//!
//! Invariant: an instance is free again once its consumer is closed.
use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

/// Brokers, group, instance.
type Known = (String, String, String);

static RUNNING: Mutex<BTreeSet<Known>> = Mutex::new(BTreeSet::new());

/// One static member, for as long as it lives.
#[derive(Debug)]
pub(super) struct Claim(Known);

impl Claim {
    /// `None` where it is there already.
    pub(super) fn of(servers: &str, group: &str, instance: &str) -> Option<Self> {
        let known = (servers.to_owned(), group.to_owned(), instance.to_owned());
        let is_new = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).insert(known.clone());
        is_new.then_some(Claim(known))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_there_once_at_a_time() {
        let first = Claim::of("a:1", "g", "one").unwrap();
        assert!(Claim::of("a:1", "g", "one").is_none());
        assert!(Claim::of("b:1", "g", "one").is_some() && Claim::of("a:1", "g", "two").is_some());
        drop(first);
        assert!(Claim::of("a:1", "g", "one").is_some());
    }
}
