//! What a cache promises, by kind: single calls, messages, and (against a model) all of them mixed.
mod calls;
mod message;
mod model;

use super::*;
use crate::transaction::{self, Transaction};

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

/// A message that ends by publication or not at all.
#[derive(Default)]
struct Message(Option<Box<Transaction>>);

impl Message {
    fn new() -> Self {
        Self(Some(Box::default()))
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

    fn roll_back(&mut self) {
        if let Some(transaction) = &mut self.0 {
            transaction.roll_back();
        }
    }
}
