//! A file of lines as a source with positions: crash safety with nothing installed.
//!
//! ```text
//! file ──blocking thread, 1,024 lines at a time──▶ (position = line number, line)
//! ```
//!
//! Invariants: the check of a position is a hash of all lines up to it, so a file that was
//! changed before it, or is shorter, is an error; lines added at the end are read on. What is not a
//! line (the file is not to be read, or is another one) has the position before it, so that a handler
//! that takes the error moves none.
use super::{Seekable, Seeks};
use crate::{
    AsyncIterable, SourceName,
    position::{Position, Positions},
};
use futures::{Stream, StreamExt, stream};
use serde::de::DeserializeOwned;
use std::{
    fs::File,
    hash::Hasher,
    io::{BufRead, BufReader},
    marker::PhantomData,
    path::{Path, PathBuf},
    sync::Arc,
};

/// How many lines are read at once on a blocking thread.
const BATCH: usize = 1024;

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
/// ```
pub fn replay(path: impl AsRef<Path>) -> Replay {
    Replay { path: path.as_ref().to_owned() }
}

/// What [`replay`] makes.
#[derive(Debug, Clone)]
#[must_use = "a source does nothing until a flow opens it"]
pub struct Replay {
    path: PathBuf,
}

impl Replay {
    /// The same file, each line a value in JSON.
    pub fn json<T>(self) -> Json<T> {
        Json { lines: self, value: PhantomData }
    }
}

/// What [`Replay::json`] makes.
#[derive(Debug, Clone)]
#[must_use = "a source does nothing until a flow opens it"]
pub struct Json<T> {
    lines: Replay,
    value: PhantomData<fn() -> T>,
}

/// Why a line of a file cannot be given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("`{}`, line {line}, cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The line's number, the first is 1.
        line: i64,
        /// What the operating system said.
        #[source]
        cause: std::io::Error,
    },
    /// A line is not a value of the wanted type.
    #[error("`{}`, line {line}, is not what was expected in JSON", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The line's number, the first is 1.
        line: i64,
        /// What is wrong with it.
        #[source]
        cause: serde_json::Error,
    },
    /// The file ends before the position.
    #[error(
        "`{}` has {found} lines, but the store has handled {handled}: give it the file it was reading, or a \
         new state directory", path.display()
    )]
    Shorter {
        /// The file.
        path: PathBuf,
        /// How many lines it has.
        found: i64,
        /// How many the store has handled.
        handled: i64,
    },
    /// The file is another one.
    #[error(
        "the first {handled} lines of `{}` are not those that the store has handled: give it the file it was \
         reading, or a new state directory", path.display()
    )]
    Another {
        /// The file.
        path: PathBuf,
        /// How many lines the store has handled.
        handled: i64,
    },
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
        let reader = Reader::new(&self.path, &start);
        let batches = stream::unfold(Some(reader), |reader| async move {
            let mut reader = reader?;
            // A thread that panics or a runtime that shuts down leaves nothing to be read.
            let (reader, batch) = tokio::task::spawn_blocking(move || {
                let batch = reader.batch();
                (reader, batch)
            })
            .await
            .ok()?;
            let more = !reader.ended;
            (!batch.is_empty()).then(|| (stream::iter(batch), more.then_some(reader)))
        });
        batches.flatten()
    }
}

impl<T: DeserializeOwned + Clone + Send + Sync + 'static> AsyncIterable for Json<T> {
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
}

/// A file that is being read.
struct Reader {
    path: PathBuf,
    file: Option<BufReader<File>>,
    /// How many lines the store has handled, and the check of the last one.
    handled: i64,
    check: u64,
    /// The number of the next line, from 0.
    next: i64,
    hash: Fnv,
    /// After an error, and after a line without its end: if that is being written just now, what comes
    /// next would begin in its middle.
    ended: bool,
}

impl Reader {
    fn new(path: &Path, start: &Positions) -> Self {
        let (handled, check) = (start.next(0).unwrap_or(0), start.check(0).unwrap_or(0));
        Reader {
            path: path.to_owned(),
            file: None,
            handled,
            check,
            next: 0,
            hash: Fnv::default(),
            ended: false,
        }
    }

