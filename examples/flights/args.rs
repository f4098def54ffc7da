//! The command line.
use std::{
    env,
    ffi::OsString,
    io::{Write, stderr, stdout},
    path::{Path, PathBuf},
    process::exit,
};

const USAGE: &str = "\
usage: flights [--flights FILE] [--weather FILE] [--out FILE] [--state DIR] [--outage] [--defer]

Joins each flight that departed with the latest weather at its airport, at or before its departure. Both
files are read at once; a flight for which the weather comes late is joined again.

  --flights FILE  CSV with the columns id, origin, scheduled, dep_delay (minutes; empty: cancelled)
  --weather FILE  CSV with the columns origin, observed, wind_speed (mph), visib (miles); the last two
                  may be empty; in the order of time, or an hour out of it
  --out FILE      where the joined rows go: id, origin, departed, observed (empty where nothing was
                  observed before), and where the last row of an id counts; default: state/flights.csv
  --state DIR     where weather, departures and positions are kept; a further run goes on there, whatever
                  has become of the one before; default: state/flights
  --outage        the weather falls silent after 1,000 observations, until the flights have noticed it
  --defer         a flight waits for late weather, and is not joined before

Times are RFC 3339 with an offset, such as 2013-01-01T10:15:00Z.
Without FILEs it reads January 2013 from examples/data.
";

/// What was asked for, or the defaults.
pub(crate) struct Args {
    pub(crate) flights: PathBuf,
    pub(crate) weather: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) outage: bool,
    pub(crate) defer: bool,
}

impl Args {
    /// The process's own. Ends it where there is nothing to run: with 0 after the help, with 2 after a
    /// mistake.
    pub(crate) fn from_env() -> Self {
        // A terminal that is gone need not be told.
        match Self::parse(env::args_os().skip(1)) {
            Ok(Some(args)) => args,
            Ok(None) => {
                let _ = stdout().write_all(USAGE.as_bytes());
                exit(0)
            }
            Err(mistake) => {
                let _ = write!(stderr(), "{mistake}\n\n{USAGE}");
                exit(2)
            }
        }
    }

    /// `None` where the help is asked for.
    fn parse(mut given: impl Iterator<Item = OsString>) -> Result<Option<Self>, String> {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
        let mut args = Args {
            flights: data.join("flights_2013_01.csv"),
            weather: data.join("weather_2013_01.csv"),
            out: "state/flights.csv".into(),
            state: "state/flights".into(),
            outage: false,
            defer: false,
        };
        while let Some(option) = given.next() {
            let path = match option.to_str() {
                Some("--flights") => &mut args.flights,
                Some("--weather") => &mut args.weather,
                Some("--out") => &mut args.out,
                Some("--state") => &mut args.state,
                Some("--outage") => {
                    args.outage = true;
                    continue;
                }
                Some("--defer") => {
                    args.defer = true;
                    continue;
                }
                Some("-h" | "--help") => return Ok(None),
                _ => return Err(format!("unknown argument: {}", option.display())),
            };
            let value = given.next().filter(|value| !value.as_encoded_bytes().starts_with(b"--"));
            *path = value.ok_or_else(|| format!("{} needs a value", option.display()))?.into();
        }
        Ok(Some(args))
    }
}
