//! A log in memory that a test writes to while a flow reads it.
use futures::{Stream, StreamExt, stream};
use slipstream::{AsyncIterable, Control, Position, Positions, Result, Seekable, Seeks};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};
use tokio::sync::watch;

/// What a message says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) time: i64,
    pub(crate) key: i64,
    pub(crate) number: u32,
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { time, key, number } = self;
        write!(f, "{number}: {key} at {time}")
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    /// Partition and offset.
    pub(crate) at: (i32, i64),
    pub(crate) row: Row,
}

/// Lines in partitions, read in the order in which they were written.
#[derive(Clone)]
pub(crate) struct Log {
    name: String,
    partitions: i32,
    concurrency: usize,
    lines: Arc<Mutex<Lines>>,
    written: watch::Sender<u64>,
    control: Control,
    on_open: Arc<Mutex<Option<OnOpen>>>,
}

type OnOpen = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Lines {
    written: Vec<Line>,
    ends: BTreeMap<i32, i64>,
    is_closed: bool,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Log {
    pub(crate) fn new(name: impl Into<String>, partitions: i32, concurrency: usize) -> Self {
        Log {
            name: name.into(),
            partitions,
            concurrency,
            lines: Arc::default(),
            written: watch::Sender::new(0),
            control: Control::default(),
            on_open: Arc::default(),
        }
    }

    pub(crate) fn write(&self, partition: i32, row: Row) {
        let mut lines = self.lines.lock().unwrap();
        let end = lines.ends.entry(partition).or_insert(0);
        let at = (partition, *end);
        *end += 1;
        lines.written.push(Line { at, row });
        drop(lines);
        self.written.send_modify(|written| *written += 1);
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is(&self, other: &Log) -> bool {
        Arc::ptr_eq(&self.lines, &other.lines)
    }

    /// Nothing more comes.
    pub(crate) fn close(&self) {
        self.lines.lock().unwrap().is_closed = true;
        self.written.send_modify(|written| *written += 1);
    }

    pub(crate) fn end(&self, partition: i32) -> i64 {
        self.lines.lock().unwrap().ends.get(&partition).copied().unwrap_or(0)
    }

    /// Whether all that is written is published.
    pub(crate) fn is_handled(&self) -> bool {
        let positions = self.control.positions();
        let lines = self.lines.lock().unwrap();
        lines.ends.iter().all(|(partition, end)| positions.next(*partition).unwrap_or(0) >= *end)
    }

    /// Is called when it is opened next.
    pub(crate) fn on_open(&self, call: impl FnOnce() + Send + 'static) {
        *self.on_open.lock().unwrap() = Some(Box::new(call));
    }

    /// The first line from number `from` on that is not before `start`.
    fn next(&self, start: &Positions, from: &mut usize) -> Option<Option<Line>> {
        let lines = self.lines.lock().unwrap();
        while let Some(line) = lines.written.get(*from) {
            *from += 1;
            if line.at.1 >= start.next(line.at.0).unwrap_or(0) {
                return Some(Some(*line));
            }
        }
        lines.is_closed.then_some(None)
    }
}

impl AsyncIterable for Log {
    type Item = Line;
    fn open(&self) -> impl Stream<Item = Line> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, line)| line)
    }
    fn identity(&self) -> Option<String> {
        Some(self.name.clone())
    }
    fn seeks(&self) -> Option<Seeks<Line>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Log {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, Line)> + Send + 'static {
        if let Some(call) = self.on_open.lock().unwrap().take() {
            call();
        }
        let state = (self.clone(), start, 0_usize, self.written.subscribe());
        stream::unfold(state, |(log, start, mut from, mut written)| async move {
            loop {
                written.borrow_and_update();
                match log.next(&start, &mut from) {
                    Some(line) => {
                        let line = line?;
                        return Some((
                            (Position::new(line.at.0, line.at.1), line),
                            (log, start, from, written),
                        ));
                    }
                    None => written.changed().await.ok()?,
                }
            }
        })
    }
    async fn start(&self) -> Result<Positions> {
        Ok((0..self.partitions).map(|partition| (partition, 0)).collect())
    }
    fn control(&self) -> Option<&Control> {
        Some(&self.control)
    }
    fn concurrency(&self) -> usize {
        self.concurrency
    }
}
