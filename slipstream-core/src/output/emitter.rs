//! Emitters: outputs given one by one, with work in between.
use super::Outputs;
use crate::BoxError;

/// Takes a handler's outputs one by one (the `yield` of a generator). What is emitted takes effect
/// when the message is done; a handler that fails has emitted nothing.
///
/// ```
/// use slipstream_core::Emitter;
///
/// async fn words(line: String, out: &mut Emitter<String>) {
///     for word in line.split_whitespace() {
///         out.emit(word.to_owned());
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let mut out = Emitter::default();
/// words("to be or not".into(), &mut out).await;
/// assert_eq!(out.into_vec(), ["to", "be", "or", "not"]);
/// # }
/// ```
#[derive(Debug)]
pub struct Emitter<T>(Vec<T>);

impl<T> Emitter<T> {
    /// Gives an output.
    pub fn emit(&mut self, output: T) {
        self.0.push(output);
    }
    /// What was emitted: for tests that call a handler.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T> Default for Emitter<T> {
    fn default() -> Self {
        Emitter(Vec::new())
    }
}

impl<T> Extend<T> for Emitter<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, outputs: I) {
        self.0.extend(outputs);
    }
}

/// What a handler with an emitter returns.
#[diagnostic::on_unimplemented(
    message = "a handler with an `Emitter` returns `()` or `Result<()>`, not `{Self}`",
    label = "outputs go through the emitter",
    note = "give each output with `out.emit(…)`, or drop the emitter and return the outputs"
)]
pub trait Concluded {
    /// Whether all went well.
    ///
    /// # Errors
    /// The handler's own.
    fn concluded(self) -> Result<(), BoxError>;
}

#[diagnostic::do_not_recommend]
impl Concluded for () {
    #[inline]
    fn concluded(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> Concluded for Result<(), E> {
    #[inline]
    fn concluded(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

/// What a handler has emitted.
#[derive(Debug)]
pub struct Emitted<T>(Vec<T>);

/// What a handler with an emitter gives, once it has returned.
///
/// # Errors
/// What the handler returned.
pub fn emitted<R: Concluded, T>(returned: R, emitter: Emitter<T>) -> Result<Emitted<T>, BoxError> {
    returned.concluded().map(|()| Emitted(emitter.0))
}

/// The outputs are what was emitted.
#[derive(Debug)]
pub struct Emits(());

/// The way to the outputs of a handler with an emitter.
#[must_use]
pub fn emits() -> Emits {
    Emits(())
}

impl<T> Outputs<Result<Emitted<T>, BoxError>, T> for Emits {
    type Item = T;
    // The emitter writes into the turn's own buffer, which comes back with what it has emitted: no
    // allocation per message once the buffer has grown.
    #[inline]
    fn emitter(&self, buffer: &mut Vec<T>) -> Emitter<T> {
        Emitter(std::mem::take(buffer))
    }
    #[inline]
    fn give(&self, returned: Result<Emitted<T>, BoxError>, buffer: &mut Vec<T>) -> Result<(), BoxError> {
        *buffer = returned?.0;
        Ok(())
    }
}
