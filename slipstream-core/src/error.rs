//! Errors: a handler's are boxed, a flow's say where they came from.
use std::{error::Error as StdError, fmt, sync::Arc};

/// Any error: what handlers, sinks and expressions of the attribute may fail with.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// The result of a handler, of a sink, and of a flow: `?` takes any error.
///
/// ```
/// fn parse(text: &str) -> slipstream_core::Result<u32> {
///     Ok(text.trim().parse()?)
/// }
/// assert!(parse("seven").is_err());
/// ```
pub type Result<T, E = BoxError> = std::result::Result<T, E>;

/// Why a flow ended. [`Flow::run`](crate::Flow::run) gives it boxed, so that `main` and handlers
/// share one [`Result`]; `error.downcast_ref::<slipstream::Error>()` gets it back.
///
/// `Display` says what happened and where; the cause is its [`source`](StdError::source). `Debug`,
/// which `main` prints, is the whole chain on one line.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The flow could not start: an expression of an attribute failed, or two sources cannot be one.
    #[error("the flow could not start: handler `{handler}` was not mounted")]
    Start {
        /// The handler that was being mounted.
        handler: String,
        /// What went wrong.
        #[source]
        cause: BoxError,
    },
    /// The flow could not start: its store is not to be had, or there are two.
    #[error("the flow could not start with its store")]
    Store {
        /// What the store returned.
        #[source]
        cause: BoxError,
    },
    /// The flow could not start: a source with positions lacks what they need.
    #[error("the flow could not start: source `{origin}` has positions, and needs {what}")]
    Positions {
        /// The source, as the attribute names it.
        origin: String,
        /// What is missing, and how to give it.
        what: String,
    },
    /// The flow could not start: a source with positions could not be reached, or say where it stands or begins.
    #[error("the flow could not start: source `{origin}` could not begin")]
    Begin {
        /// The source, as the attribute names it.
        origin: String,
        /// What the source returned.
        #[source]
        cause: BoxError,
    },
    /// The flow could not start: its store is not the one that its sources were read into. The cause is
    /// a `LostState`, which names both and the choices.
    #[error("the flow could not start: its state is not that of its sources")]
    LostState {
        /// In what way.
        #[source]
        cause: BoxError,
    },
    /// A source could not take note of a commit, which is made.
    #[error("source `{origin}` could not take note of a commit")]
    Mark {
        /// The source, as the attribute names it.
        origin: String,
        /// What the source returned.
        #[source]
        cause: BoxError,
    },
    /// A handler returned an error.
    #[error("handler `{handler}` failed on an item of `{origin}`")]
    Handler {
        /// The handler's name.
        handler: &'static str,
        /// The source of the message, as the attribute names it.
        origin: String,
        /// What the handler returned.
        #[source]
        cause: BoxError,
    },
    /// A handler, a sink or a pipe panicked.
    #[error("handler `{handler}` panicked on an item of `{origin}`: {message}")]
    Panic {
        /// The handler's name.
        handler: &'static str,
        /// The source of the message, as the attribute names it.
        origin: String,
        /// What the panic said.
        message: String,
    },
    /// A sink did not take an output.
    #[error("a sink of handler `{handler}` failed on an output for an item of `{origin}`")]
    Sink {
        /// The name of the handler whose output it was.
        handler: &'static str,
        /// The source of the message, as the attribute names it.
        origin: String,
        /// What the sink returned.
        #[source]
        cause: BoxError,
    },
    /// The source gave an error in place of an item.
    #[error("`{origin}` gave an error in place of an item for handler `{handler}`")]
    Item {
        /// The handler that would have taken it.
        handler: &'static str,
        /// The source, as the attribute names it.
        origin: String,
        /// The error.
        #[source]
        cause: BoxError,
    },
    /// What a message wrote could not be made visible: the store refused it, and has none of it.
    #[error("the writes of an item of `{origin}` were not stored")]
    Publish {
        /// The source of the message, as the attribute names it.
        origin: String,
        /// What the store returned.
        #[source]
        cause: BoxError,
    },
    /// An epoch could not be committed: neither its state nor its positions are stored, and the
    /// caches show those of the commit before.
    #[error("what was handled since the last commit was not stored")]
    Commit {
        /// What the store returned.
        #[source]
        cause: BoxError,
    },
    /// A sink could not be flushed, at a commit or at the end.
    #[error("a sink of handler `{handler}` could not be flushed")]
    Flush {
        /// The name of the handler whose sink it was.
        handler: &'static str,
        /// What the sink returned.
        #[source]
        cause: BoxError,
    },
    /// A source cannot be read: its broker refuses it, or its log no longer has what comes next.
    #[error("source `{origin}` cannot be read")]
    Read {
        /// The source, as the attribute names it.
        origin: String,
        /// What the source returned.
        #[source]
        cause: BoxError,
    },
    /// A sink could not be opened when the flow started.
    #[error("the flow could not start: a sink of handler `{handler}` could not be opened")]
    Open {
        /// The name of the handler whose sink it was.
        handler: &'static str,
        /// What the sink returned.
        #[source]
        cause: BoxError,
    },
    /// What messages had sent out was not acknowledged: their positions are not committed.
    #[error("outputs since the last commit were not delivered")]
    Delivery {
        /// Which, and why.
        #[source]
        cause: BoxError,
    },
    /// A checkpoint cannot be part of the flow, or has ended it.
    #[error("checkpoint `{checkpoint}` ended the flow")]
    Checkpoint {
        /// Its name.
        checkpoint: String,
        /// A `CheckpointError`.
        #[source]
        cause: BoxError,
    },
    /// A source panicked while it was read.
    #[error("source `{origin}` panicked: {message}")]
    Source {
        /// The source, as the attribute names it.
        origin: String,
        /// What the panic said.
        message: String,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_chain(self, f)
    }
}

