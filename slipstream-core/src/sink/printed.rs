//! The sink for a first program.
use super::Sink;
use crate::BoxError;
use std::{
    fmt::Debug,
    future::{Future, ready},
    io::Write,
};

/// A sink that prints each output on a line of its own, as `{:?}`. An output that cannot be
/// printed (a closed pipe) is the sink's error.
///
/// It is a unit struct, not a function, so that a list of sinks does not carry `T: Debug` in its
/// type; where it is imported, no variable can be called `print`.
#[allow(non_camel_case_types)]
#[derive(Debug, Clone, Copy)]
pub struct print;

impl<T: Debug + Sync> Sink<T> for print {
    const WAITS: bool = false;
    fn send(&self, output: &T) -> impl Future<Output = Result<(), BoxError>> + Send {
        ready(writeln!(std::io::stdout(), "{output:?}").map_err(Into::into))
    }
}
