//! A cache is ordered by the bytes of its keys.
use slipstream::{Cache, Store, StoreError};

struct Money {
    cents: i64,
}

fn prices(store: &Store) -> Result<Cache<Money, String>, StoreError> {
    store.cache("prices")
}

fn main() {}
