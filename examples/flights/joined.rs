//! The joined rows in a file: a sink of one's own.
use crate::Departure;
use slipstream::{Result, Sink};
use std::{
    fs::{File, create_dir_all},
    path::Path,
    sync::{Arc, Mutex},
};

/// Writes a row for each departure, many at a time; the last ones when it is flushed.
#[derive(Clone)]
pub(crate) struct Joined {
    path: Arc<Path>,
    rows: Arc<Mutex<csv::Writer<File>>>,
}

impl Sink<Departure> for Joined {
    // It may wait for the disk, but for nothing that another task has to do first.
    const WAITS: bool = false;

    async fn send(&self, departure: &Departure) -> Result<()> {
        let observed = departure.weather.as_ref().map(|(observed, _)| observed);
        let row = (departure.id, &departure.origin, departure.departed, observed);
        self.write(|rows| rows.serialize(row))
    }

    async fn flush(&self) -> Result<()> {
        self.write(|rows| Ok(rows.flush()?))
    }
}

impl Joined {
    /// Begins the file anew.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = path.parent().map_or(Ok(()), create_dir_all).and_then(|()| File::create(path));
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        let rows = csv::WriterBuilder::new().has_headers(false).buffer_capacity(1 << 16).from_writer(file);
        let joined = Joined { path: Arc::from(path), rows: Arc::new(Mutex::new(rows)) };
        joined.write(|rows| rows.write_record(["id", "origin", "departed", "observed"]))?;
        Ok(joined)
    }

    fn write(&self, write: impl FnOnce(&mut csv::Writer<File>) -> csv::Result<()>) -> Result<()> {
        let mut rows = self.rows.lock().expect("nothing panics that holds it");
        write(&mut rows).map_err(|error| format!("{}: {error}", self.path.display()).into())
    }
}
