//! A cache as a source of its changes.
//!
//! ```text
//! row with its bytes ──decode, when its handlers begin──▶ (key, Some(value)), or (key, None) for a removal
//! ```
use super::Cache;
use crate::given::{Queue, Receiver, ReceiverId, Receives};
use crate::store::{Change, Table};
use crate::{AsyncIterable, BoxError, Key, SourceName};
use futures::{Stream, StreamExt, future::ready};
use serde::{Serialize, de::DeserializeOwned};
use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

/// A cache is a source of its changes: the key, and the value it was set to, or `None` where it was removed.
///
/// ```
/// use slipstream_core::{Cache, Flow, iter, source};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> slipstream_core::Result<()> {
/// let counts = Cache::<char, u32>::in_memory()?;
/// let letters = iter(['a', 'b', 'a']);
/// let counted = counts.clone();
/// let count = source(&letters).handle(move |letter| {
///     counted.update(&letter, |count| count.unwrap_or(0) + 1).map(|_| ())
/// });
/// let show = source(&counts).handle(|(letter, count)| println!("{letter}: {count:?}"));
/// Flow::new().store(counts.store()).with(count).with(show).run(()).await
/// # }
/// ```
///
/// **In a message** of the flow the handlers see each change, inside of the message that made it, as
/// soon as the handler that made it is done: as those of a [`Channel`](crate::Channel) do. Where a key is
/// written twice they see both. [`clear`](Cache::clear) is the removal of each key.
///
/// **From outside** of messages each `insert`, `remove` and `update` is a message of its own, after it
/// was published. Such a change cannot be read again after a crash: the row is kept, and what the handlers
/// would have made of it is not. At most 1,024 changes wait for the handlers; a write that finds no room is
/// refused with [`StoreError::Behind`](crate::StoreError::Behind). `clear` from outside is not seen.
///
/// As a source it ends when the flow's other sources have.
impl<K, V> AsyncIterable for Cache<K, V>
where
    K: Key + Clone + Send + Sync + 'static,
    V: Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    type Item = (K, Option<V>);
    fn open(&self) -> impl Stream<Item = Self::Item> + Send + 'static {
        let table = Arc::clone(&self.table);
        self.table.changes().open().filter_map(move |change| {
            // What this process has just written as such a row.
            let unread =
                |error: &BoxError| tracing::error!(cache = table.name(), "a change is not seen: {error}");
            ready(read(&table, &change).inspect_err(unread).ok())
        })
    }
    fn identity(&self) -> Option<SourceName> {
        Some(format!("cache {} of {}", self.name(), self.table.store().name().display()))
    }
    fn receives(&self) -> Option<Receives<Self::Item>> {
        Some(Receives(Arc::new(Rows {
            table: Arc::clone(&self.table),
            types: PhantomData::<fn() -> (K, V)>,
        })))
    }
}

/// What handlers have changed in a cache: rows as they are stored.
struct Rows<T> {
    table: Arc<Table>,
    types: PhantomData<T>,
}

impl<K: Key, V: DeserializeOwned> Receiver<(K, Option<V>)> for Rows<fn() -> (K, V)> {
    fn id(&self) -> ReceiverId {
        self.table.changes().id()
    }
    fn queue(&self) -> Box<dyn Queue> {
        Box::<Vec<Change>>::default()
    }
    fn take_last(&self, from: &mut dyn Any, to: &mut dyn Any) {
        if let (Some(from), Some(to)) = (from.downcast_mut::<Vec<Change>>(), to.downcast_mut::<Vec<Change>>())
        {
            to.extend(from.pop());
        }
    }
    fn item(&self, of: &mut dyn Any) -> Option<Result<(K, Option<V>), BoxError>> {
        let changes = of.downcast_mut::<Vec<Change>>()?;
        let item = read(&self.table, changes.last()?);
        if item.is_ok() {
            changes.pop();
        }
        Some(item)
    }
}

fn read<K: Key, V: DeserializeOwned>(
    table: &Table,
    (key, value): &Change,
) -> Result<(K, Option<V>), BoxError> {
    let value = value.as_ref().map(|value| table.read_value::<K, V>(key, value)).transpose()?;
    Ok((table.read_key(key)?, value))
}
