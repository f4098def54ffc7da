//! The headers by which a record says of which message it is an output: on request, by
//! [`Topic::origin`](super::Topic::origin). Their values are text.
//!
//! With them a reader tells a revision from a first answer, and knows two records of the same output: topic, partition,
//! offset, handler and output are equal where a message was handled again.
use super::records::Draft;
use crate::watch::{At, Watched};
use std::{fmt::Display, io::Write};

/// The topic of the message in which the record was given out; of a source that is none, its name.
pub const TOPIC: &str = "slipstream-topic";
/// Its partition; 0 of a source without positions.
pub const PARTITION: &str = "slipstream-partition";
/// Its offset; of a source without positions, how many came before it in this run.
pub const OFFSET: &str = "slipstream-offset";
/// The handler of the source that was at work.
pub const HANDLER: &str = "slipstream-handler";
/// The number of the record among those that this handler has given to such topics in this message, from 0.
pub const OUTPUT: &str = "slipstream-output";
/// `true` where the handler has published an earlier handling of the message, else `false`.
pub const REPLAY: &str = "slipstream-replay";

/// Where a record comes from.
pub(super) struct Origin<'w> {
    watched: &'w Watched,
    output: u64,
}

impl<'w> Origin<'w> {
    /// Of the next record of the message in hand. `None` where no message has come yet.
    pub(super) fn next(watched: &'w mut Watched) -> Option<Self> {
        let output = watched.output();
        (watched.at.offset >= 0).then_some(Origin { watched, output })
    }

    /// Adds its headers.
    pub(super) fn write(&self, draft: &mut Draft<'_>) {
        let Watched { watch, at: At { partition, offset }, .. } = self.watched;
        let mut number = |name: &str, number: &dyn Display| {
            // As long as the longest number.
            let mut digits = [0; 20];
            let mut left = &mut digits[..];
            let written = write!(left, "{number}");
            debug_assert!(written.is_ok());
            let length = 20 - left.len();
            draft.header(name.as_bytes(), digits.get(..length));
        };
        number(PARTITION, partition);
        number(OFFSET, offset);
        number(OUTPUT, &self.output);
        let replay = if self.watched.is_replayed() { "true" } else { "false" };
        for (name, text) in [(TOPIC, &*watch.name), (HANDLER, self.watched.handler()), (REPLAY, replay)] {
            draft.header(name.as_bytes(), Some(text.as_bytes()));
        }
    }
}
