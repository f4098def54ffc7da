//! What can go wrong with a file that is read by its lines: each error names the file, and where.
use std::path::PathBuf;

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
    /// A record is not a value of the wanted type.
    #[error("`{}`, line {line}, is not what was expected in CSV", path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// The number of the record's last line, the first is 1.
        line: i64,
        /// What is wrong with it.
        #[source]
        cause: csv::Error,
    },
    /// A record does not end: a quote is open at the end of the file.
    #[error(
        "`{}` ends, at line {line}, inside of a quoted field: close the quote, or wait until the record is written",
        path.display()
    )]
    Unclosed {
        /// The file.
        path: PathBuf,
        /// The number of its last line, the first is 1.
        line: i64,
    },
    /// The file was sought past its end.
    #[error("`{}` has {found} lines, and was sought at line {sought}, counted from 0", path.display())]
    Sought {
        /// The file.
        path: PathBuf,
        /// How many lines it has.
        found: i64,
        /// The line that was asked for.
        sought: i64,
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
