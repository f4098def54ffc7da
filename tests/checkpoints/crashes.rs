//! What a run that was dropped leaves behind on another thread.
use crate::{
    log::{Line, Log, Row},
    world::time,
};
use slipstream::{BoxError, Cache, Checkpoint, Dependency, Flow, Store, source};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc,
};
use tokio::{sync::Notify, task::yield_now};

// A handler that was still at work when its run was dropped let go of the message that the next run had in hand: an update that came
// meanwhile was not late for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_handler_of_a_run_that_was_dropped_lets_go_of_nothing_of_the_next() -> Result<(), BoxError> {
    let (weather, activity) = (Log::new("weather", 1, 1), Log::new("activity", 1, 1));
    let store = Store::in_memory()?;
    let state: Cache<i64, u32> = store.cache("state")?;
    let answers: Cache<i64, u32> = store.cache("answers")?;
    let checkpoint =
        Checkpoint::builder("join", &activity).dependency(Dependency::new("weather", &weather)).build()?;
    let (blocks, blocked) = mpsc::channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let (in_hand, go_on, updated) =
        (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let calls = Arc::new(AtomicUsize::new(0));
    // The second is dropped with the first run's handlers.
    let flow = |kept: Arc<()>| {
        let (checks, state, calls) = (checkpoint.clone(), state.clone(), Arc::clone(&calls));
        let (in_hand, go_on, blocked) = (Arc::clone(&in_hand), Arc::clone(&go_on), Arc::clone(&blocked));
        let join = source(&activity).handle_async(move |Line { row, at }: Line| {
            let (checks, state, calls) = (checks.clone(), state.clone(), Arc::clone(&calls));
            let (in_hand, go_on, blocked) = (Arc::clone(&in_hand), Arc::clone(&go_on), Arc::clone(&blocked));
            let _kept = Arc::clone(&kept);
            async move {
                let found = state.as_of(&row.time)?.map_or(0, |(_, number)| number);
                match calls.fetch_add(1, Ordering::SeqCst) {
                    0 => {
                        in_hand.notify_one();
                        // As a handler that computes: nothing ends it.
                        let _ = blocked.lock().unwrap().recv();
                    }
                    1 => {
                        in_hand.notify_one();
                        go_on.notified().await;
                    }
                    _ => {}
                }
                let _ = checks.check_pulse(time(row.time))?;
                Ok::<_, BoxError>(Some((at.1, found)))
            }
        });
        let (beats, states, told) = (checkpoint.clone(), state_of(&store)?, Arc::clone(&updated));
        let update = source(&weather).handle(move |Line { row, .. }: Line| {
            beats.heartbeat(time(row.time))?;
            told.notify_one();
            states.insert(&row.time, row.number)?;
            Ok::<_, BoxError>(None::<()>)
        });
        Ok::<_, BoxError>(Flow::new().with(update).with(join.sink(&answers)).checkpoint(&checkpoint))
    };
    let first = Arc::new(());
    let run = tokio::spawn(flow(Arc::clone(&first))?.run(()));
    activity.write(0, Row { time: 5, key: 0, number: 0 });
    in_hand.notified().await;
    run.abort();
    let _ = run.await;
    let run = tokio::spawn(flow(Arc::default())?.run(()));
    in_hand.notified().await;
    blocks.send(())?;
    while Arc::strong_count(&first) > 1 {
        yield_now().await;
    }
    weather.write(0, Row { time: 5, key: 0, number: 1 });
    updated.notified().await;
    while !weather.is_handled() {
        yield_now().await;
    }
    go_on.notify_one();
    weather.close();
    activity.close();
    run.await??;
    assert_eq!(answers.get(&0)?, Some(1), "the update was published when the message was in hand");
    Ok(())
}

fn state_of(store: &Store) -> Result<Cache<i64, u32>, BoxError> {
    Ok(store.cache("state")?)
}
