//! A cache as a sink: an output is a row of the message that gave it.
use super::Cache;
use crate::{BoxError, Key, Sink, store::Store};
use serde::{Serialize, de::DeserializeOwned};

impl<K, V> Sink<(K, V)> for Cache<K, V>
where
    K: Key,
    V: Serialize + DeserializeOwned + Send + Sync + 'static,
{
    const WAITS: bool = false;
    fn stage(&self, (key, value): &(K, V)) -> Result<(), BoxError> {
        Ok(self.insert(key, value)?)
    }
    fn store(&self) -> Option<&Store> {
        Some(self.table.store())
    }
}

/// `None` deletes the row.
impl<K, V> Sink<(K, Option<V>)> for Cache<K, V>
where
    K: Key,
    V: Serialize + DeserializeOwned + Send + Sync + 'static,
{
    const WAITS: bool = false;
    fn stage(&self, (key, value): &(K, Option<V>)) -> Result<(), BoxError> {
        match value {
            Some(value) => self.insert(key, value)?,
            None => self.remove(key)?,
        }
        Ok(())
    }
    fn store(&self) -> Option<&Store> {
        Some(self.table.store())
    }
}
