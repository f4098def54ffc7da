use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::*;

/// What a layer does: whether it clears the cache first, and then the rows it sets or deletes.
type Layer = (bool, BTreeMap<u8, Option<u8>>);

fn layers() -> impl Strategy<Value = Vec<Layer>> {
    let rows = prop::collection::btree_map(0..10_u8, any::<Option<u8>>(), 0..6);
    prop::collection::vec((prop::bool::weighted(0.15), rows), 0..4)
}

/// One store for all cases: a database takes longer to open than a case to run.
fn check(store: &Store, database: &BTreeMap<u8, u8>, layers: &[Layer], ends: &[bool]) {
    let table = store.table::<u8>("merged", ValueFormat::default()).unwrap();
    let other = store.table::<u8>("other", ValueFormat::default()).unwrap();
    let write = |table: &Table, key: u8| [table.first_key().as_slice(), &[key]].concat();
    table.clear().unwrap();
    other.set(&write(&other, 0), Some(&[0])).unwrap();
    let mut expected = database.clone();
    for (key, value) in database {
        table.set(&write(&table, *key), Some(&[*value])).unwrap();
    }
    let mut above = Vec::new();
    for (clears, changes) in layers {
        let mut rows = Rows::default();
        rows.set(&write(&other, 1), Some(&[1]));
        if *clears {
            rows.set(&write(&table, 0), Some(&[0]));
            rows.clear(table.id());
            expected.clear();
        }
        for (key, value) in changes {
            rows.set(&write(&table, *key), value.as_ref().map(std::slice::from_ref));
            match value {
                Some(value) => expected.insert(*key, *value),
                None => expected.remove(key),
            };
        }
        above.insert(0, Arc::new(rows));
    }
    let (seen, hidden) = visible(&above, table.id());
    let mut below = Below::new((!hidden).then(|| Lent::new(&*table).unwrap()));
    let (mut from, mut to) = (table.first_key().to_vec(), table.end_key().to_vec());
    let mut ends = ends.iter().map(|back| if *back { Direction::Backward } else { Direction::Forward });
    let mut expected = expected.into_iter();
    loop {
        let direction = ends.next().unwrap_or(Direction::Forward);
        let next = match direction {
            Direction::Forward => expected.next(),
            Direction::Backward => expected.next_back(),
        };
        let taken = step(seen, &mut below, &mut from, &mut to, direction).unwrap();
        let read = |key: &[u8], value: &[u8]| (key[ID_BYTES], value[0]);
        let taken = taken.map(|taken| match taken {
            Taken::Above(key, value) => read(&key, &value),
            Taken::Below => below.row().map(|(key, value)| read(key, value)).unwrap(),
        });
        assert_eq!(taken, next);
        if next.is_none() {
            return;
        }
    }
}

#[test]
fn any_number_of_layers_is_one_order_of_rows() {
    let store = Store::in_memory().unwrap();
    let database = prop::collection::btree_map(0..10_u8, any::<u8>(), 0..10);
    let ends = prop::collection::vec(any::<bool>(), 0..12);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(1500));
    let cases = (database, layers(), ends);
    runner
        .run(&cases, |(database, layers, ends)| {
            check(&store, &database, &layers, &ends);
            Ok(())
        })
        .unwrap();
}
