//! A log in memory that a test writes to while a flow reads it.
use futures::{Stream, StreamExt, stream};
use slipstream::{AsyncIterable, Control, Position, Positions, Seekable, Seeks};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tokio::sync::watch;

/// Messages of an `i64` each, in partitions.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    name: &'static str,
    lines: Arc<Mutex<Lines>>,
    written: watch::Sender<u64>,
    control: Control,
}

#[derive(Debug, Default)]
struct Lines {
    partitions: BTreeMap<i32, Vec<i64>>,
    is_closed: bool,
}

impl Log {
    pub(crate) fn new(name: &'static str) -> Self {
        Log { name, lines: Arc::default(), written: watch::Sender::new(0), control: Control::default() }
    }

    /// Adds a message to partition 0.
    pub(crate) fn write(&self, line: i64) {
        self.write_to(0, line);
    }

    pub(crate) fn write_to(&self, partition: i32, line: i64) {
        self.lines.lock().unwrap().partitions.entry(partition).or_default().push(line);
        self.written.send_modify(|written| *written += 1);
    }

    /// Nothing more comes.
    pub(crate) fn close(&self) {
        self.lines.lock().unwrap().is_closed = true;
        self.written.send_modify(|written| *written += 1);
    }

    pub(crate) fn steer(&self) -> &Control {
        &self.control
    }

    /// The next message of any partition, the earliest offset first.
    fn next(&self, at: &mut BTreeMap<i32, i64>) -> Option<Option<(Position, (i32, i64))>> {
        let lines = self.lines.lock().unwrap();
        let next = lines.partitions.iter().filter_map(|(partition, lines)| {
            let next = at.get(partition).copied().unwrap_or(0);
            Some((next, *partition, *lines.get(usize::try_from(next).ok()?)?))
        });
        match next.min() {
            Some((offset, partition, line)) => {
                at.insert(partition, offset + 1);
                Some(Some((Position::new(partition, offset), (partition, line))))
            }
            None if lines.is_closed => Some(None),
            None => None,
        }
    }
}

impl AsyncIterable for Log {
    type Item = (i32, i64);
    fn open(&self) -> impl Stream<Item = (i32, i64)> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, item)| item)
    }
    fn identity(&self) -> Option<String> {
        Some(self.name.to_owned())
    }
    fn seeks(&self) -> Option<Seeks<(i32, i64)>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Log {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, (i32, i64))> + Send + 'static {
        let (log, at, written) = (self.clone(), start.iter().collect(), self.written.subscribe());
        stream::unfold((log, at, written), |(log, mut at, mut written)| async move {
            loop {
                written.borrow_and_update();
                match log.next(&mut at) {
                    Some(Some(item)) => return Some((item, (log, at, written))),
                    Some(None) => return None,
                    None => written.changed().await.ok()?,
                }
            }
        })
    }
    fn control(&self) -> Option<&Control> {
        Some(&self.control)
    }
}
