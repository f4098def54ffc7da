//! What the weather did to the departures, as a table. It is made of what the store has in the end, where a revision has
//! taken the place of the earlier row: counted as the rows come, revised flights would count twice.
use crate::Departure;
use indicatif::HumanCount;
use std::fmt;

/// Departures and their delays, by visibility and by wind.
pub(crate) struct Table {
    visibility: Classes,
    wind: Classes,
    all: Delays,
}

impl Default for Table {
    fn default() -> Self {
        Table {
            visibility: Classes::new("visibility", "mi", &[1, 3, 6, 10]),
            wind: Classes::new("wind", "mph", &[10, 15, 20, 25, 30]),
            all: Delays::default(),
        }
    }
}

impl Table {
    pub(crate) fn add(&mut self, departure: &Departure) {
        let weather = departure.weather.as_ref().map(|(_, weather)| weather);
        self.visibility.of(weather.and_then(|weather| weather.visib)).add(departure.dep_delay);
        self.wind.of(weather.and_then(|weather| weather.wind_speed)).add(departure.dep_delay);
        self.all.add(departure.dep_delay);
    }
}

/// Classes of a measured value: under the first bound, from each bound to the next, and not known.
struct Classes {
    title: &'static str,
    unit: &'static str,
    bounds: &'static [u32],
    known: Vec<Delays>,
    unknown: Delays,
}

impl Classes {
    fn new(title: &'static str, unit: &'static str, bounds: &'static [u32]) -> Self {
        let known = vec![Delays::default(); bounds.len() + 1];
        Classes { title, unit, bounds, known, unknown: Delays::default() }
    }

    fn of(&mut self, value: Option<f64>) -> &mut Delays {
        let Some(value) = value.filter(|value| !value.is_nan()) else { return &mut self.unknown };
        let class = self.bounds.partition_point(|bound| f64::from(*bound) <= value);
        self.known.get_mut(class).expect("one more than bounds")
    }
}

#[derive(Clone, Copy, Default)]
struct Delays {
    count: u64,
    minutes: i64,
}

impl Delays {
    fn add(&mut self, minutes: i32) {
        self.count += 1;
        self.minutes += i64::from(minutes);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table { visibility, wind, all } = self;
        write!(f, "{visibility}\n{wind}\n")?;
        row(f, "all departures", all)
    }
}

impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Classes { title, unit, bounds, known, unknown } = self;
        writeln!(f, "{title:<20}{:>12}{:>14}", "departures", "mean delay")?;
        let starts = std::iter::once(None).chain(bounds.iter().map(Some));
        let ends = bounds.iter().map(Some).chain(std::iter::once(None));
        for ((start, end), delays) in starts.zip(ends).zip(known) {
            let class = match (start, end) {
                (None, Some(end)) => format!("under {end} {unit}"),
                (Some(start), Some(end)) => format!("{start} to under {end} {unit}"),
                (Some(start), None) => format!("{start} {unit} and more"),
                (None, None) => "any".to_owned(),
            };
            row(f, &class, delays)?;
        }
        row(f, "not known", unknown)
    }
}

fn row(f: &mut fmt::Formatter<'_>, class: &str, Delays { count, minutes }: &Delays) -> fmt::Result {
    let mean = match count {
        0 => "–".to_owned(),
        _ => format!("{:.1} min", *minutes as f64 / *count as f64),
    };
    writeln!(f, "{class:<20}{:>12}{mean:>14}", HumanCount(*count).to_string())
}
