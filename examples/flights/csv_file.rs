//! A CSV file as a source of one's own: read off the async threads, a batch of rows at a time. A row's number is its
//! position, so a flow goes on after a restart, and goes back where rows are to be handled again.
//!
//! ```text
//! file ──blocking thread──▶ batch of rows ──▶ flow
//!                           the next one, read meanwhile
//! ```
//!
//! `slipstream::replay(path).csv()` does the same in a line, and finds out whether the file is still the one that it was; this
//! one shows its progress, and says what is wrong in words of its own.
use csv::{ErrorKind, ReaderBuilder, StringRecord};
use futures::{Stream, StreamExt, stream};
use indicatif::{ProgressBar, ProgressBarIter, ProgressFinish, ProgressStyle};
use slipstream::{AsyncIterable, Control, Position, Positions, Seekable, Seeks};
use std::{
    error::Error,
    fmt::{self, Display},
    fs::File,
    marker::PhantomData,
    path::Path,
    str::FromStr,
    sync::Arc,
};
use tokio::task::spawn_blocking;

/// Rows of a batch: so many that the way from thread to thread costs little of each.
const BATCH: usize = 1024;

/// What a row is read as.
pub(crate) trait Row: Clone + Send + Sync + 'static {
    /// Reads it; an error tells the column and what is wrong with it.
    fn read(fields: &Fields) -> Result<Self, String>;
}

/// A CSV file whose first line names the columns. It ends with its first error. A clone is the same file.
pub(crate) struct CsvFile<T> {
    path: Arc<Path>,
    control: Control,
    row: PhantomData<fn() -> T>,
}

impl<T> CsvFile<T> {
    pub(crate) fn new(path: &Path) -> Self {
        CsvFile { path: Arc::from(path), control: Control::default(), row: PhantomData }
    }
}

impl<T> Clone for CsvFile<T> {
    fn clone(&self) -> Self {
        CsvFile { path: Arc::clone(&self.path), control: self.control.clone(), row: PhantomData }
    }
}

impl<T: Row> AsyncIterable for CsvFile<T> {
    type Item = Result<T, CsvError>;

    fn open(&self) -> impl Stream<Item = Self::Item> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, row)| row)
    }
    // Under this name the store keeps the position.
    fn identity(&self) -> Option<String> {
        Some(format!("file:{}", self.path.display()))
    }
    fn seeks(&self) -> Option<Seeks<Self::Item>> {
        Some(Seeks::new(self))
    }
}

impl<T: Row> Seekable for CsvFile<T> {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, Self::Item)> + Send + 'static {
        let (path, first) = (Arc::clone(&self.path), start.next(0).unwrap_or(0));
        let first = spawn_blocking(move || match Rows::open(path, first) {
            Ok(rows) => rows.batch(),
            Err(error) => (vec![(Position::new(0, first), Err(error))], None),
        });
        let batches = stream::unfold(Some(first), async |reading| {
            let (batch, rest) = reading?.await.expect("reading does not panic, and nobody cancels it");
            Some((stream::iter(batch), rest.map(|rows| spawn_blocking(|| rows.batch()))))
        });
        batches.flatten()
    }
    fn control(&self) -> Option<&Control> {
        Some(&self.control)
    }
}

type Batch<T> = Vec<(Position, Result<T, CsvError>)>;

/// An open file, between two batches.
struct Rows {
    path: Arc<Path>,
    reader: csv::Reader<ProgressBarIter<File>>,
    columns: StringRecord,
    record: StringRecord,
    /// The number of the next row, from 0.
    next: i64,
    /// Of `\r\n` the reader takes, and counts, the `\n` only with the next row: so many lines is it behind.
    behind: u64,
}

