//! What the weather was, when the weather comes late: a checkpoint notices that the reports have fallen silent, has the
//! activities wait, and has those handled again that were answered too early. With `--defer` none is.
//!
//! `cargo run --example late_weather -- [--defer] [--step-ms 1000]`
#![allow(clippy::print_stdout)] // an example may
use futures::{
    Stream, StreamExt,
    channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded},
    stream,
};
use serde::{Deserialize, Serialize};
use slipstream::{
    AsyncIterable, Cache, Checkpoint, Dependency, Kafka, Named, Pulse, Result, Sink, Store, Timestamp, Topic,
    flow, handle, named,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, time::sleep};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Weather {
    time: Timestamp,
    sky: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Activity {
    time: Timestamp,
    name: String,
}

struct App {
    weather: Named<Reports>,
    activity: Topic<(), Activity>,
    sky: Cache<Timestamp, Weather>,
    checkpoint: Checkpoint,
    said: Said,
    reports: UnboundedSender<Weather>,
    defers: bool,
    step: Duration,
}

#[handle(app.weather, sink = app.sky)]
fn handle_weather(app: &App, weather: Weather) -> Result<(Timestamp, Weather)> {
    app.checkpoint.heartbeat(weather.time)?; // the weather is known up to here
    Ok((weather.time, weather))
}

#[handle(app.activity, sink = app.said)]
fn handle_activity(app: &App, Activity { time, name }: Activity) -> Result<String> {
    if let Pulse::Down(down) = app.checkpoint.check_pulse(time)? {
        let downtime = hours(down.downtime.unwrap_or_default());
        app.said.say(format!("\tdowntime of {} noticed: {downtime}", down.dependency));
        if app.defers {
            return Err(down.defer().into()); // the message comes again
        }
    }
    let sky = app.sky.as_of(&time)?.map_or("?".into(), |(_, weather)| weather.sky);
    Ok(format!("The weather during {name} was {sky}"))
}

/// Reports as they come in: a source that cannot be read again. The checkpoint needs only that of the activities.
struct Reports(Mutex<Option<UnboundedReceiver<Weather>>>);

impl AsyncIterable for Reports {
    type Item = Weather;
    fn open(&self) -> impl Stream<Item = Weather> + Send + 'static {
        stream::iter(self.0.lock().unwrap_or_else(PoisonError::into_inner).take()).flatten()
    }
}

/// Prints, and remembers the last line.
#[derive(Clone)]
struct Said(watch::Sender<String>);

impl Said {
    fn say(&self, line: impl Into<String>) {
        let line = line.into();
        println!("{line}");
        self.0.send_replace(line);
    }

    async fn wait_for(&self, words: &str) -> Result<()> {
        Ok(self.0.subscribe().wait_for(|line| line.contains(words)).await.map(drop)?)
    }
}

impl Sink<String> for Said {
    const WAITS: bool = false;
    async fn send(&self, line: &String) -> Result<()> {
        self.say(line);
        Ok(())
    }
}

impl App {
    async fn open(defers: bool, step: Duration) -> Result<Self> {
        let (kafka, store) = (Kafka::in_process()?, Store::in_memory()?);
        kafka.create_topic("activity", 1).await?;
        let (reports, receiver) = unbounded();
        // The checkpoint knows a topic by itself, and another source by its name.
        let weather = named("weather", Reports(Mutex::new(Some(receiver))));
        let activity = kafka.topic("activity").json();
        let said = Said(watch::Sender::default());
        let (down, back) = (said.clone(), said.clone());
        let checkpoint = Checkpoint::builder("activity", &activity)
            .dependency(Dependency::new("weather", &weather).threshold(Duration::from_hours(1)))
            .on_downtime(move |_| down.say("\tthe activities are paused"))
            .on_recovery(move |recovery| {
                back.say(format!("\tthe weather has caught up: back to offset {:?}", recovery.offsets));
            })
            .build()?;
        let sky = store.cache("sky")?;
        Ok(App { weather, activity, sky, checkpoint, said, reports, defers, step })
    }

    /// What happens elsewhere, an event a step. Each waits for what came of the one before, so that the lines have one
    /// order, however busy the machine is.
    async fn day(&self) -> Result<()> {
        self.report("10:00", "🌞").await?;
        self.activity("10:30", "swimming").await?;
        self.said.wait_for("swimming").await?;
        self.report("11:00", "⛅").await?;
        self.activity("11:30", "walking home").await?;
        self.said.wait_for("walking home").await?;

        self.said.say("\tthe weather falls silent");
        self.activity("12:30", "shopping").await?;
        self.said.wait_for("paused").await?;
        self.activity("13:10", "lunch").await?; // waits in the topic
        sleep(3 * self.step).await;
        self.said.say("\tthe weather is back");
        self.report("12:00", "🌦").await?;
        self.report("13:00", "🌧").await?;
        self.said.wait_for("lunch").await
    }

    /// A report comes in, and is there when others see it.
    async fn report(&self, at: &str, sky: &str) -> Result<()> {
        sleep(self.step).await;
        self.reports.unbounded_send(Weather { time: time(at), sky: sky.into() })?;
        while !self.sky.contains_key(&time(at))? {
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    async fn activity(&self, at: &str, name: &str) -> Result<()> {
        sleep(self.step).await;
        Ok(self.activity.send((), Activity { time: time(at), name: name.into() }).await?)
    }
}

fn time(at: &str) -> Timestamp {
    format!("2023-01-01T{at}:00Z").parse().expect("hours and minutes")
}

fn hours(duration: Duration) -> String {
    let seconds = duration.as_secs();
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

const USAGE: &str = "usage: late_weather [--defer] [--step-ms MILLISECONDS]";

/// Whether it defers, and how long a step is.
fn arguments() -> Result<(bool, Duration)> {
    let (mut defers, mut step) = (false, 1000);
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        match name.as_str() {
            "--defer" => defers = true,
            "--step-ms" => step = given.next().and_then(|step| step.parse().ok()).ok_or(USAGE)?,
            _ => return Err(USAGE.into()),
        }
    }
    Ok((defers, Duration::from_millis(step)))
}

#[tokio::main]
async fn main() -> Result<()> {
    let (defers, step) = arguments()?;
    let app = Arc::new(App::open(defers, step).await?);
    let flow = flow![handle_weather, handle_activity].named("late_weather").checkpoint(&app.checkpoint);
    let handle = flow.handle();
    let day = async {
        let passed = app.day().await;
        handle.stop(); // a topic has no end
        passed
    };
    tokio::try_join!(flow.run(Arc::clone(&app)), day).map(drop)
}
