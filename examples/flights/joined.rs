//! The joined rows in a file: a sink of one's own, outside of the store.
//!
//! A row that is written again, because a repair has revised it or because a crash came before the commit, stands further
//! down: the last row of an id counts. A line that a crash has torn is cut off; its flight was not committed, and comes again.
use crate::Departure;
use slipstream::{Cache, Result, Sink};
use std::{
    fs::{self, File, create_dir_all},
    io::{self, Seek, SeekFrom},
    path::Path,
    sync::{Arc, Mutex},
};

/// Writes a row for each departure, many at a time; the last ones when it is flushed, which is before each commit.
#[derive(Clone)]
pub(crate) struct Joined {
    path: Arc<Path>,
    rows: Arc<Mutex<csv::Writer<File>>>,
    /// Not a terminal or a pipe.
    is_file: bool,
}

impl Sink<(u64, Departure)> for Joined {
    // It may wait for the disk, but for nothing that another task has to do first.
    const WAITS: bool = false;

    async fn send(&self, (id, departure): &(u64, Departure)) -> Result<()> {
        self.write(|rows| write_row(rows, *id, departure))
    }

    async fn flush(&self) -> Result<()> {
        self.write(|rows| {
            rows.flush()?;
            // The commit that follows is on the disk, too.
            if self.is_file { Ok(rows.get_ref().sync_data()?) } else { Ok(()) }
        })
    }
}

fn write_row(rows: &mut csv::Writer<File>, id: u64, departure: &Departure) -> csv::Result<()> {
    let observed = departure.weather.as_ref().map(|(observed, _)| observed);
    rows.serialize((id, &departure.origin, departure.departed, observed))
}

impl Joined {
    /// Goes on with the file; where there is none, begins one with what is known.
    pub(crate) fn open(path: &Path, known: &Cache<u64, Departure>) -> Result<Self> {
        let file = path.parent().map_or(Ok(()), create_dir_all).and_then(|()| open_whole(path));
        let (file, is_file, is_new) = file.map_err(|error| format!("{}: {error}", path.display()))?;
        let rows = csv::WriterBuilder::new().has_headers(false).buffer_capacity(1 << 16).from_writer(file);
        let joined = Joined { path: Arc::from(path), rows: Arc::new(Mutex::new(rows)), is_file };
        if is_new {
            joined.write(|rows| rows.write_record(["id", "origin", "departed", "observed"]))?;
            for row in known {
                let (id, departure) = row?;
                joined.write(|rows| write_row(rows, id, &departure))?;
            }
        }
        Ok(joined)
    }

    fn write(&self, write: impl FnOnce(&mut csv::Writer<File>) -> csv::Result<()>) -> Result<()> {
        let mut rows = self.rows.lock().expect("nothing panics that holds it");
        write(&mut rows).map_err(|error| format!("{}: {error}", self.path.display()).into())
    }
}

/// Opens it behind its last whole line. Answers whether it is a file, and whether nothing is in it.
fn open_whole(path: &Path) -> io::Result<(File, bool, bool)> {
    let mut file = File::options().create(true).write(true).truncate(false).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok((file, false, true));
    }
    let whole = fs::read(path)?.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    file.set_len(u64::try_from(whole).map_err(io::Error::other)?)?;
    file.seek(SeekFrom::End(0))?;
    Ok((file, true, whole == 0))
}
