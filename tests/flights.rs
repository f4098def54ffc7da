//! The example `flights`: its rows beside those of an independent tool, in order, after an outage and after kills; its
//! table, and what it says to mistakes.
//!
//! Which of its files is ahead is chance, so a flight may have several rows, of which the last one counts.
//!
//! `SLIPSTREAM_SEED=… cargo test --test flights` kills it at the moments of an earlier run.
#![allow(clippy::unwrap_used)]
mod built;

use built::example;
use flate2::read::GzDecoder;
use std::{
    collections::HashMap,
    env, fs,
    fs::File,
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, SystemTime},
};
use tempfile::{TempDir, tempdir};

const WEATHER: &str = "\
origin,observed,temp,wind_speed,precip,visib
EWR,2013-01-01T10:00:00Z,39.02,10.0,0.0,10.0
EWR,2013-01-01T11:00:00Z,39.02,,0.0,0.25
JFK,2013-01-01T10:30:00Z,39.02,34.5,0.0,3.0
";

const FLIGHTS: &str = "\
id,carrier,flight,origin,dest,scheduled,dep_delay
1,UA,1545,EWR,IAH,2013-01-01T11:05:00Z,-5
2,UA,1714,EWR,IAH,2013-01-01T11:05:00Z,-6
3,AA,1141,LGA,MIA,2013-01-01T11:00:00Z,20
4,B6,725,JFK,BQN,2013-01-01T10:00:00Z,29
5,B6,507,JFK,FLL,2013-01-01T10:00:00Z,30
6,B6,79,JFK,MCO,2013-01-01T12:00:00Z,
7,UA,194,EWR,LAX,2013-01-01T18:00:00-05:00,3
";

/// What it left behind.
#[derive(Debug, PartialEq)]
struct Ran {
    code: Option<i32>,
    said: String,
    complained: String,
}

fn run(command: &mut Command) -> Ran {
    let ran = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: ran.status.code(), said: text(ran.stdout), complained: text(ran.stderr) }
}

/// The example, in a folder of its own.
fn flights(folder: &TempDir) -> Command {
    let mut command = Command::new(example("flights"));
    command.current_dir(folder);
    command
}

/// The example on files of the folder.
fn flights_of_files(folder: &TempDir) -> Command {
    let mut command = flights(folder);
    command.args(["--flights", "flights.csv", "--weather", "weather.csv", "--out", "out.csv"]);
    command
}

fn folder_with(flights: impl AsRef<[u8]>, weather: impl AsRef<[u8]>) -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("flights.csv"), flights).unwrap();
    fs::write(folder.path().join("weather.csv"), weather).unwrap();
    folder
}

fn read(folder: &TempDir, file: &str) -> String {
    fs::read_to_string(folder.path().join(file)).unwrap()
}

/// The last row of each id, in the order of the first ones.
fn last_rows(rows: &str) -> String {
    let (mut order, mut last) = (Vec::new(), HashMap::new());
    for row in rows.lines() {
        let id = row.split(',').next().unwrap();
        if last.insert(id, row).is_none() {
            order.push(id);
        }
    }
    order.into_iter().map(|id| format!("{}\n", last.get(id).unwrap())).collect()
}

fn assert_rows_of_january(folder: &TempDir, when: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/expected_2013_01.csv.gz");
    let expected = std::io::read_to_string(GzDecoder::new(File::open(path).unwrap())).unwrap();
    let joined = last_rows(&read(folder, "state/flights.csv"));
    for (row, expected) in joined.lines().zip(expected.lines()) {
        assert_eq!(row, expected, "{when}");
    }
    assert!(
        joined == expected,
        "{when}: {} in place of {}",
        joined.lines().count(),
        expected.lines().count()
    );
    assert_eq!(joined.lines().count(), 26_484);
}