/// An error with its causes, on one line: what `main` is to print.
pub(crate) fn write_chain(error: &dyn StdError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{error}")?;
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(f, ": {error}")?;
        cause = error.source();
    }
    Ok(())
}

/// An error on its way up from a handler's turn: boxed, since every message's result carries the
/// room for it. The route knows the source, and makes it an [`Error`].
pub(crate) type Fault = Box<FaultOf>;

/// What went wrong, in which handler.
#[derive(Debug)]
pub(crate) struct FaultOf {
    pub(crate) handler: &'static str,
    /// The channel or cache that the handler reads, where its item came inside of a message.
    pub(crate) within: Option<Arc<str>>,
    pub(crate) cause: Cause,
}

impl fmt::Display for FaultOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cause: Option<&dyn StdError> = match &self.cause {
            Cause::Panic(message) => return write!(f, "it panicked: {message}"),
            Cause::Conflict => return f.write_str("another message has changed what it had read"),
            Cause::Revoked => return f.write_str("its partition was taken away"),
            Cause::Handler(cause)
            | Cause::Sink(cause)
            | Cause::Item(cause)
            | Cause::Publish(cause)
            | Cause::Source(cause) => Some(&**cause),
        };
        let mut first = true;
        while let Some(error) = cause {
            write!(f, "{}{error}", if first { "" } else { ": " })?;
            (first, cause) = (false, error.source());
        }
        Ok(())
    }
}

/// At which step of a message it went wrong.
#[derive(Debug)]
pub(crate) enum Cause {
    Handler(BoxError),
    Panic(String),
    Sink(BoxError),
    Item(BoxError),
    Publish(BoxError),
    /// Another message has published what this one had read to change it: it runs again.
    Conflict,
    /// Its partition was taken away before it was done: it is dropped.
    Revoked,
    /// The source cannot be read.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    Source(BoxError),
}

impl FaultOf {
    #[cold]
    pub(crate) fn new(handler: &'static str, cause: Cause) -> Fault {
        Box::new(FaultOf { handler, within: None, cause })
    }
    /// The error of a message of the source `origin`.
    pub(crate) fn of(self, origin: &str) -> Error {
        let handler = self.handler;
        let origin = match self.within {
            Some(within) => format!("{within}` for an item of `{origin}"),
            None => origin.to_owned(),
        };
        match self.cause {
            Cause::Handler(cause) => Error::Handler { handler, origin, cause },
            Cause::Panic(message) => Error::Panic { handler, origin, message },
            Cause::Sink(cause) => Error::Sink { handler, origin, cause },
            Cause::Item(cause) => Error::Item { handler, origin, cause },
            Cause::Publish(cause) => Error::Publish { origin, cause },
            Cause::Conflict => Error::Publish { origin, cause: "its item was not kept to run again".into() },
            Cause::Revoked => Error::Publish { origin, cause: "its partition was taken away".into() },
            Cause::Source(cause) => Error::Read { origin, cause },
        }
    }
}

/// What a panic said, if it was text.
pub(crate) fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "(no text)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_main_prints_is_the_whole_chain() {
        let cause = "seven".parse::<u32>().unwrap_err().into();
        let error = Error::Handler { handler: "count", origin: "app.words".into(), cause };
        assert_eq!(
            format!("{error:?}"),
            "handler `count` failed on an item of `app.words`: invalid digit found in string"
        );
    }
}
