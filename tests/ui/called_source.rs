//! The function is the source, not the stream that it returns.
use slipstream::{handle, print};

use futures::{Stream, stream};

fn messages() -> impl Stream<Item = char> {
    stream::iter("ab".chars())
}

#[handle(messages(), sink = print)]
fn handler(letter: char) -> char {
    letter
}

fn main() {}
