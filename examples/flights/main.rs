//! What was the weather when it took off? Reads the flights that left New York, and at the same time the hourly
//! weather at its airports, and joins each flight that departed with the latest observation at its airport, at or
//! before its departure. Which of the two is ahead is chance: a checkpoint has the flights wait for the weather, and
//! those joined again that were ahead of it.
//!
//! `cargo run --release --example flights`; with `-- --help` it tells its options. Kill it at any time: the next run goes
//! on, and the last row of each flight is the right one.
mod args;
mod csv_file;
mod joined;
mod table;

use args::Args;
use csv_file::{CsvFile, Fields, Row};
use joined::Joined;
use serde::{Deserialize, Serialize};
use slipstream::{
    Cache, Checkpoint, Dependency, DependencyState, Pulse, Result, Store, Timestamp, flow, handle,
};
use std::{
    io::{Write, stderr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use table::Table;
use tokio::time::sleep;

#[derive(Debug, Clone)]
struct Observation {
    origin: String,
    observed: Timestamp,
    weather: Weather,
}

/// What the table asks for; a value that was not measured is `None`.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Weather {
    wind_speed: Option<f64>,
    visib: Option<f64>,
}

#[derive(Debug, Clone)]
struct Flight {
    id: u64,
    origin: String,
    scheduled: Timestamp,
    dep_delay: Option<i32>,
}

/// A flight that departed, with the time and the weather of the observation before.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Departure {
    origin: String,
    departed: Timestamp,
    dep_delay: i32,
    weather: Option<(Timestamp, Weather)>,
}

struct App {
    observations: CsvFile<Observation>,
    flights: CsvFile<Flight>,
    weather: Cache<(String, Timestamp), Weather>,
    departures: Cache<u64, Departure>,
    joined: Joined,
    checkpoint: Checkpoint,
    defers: bool,
    /// After how many observations the weather falls silent.
    outage: AtomicU64,
}

#[handle(app.observations, sink = app.weather)]
async fn handle_observation(app: &App, seen: Observation) -> Result<((String, Timestamp), Weather)> {
    if app.outage.fetch_sub(1, Ordering::Relaxed) == 0 {
        app.is_silent().await;
    }
    app.checkpoint.heartbeat(seen.observed)?;
    Ok(((seen.origin, seen.observed), seen.weather))
}

#[handle(app.flights, sink = [app.departures, app.joined])]
fn handle_flight(app: &App, flight: Flight) -> Result<Option<(u64, Departure)>> {
    let Flight { id, origin, scheduled, dep_delay: Some(dep_delay) } = flight else {
        return Ok(None); // cancelled
    };
    let departed = later(scheduled, dep_delay);
    if let Pulse::Down(down) = app.checkpoint.check_pulse(departed)?
        && app.defers
    {
        return Err(down.defer().into()); // comes again when the weather is there; else a revision will follow
    }
    let seen = app.weather.as_of(&(origin.as_str(), departed))?; // the latest at or before
    let weather = seen.map(|((_, observed), weather)| (observed, weather));
    Ok(Some((id, Departure { origin, departed, dep_delay, weather })))
}

fn later(time: Timestamp, minutes: i32) -> Timestamp {
    let by = Duration::from_mins(minutes.unsigned_abs().into());
    if minutes < 0 { time - by } else { time + by }
}

impl Row for Observation {
    fn read(fields: &Fields) -> Result<Self, String> {
        Ok(Observation {
            origin: fields.required("origin")?,
            observed: fields.required("observed")?,
            weather: Weather { wind_speed: fields.optional("wind_speed")?, visib: fields.optional("visib")? },
        })
    }
}

impl Row for Flight {
    fn read(fields: &Fields) -> Result<Self, String> {
        Ok(Flight {
            id: fields.required("id")?,
            origin: fields.required("origin")?,
            scheduled: fields.required("scheduled")?,
            dep_delay: fields.optional("dep_delay")?,
        })
    }
}

impl App {
    fn open(args: &Args) -> Result<Self> {
        let (observations, flights) = (CsvFile::new(&args.weather), CsvFile::new(&args.flights));
        let store = Store::open(&args.state)?;
        let departures = store.cache("departures")?;
        let is_told = args.outage;
        let checkpoint = Checkpoint::builder("flights", &flights)
            // No update may be late: a flight that was joined before one is joined again.
            .dependency(Dependency::new("weather", &observations))
            // The airports do not report at the same minute.
            .allowed_lateness(Duration::from_hours(1))
            .on_downtime(move |outage| {
                if is_told {
                    let behind = outage.downtime.unwrap_or_default().as_secs() / 60;
                    // A terminal that is gone need not be told.
                    let _ = writeln!(stderr(), "the weather is {behind} min behind: the flights wait");
                }
            })
            .build()?;
        Ok(App {
            observations,
            flights,
            weather: store.cache("weather")?,
            joined: Joined::open(&args.out, &departures)?,
            departures,
            checkpoint,
            defers: args.defer,
            outage: AtomicU64::new(if args.outage { 1000 } else { u64::MAX }),
        })
    }

    /// No weather comes, until half a second after the flights were seen to wait for it; where none does, for ten
    /// seconds.
    async fn is_silent(&self) {
        let is_noticed =
            || self.checkpoint.status().dependencies.iter().any(|of| of.state == DependencyState::Down);
        for _ in 0..1000 {
            if is_noticed() {
                return sleep(Duration::from_millis(500)).await;
            }
            sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::from_env();
    let app = Arc::new(App::open(&args)?);
    let flow = flow![handle_observation, handle_flight].named("flights").checkpoint(&app.checkpoint);
    flow.run(Arc::clone(&app)).await?;
    let mut table = Table::default();
    for departure in app.departures.values() {
        table.add(&departure?);
    }
    Ok(writeln!(std::io::stdout(), "{table}\nThe joined rows are in {}", args.out.display())?)
}