impl Rows {
    /// Opens it before row number `first`.
    fn open(path: Arc<Path>, first: i64) -> Result<Self, CsvError> {
        let wrong = |error: csv::Error| CsvError::new(&path, 1, &error);
        let file = File::open(&path).map_err(|error| wrong(error.into()))?;
        let size = file.metadata().map_err(|error| wrong(error.into()))?.len();
        let file = progress(&path, size).wrap_read(file);
        let mut reader = ReaderBuilder::new().buffer_capacity(1 << 16).from_reader(file);
        let columns = reader.headers().map_err(wrong)?.clone();
        if columns.is_empty() {
            return Err(CsvError { path, line: Some(1), wrong: "it has to name the columns".to_owned() });
        }
        let behind = 2_u64.saturating_sub(reader.position().line());
        let mut rows = Rows { path, reader, columns, record: StringRecord::new(), next: 0, behind };
        while rows.next < first && rows.read()? {}
        Ok(rows)
    }

    /// The next rows, and the file if there may be more.
    fn batch<T: Row>(mut self) -> (Batch<T>, Option<Rows>) {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH {
            let position = Position::new(0, self.next);
            match self.next().transpose() {
                Some(Ok(row)) => batch.push((position, Ok(row))),
                Some(Err(error)) => {
                    batch.push((position, Err(error)));
                    return (batch, None);
                }
                None => return (batch, None),
            }
        }
        (batch, Some(self))
    }

    fn next<T: Row>(&mut self) -> Result<Option<T>, CsvError> {
        let line = self.line();
        if !self.read()? {
            return Ok(None);
        }
        T::read(&Fields { columns: &self.columns, record: &self.record })
            .map(Some)
            .map_err(|wrong| CsvError { path: Arc::clone(&self.path), line: Some(line), wrong })
    }

    /// Reads the next row, if there is one.
    fn read(&mut self) -> Result<bool, CsvError> {
        let line = self.line();
        let read = self.reader.read_record(&mut self.record);
        self.next += 1;
        read.map_err(|error| CsvError::new(&self.path, line, &error))
    }

    fn line(&self) -> u64 {
        self.reader.position().line() + self.behind
    }
}

/// Shown where the standard error is a terminal, until the file is closed.
fn progress(path: &Path, size: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %");
    ProgressBar::new(size)
        .with_style(style.expect("its keys are known"))
        .with_message(path.file_name().unwrap_or_default().display().to_string())
        .with_finish(ProgressFinish::AndClear)
}

/// A row's fields, by the names of their columns.
pub(crate) struct Fields<'r> {
    columns: &'r StringRecord,
    record: &'r StringRecord,
}

impl Fields<'_> {
    /// A field that must not be empty.
    pub(crate) fn required<T: FromStr<Err: Display>>(&self, column: &str) -> Result<T, String> {
        self.optional(column)?.ok_or_else(|| format!("`{column}` is empty"))
    }

    /// A field; `None` where it is empty.
    pub(crate) fn optional<T: FromStr<Err: Display>>(&self, column: &str) -> Result<Option<T>, String> {
        let at = self.columns.iter().position(|name| name == column);
        let field = self.record.get(at.ok_or_else(|| format!("there is no column `{column}`"))?);
        let Some(field) = field.filter(|field| !field.is_empty()) else { return Ok(None) };
        field.parse().map(Some).map_err(|error| format!("`{column}` is `{field}`: {error}"))
    }
}

/// What is wrong, in which file and line.
#[derive(Debug, Clone)]
pub(crate) struct CsvError {
    path: Arc<Path>,
    line: Option<u64>,
    wrong: String,
}

impl CsvError {
    fn new(path: &Arc<Path>, line: u64, error: &csv::Error) -> Self {
        let (line, wrong) = match error.kind() {
            ErrorKind::Io(error) => (None, error.to_string()),
            ErrorKind::UnequalLengths { expected_len, len, .. } => {
                (Some(line), format!("{len} fields, where the columns are {expected_len}"))
            }
            ErrorKind::Utf8 { err, .. } => (Some(line), err.to_string()),
            _ => (Some(line), error.to_string()),
        };
        CsvError { path: Arc::clone(path), line, wrong }
    }
}

impl Display for CsvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.wrong)
    }
}

impl Error for CsvError {}
