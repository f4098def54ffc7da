//! A file as a source with positions, by lines, values in JSON, or records of CSV: crash safety with
//! nothing installed.
//!
//! ```text
//! file ──blocking thread, 1,024 items at a time──▶ (position = line number, item)
//! ```
//!
//! Invariants: the check of a position is a hash of all lines up to it, so a file that was
//! changed before it, or is shorter, is an error; lines added at the end are read on. What is not a
//! line (the file is not to be read, or is another one) has the position before it, so that a handler
//! that takes the error moves none.
mod error;
mod reader;
mod records;
#[cfg(test)]
mod tests;

pub use error::ReplayError;

use super::{Control, Seekable, Seeks};
use crate::{
    AsyncIterable, SourceName,
    position::{Position, Positions},
};
use futures::{Stream, StreamExt, stream};
use reader::{Reader, Unit};
use records::Header;
use serde::de::DeserializeOwned;
use std::{
    marker::PhantomData,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What a line of a file is: its text without the line's end, or why there is none.
pub type Line<T = String> = Result<T, Arc<ReplayError>>;

/// A source that gives the lines of a file, each with its number as position, and ends with it. A
/// handler takes the line as a `String`, or the whole [`Line`].
///
/// After a restart it goes on with the line after the last commit. The file may have grown in between;
/// if it is another or a shorter one, its first item is an error that says so.
///
/// ```no_run
/// # use serde::Deserialize;
/// # #[derive(Debug, Clone, Deserialize)] struct Sale { name: String, amount: f64 }
/// let lines = slipstream_core::replay("words.txt");
/// let sales = slipstream_core::replay("sales.jsonl").json::<Sale>();
/// let prices = slipstream_core::replay("prices.csv").csv::<Sale>();
/// ```
///
/// A clone is the same source: what one is told by [`seek`](Replay::seek) or [`pause`](Replay::pause) holds for
/// all.
pub fn replay(path: impl AsRef<Path>) -> Replay {
    Replay { path: path.as_ref().to_owned(), control: Control::default() }
}

/// What [`replay`] makes.
#[derive(Debug, Clone)]
#[must_use = "a source does nothing until a flow opens it"]
pub struct Replay {
    path: PathBuf,
    control: Control,
}

impl Replay {
    /// The same file, each line a value in JSON.
    pub fn json<T>(self) -> Json<T> {
        Json { lines: self, value: PhantomData }
    }

    /// The same file, as comma-separated values: the first line names the fields, each record after it is
    /// a value. A quoted field may have line breaks; the record's position is then that of its last line. Empty
    /// lines are left out. A handler takes a `T`, or the whole [`Line<T>`].
    pub fn csv<T>(self) -> Csv<T> {
        Csv { lines: self, value: PhantomData }
    }
}

/// What [`Replay::json`] makes.
#[derive(Debug, Clone)]
#[must_use = "a source does nothing until a flow opens it"]
pub struct Json<T> {
    lines: Replay,
    value: PhantomData<fn() -> T>,
}

/// What [`Replay::csv`] makes.
#[derive(Debug, Clone)]
#[must_use = "a source does nothing until a flow opens it"]
pub struct Csv<T> {
    lines: Replay,
    value: PhantomData<fn() -> T>,
}

macro_rules! steered {
    ($([$($generics:tt)*] $source:ty: $($control:ident).+;)+) => {$(
        impl<$($generics)*> $source {
            /// The next line that is handled is number `line`, counted from 0; in a file of CSV the record that
            /// has it. What was read ahead is dropped. The position moves when it is handled.
            pub fn seek(&self, line: i64) {
                self.$($control).+.seek(0, line);
            }
            /// From the next line on nothing is handled, until [`resume`](Self::resume).
            pub fn pause(&self) {
                self.$($control).+.pause();
            }
            /// Ends a pause.
            pub fn resume(&self) {
                self.$($control).+.resume();
            }
            /// Whether it is paused.
            #[must_use]
            pub fn is_paused(&self) -> bool {
                self.$($control).+.is_paused()
            }
            /// The number of the line after the last one handled, counted from 0; 0 before a flow has read it.
            #[must_use]
            pub fn position(&self) -> i64 {
                self.$($control).+.positions().next(0).unwrap_or(0)
            }
        }
    )+};
}
steered! { [] Replay: control; [T] Json<T>: lines.control; [T] Csv<T>: lines.control; }

/// The items of a file, read in batches on a blocking thread.
fn items<T: Send + 'static>(
    reader: Reader,
    batch: impl FnMut(&mut Reader) -> Vec<(Position, Line<T>)> + Send + 'static,
) -> impl Stream<Item = (Position, Line<T>)> + Send + 'static {
    let batches = stream::unfold(Some((reader, batch)), |reading| async move {
        let (mut reader, mut batch) = reading?;
        // A thread that panics or a runtime that shuts down leaves nothing to be read.
        let (reader, batch, items) = tokio::task::spawn_blocking(move || {
            let items = batch(&mut reader);
            (reader, batch, items)
        })
        .await
        .ok()?;
        let more = !reader.ended;
        (!items.is_empty()).then(|| (stream::iter(items), more.then_some((reader, batch))))
    });
    batches.flatten()
}

impl AsyncIterable for Replay {
    type Item = Line;

    fn open(&self) -> impl Stream<Item = Line> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, line)| line)
    }

    /// The file's name as it was given, so that state and file may move together.
    fn identity(&self) -> Option<SourceName> {
        Some(format!("file:{}", self.path.display()))
    }
    fn seeks(&self) -> Option<Seeks<Line>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Replay {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, Line)> + Send + 'static {
        items(Reader::new(&self.path, &start, Unit::Line), Reader::batch)
    }
    fn control(&self) -> Option<&Control> {
        Some(&self.control)
    }
}

macro_rules! of_lines {
    ($($source:ident),+) => {$(
        impl<T: DeserializeOwned + Clone + Send + Sync + 'static> AsyncIterable for $source<T> {
            type Item = Line<T>;

            fn open(&self) -> impl Stream<Item = Line<T>> + Send + 'static {
                self.open_at(Positions::default()).map(|(_, value)| value)
            }

            fn identity(&self) -> Option<SourceName> {
                self.lines.identity()
            }
            fn seeks(&self) -> Option<Seeks<Line<T>>> {
                Some(Seeks::new(self))
            }
        }
    )+};
}
of_lines! { Json, Csv }

impl<T: DeserializeOwned + Clone + Send + Sync + 'static> Seekable for Json<T> {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, Line<T>)> + Send + 'static {
        let path = self.lines.path.clone();
        self.lines.open_at(start).map(move |(position, line)| {
            let value = line.and_then(|line| {
                serde_json::from_str(&line).map_err(|cause| {
                    Arc::new(ReplayError::Json { path: path.clone(), line: position.next(), cause })
                })
            });
            (position, value)
        })
    }
    fn control(&self) -> Option<&Control> {
        Some(&self.lines.control)
    }
}

impl<T: DeserializeOwned + Clone + Send + Sync + 'static> Seekable for Csv<T> {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, Line<T>)> + Send + 'static {
        let mut header = Header::default();
        items(Reader::new(&self.lines.path, &start, Unit::Record), move |reader| {
            let records = reader.batch().into_iter();
            let mut value = |position: Position, record: Line| {
                let place = (reader.path(), position.next());
                header.value(reader.header(), &record?, place).map_err(Arc::new)
            };
            records.map(|(position, record)| (position, value(position, record))).collect()
        })
    }
    fn control(&self) -> Option<&Control> {
        Some(&self.lines.control)
    }
}
