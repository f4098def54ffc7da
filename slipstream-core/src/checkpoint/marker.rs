//! What a stream is compared by: event times, or anything else that has an order.
use crate::Timestamp;
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt, time::Duration};

/// How far a stream has come, as its messages say: their event times, or any ordered value, such as the number of
/// a batch. Times are markers as they are; for a type of your own the empty `impl` does:
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use slipstream_core::Marker;
///
/// #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
/// struct Batch(u64);
///
/// impl Marker for Batch {}
/// ```
///
/// Such values have no distance in time, so a dependency of theirs has the threshold zero, or a
/// [`downtime_check`](crate::Dependency::downtime_check) of its own.
pub trait Marker: Ord + Clone + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Whether two of them have a distance in time.
    const HAS_DISTANCE: bool = false;

    /// How much later than `earlier` this is; `None` where it is not later, or where that is no time.
    fn since(&self, earlier: &Self) -> Option<Duration> {
        let _ = earlier;
        None
    }

    /// This much earlier; the same where that is no time.
    #[must_use]
    fn before(&self, by: Duration) -> Self {
        let _ = by;
        self.clone()
    }
}

impl Marker for Timestamp {
    const HAS_DISTANCE: bool = true;
    fn since(&self, earlier: &Self) -> Option<Duration> {
        let micros = i128::from(self.as_micros()) - i128::from(earlier.as_micros());
        u64::try_from(micros).ok().filter(|micros| *micros > 0).map(Duration::from_micros)
    }
    fn before(&self, by: Duration) -> Self {
        *self - by
    }
}

macro_rules! ordinals {
    ($($number:ty),*) => {$(
        /// A number without a unit: its order alone counts.
        impl Marker for $number {}
    )*};
}
ordinals!(i32, i64, u32, u64);

/// Text, by its order.
impl Marker for String {}
