//! One outage, from its notice to its repair.
use crate::{ends, log::Log};
use slipstream::{Cache, Checkpoint, Dependency, Flow, Result, Store, Timestamp, source};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

fn minute(minute: i64) -> Timestamp {
    Timestamp::from_secs(minute * 60).unwrap()
}

const THRESHOLD: Duration = Duration::from_secs(600);

#[tokio::test]
async fn smoke() -> Result<()> {
    let (weather, activity) = (Log::new("weather"), Log::new("activity"));
    let store = Store::in_memory()?;
    let sky: Cache<i64, i64> = store.cache("sky")?;
    let told = Arc::new(Mutex::new(Vec::new()));
    let checkpoint = Checkpoint::builder("activity", &activity)
        .dependency(Dependency::new("weather", &weather).threshold(THRESHOLD))
        .on_downtime({
            let (weather, told) = (weather.clone(), told.clone());
            move |outage| {
                told.lock().unwrap().push(format!("down {:?}", outage.downtime));
                [2, 4, 6, 8, 20, 31].into_iter().for_each(|line| weather.write(line));
                weather.close();
            }
        })
        .on_recovery({
            let told = told.clone();
            move |recovery| told.lock().unwrap().push(format!("back {:?}", recovery.offsets))
        })
        .build()?;
    let beats = source(&weather).handle({
        let (checkpoint, activity) = (checkpoint.clone(), activity.clone());
        move |(_, line): (i32, i64)| {
            checkpoint.heartbeat(minute(line)).unwrap();
            if line == 0 {
                [1, 3, 5, 7, 9, 30].into_iter().for_each(|line| activity.write(line));
                activity.close();
            }
            Some((line, line))
        }
    });
    let asks = source(&activity).handle({
        let (checkpoint, told, sky) = (checkpoint.clone(), told.clone(), sky.clone());
        move |(_, line): (i32, i64)| {
            let pulse = checkpoint.check_pulse(minute(line)).unwrap();
            let found = sky.as_of(&line).unwrap().map(|(at, _)| at);
            told.lock().unwrap().push(format!(
                "{line} {found:?} {} {}",
                pulse.is_down(),
                slipstream::is_replayed()
            ));
        }
    });
    weather.write(0);
    let flow = Flow::<()>::new().with(beats.sink(&sky)).with(asks).checkpoint(&checkpoint);
    ends(flow.run(())).await?;
    println!("{:#?}", told.lock().unwrap());
    println!("{:#?}", checkpoint.status());
    Ok(())
}
