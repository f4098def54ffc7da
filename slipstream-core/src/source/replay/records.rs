//! Records of CSV: where one ends, and what it is.
//!
//! A record is one line, or more where a quoted field has line breaks. Its position is that of its last line,
//! so that positions of a file are line numbers whatever it is read as.
use super::ReplayError;
use csv::{ReaderBuilder, StringRecord, Terminator};
use serde::de::DeserializeOwned;
use std::{path::Path, sync::Arc};

/// Whether a line break ends a record or is part of a field, as the `csv` crate reads it: a quote opens
/// a field at its beginning only, and is doubled to stand for itself.
#[derive(Debug, Default)]
pub(super) struct Quotes(State);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    FieldBegins,
    Plain,
    Quoted,
    /// After a quote in a quoted field: it is closed, unless another one follows.
    Closed,
}

impl Quotes {
    /// Whether the record goes on after this line.
    pub(super) fn open_after(&mut self, line: &[u8]) -> bool {
        for byte in line {
            self.0 = match (self.0, byte) {
                (State::Quoted, b'"') => State::Closed,
                (State::FieldBegins | State::Closed, b'"') | (State::Quoted, _) => State::Quoted,
                (_, b',' | b'\n') => State::FieldBegins,
                _ => State::Plain,
            };
        }
        let is_open = self.0 == State::Quoted;
        if !is_open {
            self.0 = State::FieldBegins;
        }
        is_open
    }
}

/// The fields of one record.
fn fields(text: &str) -> Result<StringRecord, csv::Error> {
    let mut record = StringRecord::new();
    let mut reader = ReaderBuilder::new();
    // The line's end, of one byte or two, is taken off, so another one is part of a field.
    reader.has_headers(false).terminator(Terminator::Any(b'\n')).buffer_capacity(text.len().clamp(64, 8192));
    reader.from_reader(text.as_bytes()).read_record(&mut record)?;
    Ok(record)
}

/// Makes values of the records of one file, by the names in its header.
#[derive(Debug, Default)]
pub(super) struct Header(Option<StringRecord>);

impl Header {
    /// The value of a record whose last line has the number `line`, from 1.
    pub(super) fn value<T: DeserializeOwned>(
        &mut self,
        header: Option<&Arc<str>>,
        record: &str,
        (path, line): (&Path, i64),
    ) -> Result<T, ReplayError> {
        let wrong = |cause| ReplayError::Csv { path: path.to_owned(), line, cause };
        if self.0.is_none() {
            self.0 = Some(fields(header.map_or("", |header| header)).map_err(wrong)?);
        }
        let record = fields(record).map_err(wrong)?;
        if let Some(header) = &self.0
            && header.len() != record.len()
        {
            let (found, named) = (record.len(), header.len());
            let what = format!("it has {found} fields, and the header names {named}");
            return Err(wrong(std::io::Error::new(std::io::ErrorKind::InvalidData, what).into()));
        }
        record.deserialize(self.0.as_ref()).map_err(wrong)
    }
}