/// Counted apart from this project, as the rows were.
const TABLE_OF_JANUARY: [&str; 20] = [
    "visibility departures mean delay",
    "under 1 mi 888 12.2 min",
    "1 to under 3 mi 922 15.7 min",
    "3 to under 6 mi 1,482 13.8 min",
    "6 to under 10 mi 2,816 9.8 min",
    "10 mi and more 20,375 9.4 min",
    "not known 0 –",
    "",
    "wind departures mean delay",
    "under 10 mph 11,507 8.9 min",
    "10 to under 15 mph 9,367 9.2 min",
    "15 to under 20 mph 3,430 10.9 min",
    "20 to under 25 mph 1,251 18.0 min",
    "25 to under 30 mph 594 19.9 min",
    "30 mph and more 334 15.6 min",
    "not known 0 –",
    "",
    "all departures 26,483 10.0 min",
    "",
    "The joined rows are in state/flights.csv",
];

/// Its lines, whatever the width of the columns.
fn table(said: &str) -> Vec<String> {
    said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn january_is_joined_as_by_an_independent_tool_and_again_over_the_same_state() {
    let folder = tempdir().unwrap();
    let ran = run(&mut flights(&folder));
    assert_eq!((ran.code, ran.complained.as_str()), (Some(0), ""));
    assert_rows_of_january(&folder, "at once");
    assert_eq!(table(&ran.said), TABLE_OF_JANUARY);

    // Nothing is left to be read: what the state has is written out.
    fs::remove_file(folder.path().join("state/flights.csv")).unwrap();
    assert_eq!(run(&mut flights(&folder)), ran);
    assert_rows_of_january(&folder, "from the state");
}

#[test]
fn flights_that_were_ahead_of_an_outage_are_joined_again() {
    let folder = tempdir().unwrap();
    let ran = run(flights(&folder).arg("--outage"));
    assert_eq!((ran.code, table(&ran.said)), (Some(0), TABLE_OF_JANUARY.map(str::to_owned).to_vec()));
    assert!(ran.complained.contains("the flights wait"), "{}", ran.complained);
    assert!(read(&folder, "state/flights.csv").lines().count() > 26_484, "no row is revised");
    assert_rows_of_january(&folder, "after an outage");
}

#[test]
fn flights_that_are_deferred_in_an_outage_come_again() {
    let folder = tempdir().unwrap();
    let ran = run(flights(&folder).args(["--outage", "--defer"]));
    assert_eq!((ran.code, table(&ran.said)), (Some(0), TABLE_OF_JANUARY.map(str::to_owned).to_vec()));
    assert!(ran.complained.contains("the flights wait"), "{}", ran.complained);
    assert_rows_of_january(&folder, "after an outage, deferred");
}

/// A small generator, so that a failure can be run again by its seed.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[test]
fn killed_at_random_moments_the_last_rows_are_exact() {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut seed = env::var("SLIPSTREAM_SEED").map_or_else(|_| now() | 1, |seed| seed.parse().unwrap());
    println!("SLIPSTREAM_SEED={seed}");
    for more in [&["--outage"][..], &["--outage", "--defer"]] {
        let folder = tempdir().unwrap();
        for _ in 0..4 {
            let mut child =
                flights(&folder).args(more).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            sleep(Duration::from_millis(next(&mut seed) % 2500));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let ran = run(flights(&folder).args(more));
        assert_eq!((ran.code, table(&ran.said)), (Some(0), TABLE_OF_JANUARY.map(str::to_owned).to_vec()));
        assert_rows_of_january(&folder, &format!("{more:?}"));
    }
}

#[test]
fn a_line_that_a_crash_has_torn_is_cut_off() {
    let folder = folder_with(FLIGHTS, WEATHER);
    let out = folder.path().join("out.csv");
    for torn in ["1,EWR,2013-01-01T11:00:00Z,\n2,EW", "id,ori"] {
        fs::write(&out, torn).unwrap();
        assert_eq!(run(&mut flights_of_files(&folder)).code, Some(0));
        let rows = read(&folder, "out.csv");
        let known: Vec<_> = rows.lines().filter(|row| row.starts_with("2,")).collect();
        assert!(rows.ends_with('\n') && rows.lines().all(|row| row.split(',').count() == 4), "{rows}");
        assert_eq!(known.last(), Some(&"2,EWR,2013-01-01T10:59:00Z,2013-01-01T10:00:00Z"), "{rows}");
    }
}

#[test]
fn the_zone_of_the_machine_changes_nothing() {
    let folder = tempdir().unwrap();
    let ran = run(flights(&folder).env("TZ", "America/New_York"));
    assert_eq!((ran.code, ran.complained.as_str()), (Some(0), ""));
    assert_rows_of_january(&folder, "in another zone");
}

#[test]
fn a_few_flights_are_joined_and_counted() {
    let folder = folder_with(FLIGHTS, WEATHER);
    let ran = run(&mut flights_of_files(&folder));
    assert_eq!((ran.code, ran.complained.as_str()), (Some(0), ""));
    let rows = "\
id,origin,departed,observed
1,EWR,2013-01-01T11:00:00Z,2013-01-01T11:00:00Z
2,EWR,2013-01-01T10:59:00Z,2013-01-01T10:00:00Z
3,LGA,2013-01-01T11:20:00Z,
4,JFK,2013-01-01T10:29:00Z,
5,JFK,2013-01-01T10:30:00Z,2013-01-01T10:30:00Z
7,EWR,2013-01-01T23:03:00Z,2013-01-01T11:00:00Z
";
    assert_eq!(last_rows(&read(&folder, "out.csv")), rows);
    let expected = "
visibility            departures    mean delay
under 1 mi                     2      -1.0 min
1 to under 3 mi                0             –
3 to under 6 mi                1      30.0 min
6 to under 10 mi               0             –
10 mi and more                 1      -6.0 min
not known                      2      24.5 min

wind                  departures    mean delay
under 10 mph                   0             –
10 to under 15 mph             1      -6.0 min
15 to under 20 mph             0             –
20 to under 25 mph             0             –
25 to under 30 mph             0             –
30 mph and more                1      30.0 min
not known                      4      11.8 min

all departures                 6      11.8 min

The joined rows are in out.csv
";
    assert_eq!(format!("\n{}", ran.said), expected);
}

#[test]
fn columns_are_known_by_name_and_quotes_and_line_ends_do_not_matter() {
    let flights = "dep_delay,scheduled,\"origin\",id\r\n\"3\",2013-01-01T11:05:00Z,EWR,1\r\n";
    let weather = "observed,visib,note,wind_speed,origin\n2013-01-01T10:00:00Z,10,\"calm,\nand cold\",0,EWR";
    let folder = folder_with(flights, weather);
    assert_eq!(run(&mut flights_of_files(&folder)).complained, "");
    let rows = "id,origin,departed,observed\n1,EWR,2013-01-01T11:08:00Z,2013-01-01T10:00:00Z\n";
    assert_eq!(last_rows(&read(&folder, "out.csv")), rows);
}

#[test]
fn more_rows_than_a_batch_holds_come_in_order() {
    let mut flights = "id,origin,scheduled,dep_delay\n".to_owned();
    let mut rows = "id,origin,departed,observed\n".to_owned();
    for id in 1..=2048 {
        flights += &format!("{id},EWR,2013-01-01T10:00:00Z,1\n");
        rows += &format!("{id},EWR,2013-01-01T10:01:00Z,2013-01-01T10:00:00Z\n");
    }
    let folder = folder_with(flights, WEATHER);
    assert_eq!(run(&mut flights_of_files(&folder)).code, Some(0));
    assert_eq!(last_rows(&read(&folder, "out.csv")), rows);
}

/// Runs on flights whose third line is `row`, and answers what is said of it.
fn complaint_of(row: &[u8], line_end: &str) -> String {
    let mut flights: Vec<u8> = Vec::new();
    for line in FLIGHTS.lines().take(2).map(str::as_bytes).chain([row]) {
        flights.extend_from_slice(line);
        flights.extend_from_slice(line_end.as_bytes());
    }
    let folder = folder_with(flights, WEATHER);
    let ran = run(&mut flights_of_files(&folder));
    assert_eq!((ran.code, ran.said.as_str()), (Some(1), ""));
    // What came before it is joined.
    assert_eq!(last_rows(&read(&folder, "out.csv")).lines().count(), 2);
    ran.complained
}

#[test]
fn a_bad_row_is_named_by_file_line_and_column() {
    let cases = [
        (
            "2,UA,1714,EWR,IAH,2013-01-01T11:05:00Z,soon",
            "`dep_delay` is `soon`: invalid digit found in string",
        ),
        ("2,UA,1714,EWR,IAH,noon,4", "`scheduled` is `noon`: `noon` is not a time such as"),
        (
            "2,UA,1714,EWR,IAH,2013-01-01T11:05:00,4",
            "`scheduled` is `2013-01-01T11:05:00`: `2013-01-01T11:05:00` has no offset",
        ),
        ("2,UA,1714,EWR,IAH,20130101,4", "`scheduled` is `20130101`: `20130101`"),
        (",UA,1714,EWR,IAH,2013-01-01T11:05:00Z,4", "`id` is empty"),
        ("2,UA,1714,EWR", "4 fields, where the columns are 7"),
    ];
    for (row, wrong) in cases {
        for line_end in ["\n", "\r\n"] {
            let complaint = complaint_of(row.as_bytes(), line_end);
            assert!(complaint.contains("`app.flights`"), "{complaint}");
            assert!(complaint.contains(&format!("flights.csv, line 3: {wrong}")), "{complaint}");
            assert_eq!(complaint.lines().count(), 1, "{complaint}");
        }
    }
    let complaint = complaint_of(b"2,UA,1714,\xff,IAH,2013-01-01T11:05:00Z,4", "\n");
    assert!(complaint.contains("flights.csv, line 3: "), "{complaint}");
}

#[test]
fn a_file_that_is_missing_or_no_table_is_named() {
    let column = FLIGHTS.replacen("dep_delay", "delay", 1);
    let cases = [
        (folder_with(FLIGHTS, ""), "weather.csv, line 1: it has to name the columns"),
        (folder_with(column, WEATHER), "flights.csv, line 2: there is no column `dep_delay`"),
        (folder_with(FLIGHTS, WEATHER), "weather.csv: No such file or directory"),
        (folder_with(FLIGHTS, WEATHER), "weather.csv: Is a directory"),
    ];
    fs::remove_file(cases[2].0.path().join("weather.csv")).unwrap();
    fs::remove_file(cases[3].0.path().join("weather.csv")).unwrap();
    fs::create_dir(cases[3].0.path().join("weather.csv")).unwrap();
    for (folder, wrong) in cases {
        let ran = run(&mut flights_of_files(&folder));
        assert_eq!((ran.code, ran.said.as_str()), (Some(1), ""), "{wrong}");
        assert!(ran.complained.contains(wrong) && ran.complained.lines().count() == 1, "{}", ran.complained);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_the_error_of_the_sink() {
    let folder = folder_with(FLIGHTS, WEATHER);
    let ran = run(flights(&folder).args(["--flights", "flights.csv", "--out", "/dev/full"]));
    assert_eq!(ran.code, Some(1));
    assert!(ran.complained.contains("a sink of handler `handle_flight`"), "{}", ran.complained);
    assert!(ran.complained.contains("/dev/full: No space left on device"), "{}", ran.complained);
}

#[test]
fn a_mistake_on_the_command_line_is_told_with_the_usage() {
    let cases: [(&[&str], &str); 5] = [
        (&["--fights", "flights.csv"], "unknown argument: --fights\n"),
        (&["flights.csv"], "unknown argument: flights.csv\n"),
        (&["--state"], "--state needs a value\n"),
        (&["--out", "--state", "state"], "--out needs a value\n"),
        (&["--weather", "weather.csv", "--flights"], "--flights needs a value\n"),
    ];
    let folder = tempdir().unwrap();
    for (args, mistake) in cases {
        let ran = run(flights(&folder).args(args));
        assert_eq!((ran.code, ran.said.as_str()), (Some(2), ""), "{args:?}");
        assert!(ran.complained.starts_with(mistake), "{}", ran.complained);
        assert!(ran.complained.contains("usage: flights "), "{}", ran.complained);
    }
    let ran = run(flights(&folder).arg("--help"));
    assert_eq!((ran.code, ran.complained.as_str()), (Some(0), ""));
    assert!(ran.said.starts_with("usage: flights ") && ran.said.contains("--state DIR"), "{}", ran.said);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}
