//! Reads a file on a blocking thread, a line or a record of CSV at a time.
//!
//! Invariants: each line read, delivered or gone past, is in the hash; what is given has the position
//! after its last line, and an error the position of what was given before it.
use super::{Line, ReplayError, records::Quotes};
use crate::position::{Position, Positions};
use std::{
    fs::File,
    hash::Hasher,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    sync::Arc,
};

/// How many items are read at once on a blocking thread.
const BATCH: usize = 1024;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Line,
    /// One line, or more where a quoted field has line breaks; the first is the header.
    Record,
}

/// A file that is being read.
pub(super) struct Reader {
    path: PathBuf,
    unit: Unit,
    file: Option<BufReader<File>>,
    /// From which line on items are wanted, and the check of the line before it; 0 for none.
    start: i64,
    check: u64,
    /// The number of the next line, from 0.
    next: i64,
    hash: Fnv,
    /// After an error, and after a line without its end: if that is being written just now, what comes
    /// next would begin in its middle.
    pub(super) ended: bool,
    /// After the last item: the number of the next line, and the check.
    done: (i64, u64),
    /// The lines of the record that is being read, and whether a quote is open.
    record: Vec<u8>,
    quotes: Quotes,
    header: Option<Arc<str>>,
}

impl Reader {
    pub(super) fn new(path: &Path, start: &Positions, unit: Unit) -> Self {
        let (start, check) = (start.next(0).unwrap_or(0), start.check(0).unwrap_or(0));
        Reader {
            path: path.to_owned(),
            unit,
            file: None,
            start,
            check,
            next: 0,
            hash: Fnv::default(),
            ended: false,
            done: (start, check),
            record: Vec::new(),
            quotes: Quotes::default(),
            header: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The first record, once it is read.
    pub(super) fn header(&self) -> Option<&Arc<str>> {
        self.header.as_ref()
    }

    /// The next items; after an error of the file nothing more.
    pub(super) fn batch(&mut self) -> Vec<(Position, Line)> {
        let mut batch = Vec::new();
        while batch.len() < BATCH {
            match self.item() {
                Ok(None) => break,
                Ok(Some(item)) => {
                    self.done = (self.next, self.hash.finish());
                    batch.push((self.position(), item));
                }
                Err(error) => {
                    self.ended = true;
                    batch.push((self.position(), Err(Arc::new(error))));
                    break;
                }
            }
        }
        batch
    }

    /// That of the last item, or of the line before the start.
    fn position(&self) -> Position {
        let (next, check) = self.done;
        Position::new(0, next - 1).with_check(check)
    }

    fn item(&mut self) -> Result<Option<Line>, ReplayError> {
        if self.file.is_none() {
            self.open()?;
        }
        loop {
            let Some(item) = self.step()? else { return self.at_the_end().map(|()| None) };
            if let Some(item) = item {
                let text = String::from_utf8(item);
                return Ok(Some(
                    text.map_err(|error| Arc::new(self.io(std::io::Error::other(error), self.next))),
                ));
            }
        }
    }

    /// Reads a line: the item that it ends, if it does. `None` at the end of the file.
    fn step(&mut self) -> Result<Option<Option<Vec<u8>>>, ReplayError> {
        let begins = self.record.len();
        if self.read()? == 0 {
            return Ok(None);
        }
        self.next += 1;
        let is_whole = match self.unit {
            Unit::Line => true,
            Unit::Record => !self.quotes.open_after(self.record.get(begins..).unwrap_or_default()),
        };
        if !is_whole {
            return Ok(Some(None));
        }
        let mut item = std::mem::take(&mut self.record);
        item.truncate(text(&item).len());
        if self.unit == Unit::Record {
            if item.is_empty() {
                return Ok(Some(None));
            }
            if self.header.is_none() {
                let header = String::from_utf8_lossy(&item);
                self.header = Some(Arc::from(header.strip_prefix('\u{feff}').unwrap_or(&header)));
                return Ok(Some(None));
            }
        }
        Ok(Some(Some(item)))
    }

    fn at_the_end(&self) -> Result<(), ReplayError> {
        match self.record.is_empty() {
            true => Ok(()),
            false => Err(ReplayError::Unclosed { path: self.path.clone(), line: self.next }),
        }
    }

    /// Opens the file, and goes past what was handled before.
    fn open(&mut self) -> Result<(), ReplayError> {
        let file = File::open(&self.path).map_err(|cause| self.io(cause, self.next + 1))?;
        self.file = Some(BufReader::with_capacity(1 << 16, file));
        while self.next < self.start {
            if self.step()?.is_none() {
                return Err(self.ends_early());
            }
        }
        // A start without a check was sought, not handled.
        if self.check != 0 && self.hash.finish() != self.check {
            return Err(ReplayError::Another { path: self.path.clone(), handled: self.start });
        }
        self.done.1 = if self.start > 0 { self.hash.finish() } else { 0 };
        Ok(())
    }

    fn ends_early(&mut self) -> ReplayError {
        let (path, found) = (self.path.clone(), self.next);
        if self.check != 0 {
            return ReplayError::Shorter { path, found, handled: self.start };
        }
        // Nothing that is in the file is left to be handled.
        self.done = (found, if found > 0 { self.hash.finish() } else { 0 });
        ReplayError::Sought { path, found, sought: self.start }
    }

    /// Adds a line with its end to the record.
    fn read(&mut self) -> Result<usize, ReplayError> {
        let Some(file) = self.file.as_mut().filter(|_| !self.ended) else { return Ok(0) };
        let begins = self.record.len();
        let read = file.read_until(b'\n', &mut self.record);
        let bytes = read.map_err(|cause| self.io(cause, self.next + 1))?;
        if bytes > 0 {
            let line = self.record.get(begins..).unwrap_or_default();
            self.ended = line.last() != Some(&b'\n');
            // Whether the last line has its end or gets it later is the same line.
            self.hash.write(text(line));
            self.hash.write(b"\n");
        }
        Ok(bytes)
    }

    fn io(&self, cause: std::io::Error, line: i64) -> ReplayError {
        ReplayError::Io { path: self.path.clone(), line, cause }
    }
}

/// A line without its end.
fn text(line: &[u8]) -> &[u8] {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    text.strip_suffix(b"\r").unwrap_or(text)
}

/// FNV-1a, which is the same in every version and on every machine: the checks are on disk.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
