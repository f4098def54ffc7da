//! What is wrong with a setting.
use std::io;

/// Why a setting of Kafka's clients cannot be taken.
///
/// A value is told where it cannot be a secret: in the same cases as in the `Debug` of
/// [`Settings`](super::Settings), and for an unknown name where the nearest known one is such.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// There is no setting of that name.
    #[error("there is no Kafka setting `{name}`{}{}", valued(value), meant(nearest))]
    Unknown {
        /// The name.
        name: String,
        /// The value.
        value: Option<String>,
        /// The known name that differs in the fewest letters, where it differs in few.
        nearest: Option<String>,
    },
    /// The setting cannot have that value.
    #[error("the Kafka setting `{name}` cannot be {}: {reason}", set_to(value))]
    Invalid {
        /// The setting.
        name: String,
        /// The value.
        value: Option<String>,
        /// What it has to be, or what this build lacks.
        reason: String,
    },
    /// The setting is the library's own.
    #[error("the Kafka setting `{name}` is the library's own: {reason}")]
    Owned {
        /// The setting.
        name: String,
        /// What holds instead.
        reason: &'static str,
    },
    /// The same setting is given twice, perhaps under two of its names.
    #[error("the Kafka setting `{name}` is given twice{}: give it once", before(name, other))]
    Twice {
        /// Its name, as it was given the second time.
        name: String,
        /// Its name, as it was given before.
        other: String,
    },
    /// A setting that there has to be is not there.
    #[error("the Kafka setting `{name}` is missing: {reason}")]
    Missing {
        /// The setting.
        name: &'static str,
        /// What to give.
        reason: &'static str,
    },
    /// librdkafka could not list the settings that it knows.
    #[error("librdkafka could not list its settings")]
    List(#[from] io::Error),
}

fn valued(value: &Option<String>) -> String {
    value.as_ref().map_or_else(String::new, |value| format!(" with the value `{value}`"))
}

fn set_to(value: &Option<String>) -> String {
    value.as_ref().map_or_else(|| "set".to_owned(), |value| format!("`{value}`"))
}

fn meant(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |nearest| format!(": did you mean `{nearest}`?"))
}

fn before(name: &str, other: &str) -> String {
    if name == other { String::new() } else { format!(", before as `{other}`") }
}
