//! What a cache promises, by kind: single calls, messages, and (against a model) all of them mixed.
mod calls;
mod locks;
mod message;
mod messages;
mod model;
mod update;

use super::*;
use crate::commit::{Commit, Published, Settings};
use crate::store::Frozen;
use crate::transaction::{self, Savepoint, Transaction};

type Rows<K, V> = Result<Vec<(K, V)>, StoreError>;

/// Reads a range forwards, and checks that backwards it is the same in reverse.
fn rows<K: Key + PartialEq + fmt::Debug, V: DeserializeOwned + PartialEq + fmt::Debug>(
    range: impl Fn() -> Range<K, V>,
) -> Vec<(K, V)> {
    let forwards = range().collect::<Rows<K, V>>().unwrap();
    let mut backwards = range().rev().collect::<Rows<K, V>>().unwrap();
    backwards.reverse();
    assert_eq!(forwards, backwards);
    forwards
}

/// The commits of a flow over a store.
fn commit(store: &Store) -> Commit {
    Commit::new(Settings::default(), Some(store.clone()), vec![Arc::from("source")]).unwrap()
}

/// A message that ends by publication or not at all.
struct Message(Option<Box<Transaction>>);

impl Default for Message {
    fn default() -> Self {
        Self(Some(Box::default()))
    }
}

impl Message {
    fn new() -> Self {
        Self::default()
    }

    fn handle<R>(&mut self, f: impl FnOnce() -> R) -> R {
        transaction::during(&mut self.0, f)
    }

    /// Answers false where it has to run again.
    fn publish(&mut self) -> Result<bool, StoreError> {
        let Some(staged) = self.0.as_mut().and_then(|tx| tx.staged.as_mut()) else { return Ok(true) };
        let rows = staged.take();
        let published = staged.store().publish(None, staged.reads(), rows, None)?;
        staged.forget_reads();
        Ok(published)
    }

    /// Publishes as a route does.
    fn publish_to(&mut self, commit: &Commit) -> Published {
        commit.publish(self.0.as_mut().unwrap(), None).unwrap()
    }

    fn savepoint(&self) -> Savepoint {
        self.0.as_ref().unwrap().savepoint()
    }

    fn roll_back_to(&mut self, savepoint: &Savepoint) {
        self.0.as_mut().unwrap().roll_back_to(savepoint);
    }

    fn roll_back(&mut self) {
        if let Some(transaction) = &mut self.0 {
            transaction.roll_back();
        }
    }
}