    /// The next lines; after an error of the file nothing more.
    fn batch(&mut self) -> Vec<(Position, Line)> {
        let mut batch = Vec::new();
        while batch.len() < BATCH {
            match self.line() {
                Ok(None) => break,
                Ok(Some(line)) => batch.push((self.position(), line)),
                Err(error) => {
                    self.ended = true;
                    batch.push((self.position(), Err(Arc::new(error))));
                    break;
                }
            }
        }
        batch
    }

    /// That of the last line read, or handled before.
    fn position(&self) -> Position {
        let (next, check) = match self.next > self.handled {
            true => (self.next, self.hash.finish()),
            false => (self.handled, self.check),
        };
        Position::new(0, next - 1).with_check(check)
    }

    fn line(&mut self) -> Result<Option<Line>, ReplayError> {
        if self.file.is_none() {
            self.open()?;
        }
        let mut line = Vec::new();
        if self.read(&mut line)? == 0 {
            return Ok(None);
        }
        line.truncate(text(&line).len());
        let text = String::from_utf8(line).map_err(|error| Arc::new(self.io(std::io::Error::other(error))));
        self.next += 1;
        Ok(Some(text))
    }

    /// Opens the file, and goes past what was handled before.
    fn open(&mut self) -> Result<(), ReplayError> {
        let file = File::open(&self.path).map_err(|cause| self.io(cause))?;
        self.file = Some(BufReader::with_capacity(1 << 16, file));
        let mut line = Vec::new();
        while self.next < self.handled {
            line.clear();
            if self.read(&mut line)? == 0 {
                let (path, found, handled) = (self.path.clone(), self.next, self.handled);
                return Err(ReplayError::Shorter { path, found, handled });
            }
            self.next += 1;
        }
        if self.handled > 0 && self.hash.finish() != self.check {
            return Err(ReplayError::Another { path: self.path.clone(), handled: self.handled });
        }
        Ok(())
    }

    fn read(&mut self, line: &mut Vec<u8>) -> Result<usize, ReplayError> {
        let Some(file) = self.file.as_mut().filter(|_| !self.ended) else { return Ok(0) };
        let bytes = file.read_until(b'\n', line).map_err(|cause| ReplayError::Io {
            path: self.path.clone(),
            line: self.next + 1,
            cause,
        })?;
        if bytes > 0 {
            self.ended = line.last() != Some(&b'\n');
            // Whether the last line has its end or gets it later is the same line.
            self.hash.write(text(line));
            self.hash.write(b"\n");
        }
        Ok(bytes)
    }

