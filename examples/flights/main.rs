//! What was the weather when it took off? Reads the hourly weather at New York's airports, then the
//! flights, and joins each flight that departed with the latest observation at its airport, at or
//! before its departure.
//!
//! `cargo run --release --example flights`; with `-- --help` it tells its options.
mod args;
mod csv_file;
mod joined;
mod table;

use args::Args;
use csv_file::{CsvFile, Fields, Row};
use joined::Joined;
use serde::{Deserialize, Serialize};
use slipstream::{Cache, Result, Timestamp, flow, handle};
use std::{io::Write, sync::Arc, time::Duration};
use table::Table;

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
#[derive(Debug)]
struct Departure {
    id: u64,
    origin: String,
    departed: Timestamp,
    dep_delay: i32,
    weather: Option<(Timestamp, Weather)>,
}

struct App {
    observations: CsvFile<Observation>,
    flights: CsvFile<Flight>,
    weather: Cache<(String, Timestamp), Weather>,
    joined: Joined,
    table: Table,
}

#[handle(app.observations, sink = app.weather)]
fn handle_observation(app: &App, seen: Observation) -> ((String, Timestamp), Weather) {
    ((seen.origin, seen.observed), seen.weather)
}

#[handle(app.flights, sink = [app.joined, app.table])]
fn handle_flight(app: &App, flight: Flight) -> Result<Option<Departure>> {
    let Flight { id, origin, scheduled, dep_delay: Some(dep_delay) } = flight else {
        return Ok(None); // cancelled
    };
    let departed = later(scheduled, dep_delay);
    let seen = app.weather.as_of(&(origin.as_str(), departed))?; // the latest at or before
    let weather = seen.map(|((_, observed), weather)| (observed, weather));
    Ok(Some(Departure { id, origin, departed, dep_delay, weather }))
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
        Ok(App {
            observations: CsvFile::new(&args.weather),
            flights: CsvFile::new(&args.flights),
            weather: Cache::open(&args.state)?,
            joined: Joined::create(&args.out)?,
            table: Table::default(),
        })
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::from_env();
    let app = Arc::new(App::open(&args)?);
    // One after the other, so that each flight finds all the weather before it.
    flow![handle_observation].named("flights").run(Arc::clone(&app)).await?;
    flow![handle_flight].named("flights").run(Arc::clone(&app)).await?;
    Ok(writeln!(std::io::stdout(), "{}\nThe joined rows are in {}", app.table, args.out.display())?)
}
