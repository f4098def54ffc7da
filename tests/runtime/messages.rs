//! One message, one transaction, as far as it is built: what a message writes is gathered until the
//! message is done, and takes effect whole or not at all.
use crate::{Log, typed};
use slipstream::{Cache, Error, Result, Store, flow, handle, in_message, iter};
use std::sync::{Arc, Mutex};

struct App {
    cache: Cache<u32, String>,
    other: Cache<u32, String>,
    log: Log,
}

fn app() -> Result<Arc<App>> {
    let store = Store::in_memory()?;
    Ok(Arc::new(App { cache: store.cache("cache")?, other: store.cache("other")?, log: Log::default() }))
}

impl App {
    fn keys(&self) -> Vec<u32> {
        self.cache.keys().collect::<std::result::Result<_, _>>().unwrap()
    }
    /// What a task of its own sees, which is not part of the message.
    async fn keys_outside(self: &Arc<Self>) -> Vec<u32> {
        let app = Arc::clone(self);
        tokio::spawn(async move { app.keys() }).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_sees_its_own_writes_and_others_see_them_when_it_is_done() -> Result<()> {
    struct Shared(Arc<App>);
    #[handle(iter(0..200), sink = shared.0.other)]
    async fn writes(shared: &Shared, n: u32) -> Result<(u32, String)> {
        let app = &shared.0;
        app.cache.insert(&n, "now".to_owned())?;
        for _ in 0..3 {
            tokio::task::yield_now().await; // on to another thread, perhaps
            assert!(in_message());
        }
        assert_eq!(app.cache.get(&n)?.as_deref(), Some("now"));
        assert_eq!(app.keys().len(), n as usize + 1);
        assert_eq!(app.keys_outside().await.len(), n as usize, "not before the message is done");
        Ok((n, "sink".to_owned()))
    }
    let app = app()?;
    flow![writes].run(Arc::new(Shared(Arc::clone(&app)))).await?;
    assert_eq!(app.keys().len(), 200);
    assert_eq!(app.other.last_key_value()?, Some((199, "sink".to_owned())));
    assert!(!in_message());
    Ok(())
}

#[handle(iter(0..9), sink = app.other)]
async fn fails_at_five(app: &App, n: u32) -> Result<(u32, String)> {
    app.cache.insert(&n, String::new())?;
    tokio::task::yield_now().await;
    if n == 5 { Err("five".into()) } else { Ok((n, String::new())) }
}
#[handle(iter(0..9))]
fn panics_at_five(app: &App, n: u32) -> Result<()> {
    app.cache.insert(&n, String::new())?;
    assert!(n != 5, "five");
    Ok(())
}
#[handle(iter(0..9), sink = [app.cache, |row| if row.0 == 5 { Err("five") } else { Ok(()) }])]
fn sink_fails_at_five(app: &App, n: u32) -> (u32, String) {
    (n, String::new())
}

#[tokio::test]
async fn a_message_that_fails_in_any_way_has_written_nothing() -> Result<()> {
    for flow in [flow![fails_at_five], flow![panics_at_five], flow![sink_fails_at_five]] {
        let app = app()?;
        let failed = format!("{flow:?}");
        flow.run(Arc::clone(&app)).await.unwrap_err();
        assert_eq!(app.keys(), [0, 1, 2, 3, 4], "{failed}");
    }
    Ok(())
}

fn shared_numbers() -> impl futures::Stream<Item = u32> {
    futures::stream::iter(0..9)
}
#[handle(shared_numbers, sink = app.cache)]
fn writes_first(app: &App, n: u32) -> (u32, String) {
    (n, "first".to_owned())
}
#[handle(shared_numbers)]
fn reads_then_fails_at_five(app: &App, n: u32) -> Result<()> {
    // The first handler's row belongs to this message too.
    app.log.add(app.cache.get(&n)?.unwrap());
    if n == 5 { Err("five".into()) } else { Ok(()) }
}

#[tokio::test]
async fn the_handlers_of_a_message_share_its_transaction() -> Result<()> {
    let app = app()?;
    let error = typed(flow![writes_first, reads_then_fails_at_five].run(Arc::clone(&app)).await.unwrap_err());
    assert!(matches!(error, Error::Handler { handler: "reads_then_fails_at_five", .. }));
    assert_eq!(app.log.take(), ["first"; 6]);
    assert_eq!(app.keys(), [0, 1, 2, 3, 4], "the first handler's part of the message is dropped with it");
    Ok(())
}

#[tokio::test]
async fn a_task_that_a_handler_spawns_writes_for_itself() -> Result<()> {
    struct Shared(Arc<App>);
    #[handle(iter([1]))]
    async fn spawns(shared: &Shared, n: u32) -> Result<()> {
        let app = Arc::clone(&shared.0);
        let spawned = tokio::spawn(async move {
            app.cache.insert(&n, "spawned".to_owned()).unwrap();
            in_message()
        });
        assert!(!spawned.await?);
        assert!(!tokio::task::spawn_blocking(in_message).await?);
        Err("the message fails, the task's write stands".into())
    }
    let app = app()?;
    flow![spawns].run(Shared(Arc::clone(&app))).await.unwrap_err();
    assert_eq!(app.keys(), [1]);
    Ok(())
}

/// A handler dropped between two polls: what its locals write when they are dropped belongs to the
/// message, which is dropped as well.
#[tokio::test]
async fn a_flow_that_is_dropped_leaves_nothing_of_the_message_in_hand() -> Result<()> {
    struct OnDrop(Cache<u32, String>, Arc<Mutex<Option<bool>>>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.insert(&2, "from a destructor".to_owned()).unwrap();
            *self.1.lock().unwrap() = Some(in_message());
        }
    }
    struct Shared(Arc<App>, Arc<Mutex<Option<bool>>>, tokio::sync::Notify);
    #[handle(iter([1]))]
    async fn waits(shared: &Shared, n: u32) -> Result<()> {
        let _on_drop = OnDrop(shared.0.cache.clone(), Arc::clone(&shared.1));
        shared.0.cache.insert(&n, String::new())?;
        shared.2.notify_one();
        std::future::pending().await
    }
    let app = app()?;
    let shared = Arc::new(Shared(Arc::clone(&app), Arc::default(), tokio::sync::Notify::new()));
    let running = tokio::spawn(flow![waits].run(Arc::clone(&shared)));
    shared.2.notified().await;
    running.abort();
    running.await.unwrap_err();
    while shared.1.lock().unwrap().is_none() {
        tokio::task::yield_now().await; // the flow's own tasks end after it
    }
    assert_eq!(*shared.1.lock().unwrap(), Some(true));
    assert_eq!(app.keys(), [0; 0]);
    Ok(())
}
