//! Where in a partition to begin, or to end.
use crate::Timestamp;

/// A place in a partition.
///
/// ```
/// use slipstream_core::kafka::Offset;
/// assert_eq!(Offset::from(7), Offset::At(7));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offset {
    /// The earliest message that the broker still has.
    Beginning,
    /// After the last message there is at that moment.
    End,
    /// The message of this number.
    At(i64),
    /// The first message made at this time or later; the end where there is none.
    Time(Timestamp),
}

impl From<i64> for Offset {
    fn from(offset: i64) -> Self {
        Offset::At(offset)
    }
}