    fn io(&self, cause: std::io::Error) -> ReplayError {
        ReplayError::Io { path: self.path.clone(), line: self.next + 1, cause }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::TempPath {
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::write(&file, text).unwrap();
        file
    }

    async fn read(path: &Path, start: Positions) -> Vec<(Position, Line)> {
        replay(path).open_at(start).collect().await
    }

    fn texts(lines: &[(Position, Line)]) -> Vec<&str> {
        lines.iter().map(|(_, line)| line.as_deref().unwrap()).collect()
    }

    #[cfg(feature = "rocksdb")]
    fn after(position: Position) -> Positions {
        let mut positions = Positions::default();
        positions.set(position.partition(), position.next(), position.check());
        positions
    }

    #[tokio::test]
    async fn it_gives_each_line_with_its_number() {
        let file = file("one\ntwo\r\n\nlast");
        let lines = read(&file, Positions::default()).await;
        assert_eq!(texts(&lines), ["one", "two", "", "last"]);
        assert_eq!(lines.iter().map(|(at, _)| at.offset()).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(read(&self::file(""), Positions::default()).await.is_empty());
    }

    #[cfg(feature = "rocksdb")]
    #[tokio::test]
    async fn it_goes_on_after_each_position_of_a_file_that_has_grown() {
        let text: String = (0..3000).map(|n| format!("line {n}\n")).collect();
        let file = file(&text);
        let lines = read(&file, Positions::default()).await;
        assert_eq!(lines.len(), 3000);
        std::fs::write(&file, text + "more\n").unwrap();
        for at in [0, 1, 1022, 1023, 1024, 2998, 2999] {
            let rest = read(&file, after(lines[at].0)).await;
            assert_eq!(rest.len(), 3000 - at, "after line {at}");
            assert_eq!(rest.first().map(|(position, _)| position.offset()), Some(at as i64 + 1));
            assert_eq!(texts(&rest).last(), Some(&"more"));
        }
    }

    #[cfg(feature = "rocksdb")]
    #[tokio::test]
    async fn a_last_line_that_gets_its_end_later_is_the_same_line() {
        let file = file("one\ntwo");
        let lines = read(&file, Positions::default()).await;
        std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
        assert_eq!(texts(&read(&file, after(lines[1].0)).await), ["three"]);
    }

    #[cfg(feature = "rocksdb")]
    #[tokio::test]
    async fn a_last_line_that_gets_its_end_of_two_bytes_later_is_the_same_line() {
        for end in ["one\r\ntwo", "one\r\ntwo\r"] {
            let file = file(end);
            let lines = read(&file, Positions::default()).await;
            assert_eq!(texts(&lines), ["one", "two"]);
            std::fs::write(&file, "one\r\ntwo\r\nthree\r\n").unwrap();
            assert_eq!(texts(&read(&file, after(lines[1].0)).await), ["three"]);
        }
    }

    #[test]
    fn a_line_that_is_being_written_is_the_last() {
        let file = file("one\ntw");
        let mut reader = Reader::new(&file, &Positions::default());
        let batch = reader.batch();
        assert_eq!(texts(&batch), ["one", "tw"]);
        std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
        assert!(reader.batch().is_empty(), "it would begin with the rest of a line");
    }

    #[cfg(feature = "rocksdb")]
    #[tokio::test]
    async fn what_is_not_a_line_moves_no_position() {
        let file = file("one\ntwo\nthree\n");
        let start = after(read(&file, Positions::default()).await[1].0);
        for text in [None, Some("one\n"), Some("one\nTWO\nthree\n")] {
            match text {
                Some(text) => std::fs::write(&file, text).unwrap(),
                None => std::fs::remove_file(&file).unwrap(),
            }
            for start in [&start, &Positions::default()] {
                let first = read(&file, start.clone()).await.remove(0);
                if first.1.is_err() {
                    let moved = after(first.0);
                    assert_eq!(moved.next(0).unwrap(), start.next(0).unwrap_or(0), "{text:?}");
                    assert_eq!(moved.check(0).unwrap(), start.check(0).unwrap_or(0), "{text:?}");
                }
            }
        }
        std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
        assert_eq!(texts(&read(&file, start).await), ["three"]);
    }

    #[cfg(feature = "rocksdb")]
    #[tokio::test]
    async fn a_line_that_is_no_text_is_an_item_like_another() {
        let file = file("");
        std::fs::write(&file, b"one\n\xff\nthree\n").unwrap();
        let lines = read(&file, Positions::default()).await;
        assert!(lines[1].1.as_ref().unwrap_err().to_string().contains("line 2"), "{:?}", lines[1]);
        assert_eq!(lines[2].1.as_deref().unwrap(), "three");
        assert_eq!(texts(&read(&file, after(lines[1].0)).await), ["three"]);
    }

    #[cfg(feature = "rocksdb")]
    #[tokio::test]
    async fn another_or_a_shorter_file_is_an_error_that_names_both() {
        let file = file("one\ntwo\nthree\n");
        let start = after(read(&file, Positions::default()).await[1].0);
        std::fs::write(&file, "one\n").unwrap();
        let shorter = read(&file, start.clone()).await;
        let error = shorter[0].1.as_ref().unwrap_err();
        assert!(matches!(**error, ReplayError::Shorter { found: 1, handled: 2, .. }), "{error}");
        std::fs::write(&file, "one\nTWO\nthree\n").unwrap();
        let another = read(&file, start).await;
        let error = another[0].1.as_ref().unwrap_err();
        assert!(matches!(**error, ReplayError::Another { handled: 2, .. }), "{error}");
        assert_eq!((shorter.len(), another.len()), (1, 1));
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_named_with_its_line() {
        let missing = read(Path::new("no/such/file"), Positions::default()).await;
        assert!(missing[0].1.as_ref().unwrap_err().to_string().contains("no/such/file"));
        let file = file("1\n2\nthree\n4\n");
        let values: Vec<_> = replay(&file).json::<u32>().open().collect().await;
        assert_eq!(values[1].as_ref().unwrap(), &2);
        let error = values[2].as_ref().unwrap_err();
        assert!(matches!(**error, ReplayError::Json { line: 3, .. }), "{error}");
    }
}
