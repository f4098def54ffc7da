//! What the library writes to the program's log while tests run. All of them write to one, so a test looks for
//! lines with a name that is its own: its topic's, or its group's.
use std::{
    fmt::{self, Write},
    sync::{
        Mutex, Once,
        atomic::{AtomicBool, Ordering},
    },
};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Whether they are written to standard error too.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// From now on lines are kept.
pub(crate) fn keep() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        if std::env::var_os("SLIPSTREAM_LOG").is_some() {
            IS_SHOWN.store(true, Ordering::Relaxed);
        }
        tracing::subscriber::set_global_default(Keeping).unwrap();
    });
}

/// The same, and they are seen; so they are in every process with `SLIPSTREAM_LOG=1`.
pub(crate) fn show() {
    IS_SHOWN.store(true, Ordering::Relaxed);
    keep();
}

/// The lines so far that have this in them, each after its level.
pub(crate) fn with(part: &str) -> Vec<String> {
    LINES.lock().unwrap().iter().filter(|line| line.contains(part)).cloned().collect()
}

struct Keeping;

impl Subscriber for Keeping {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG && metadata.target().starts_with("slipstream")
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        if IS_SHOWN.load(Ordering::Relaxed) {
            eprintln!("{}", line.0);
        }
        LINES.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}
