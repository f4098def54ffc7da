//! Buffers for keys and values that are used again, so that a look-up allocates nothing.
//!
//! Invariant: while a [`Scratch`] is held no thread-local is borrowed, so the user's own code (a
//! `Key`, a `Serialize`) may run, panic, or use another cache meanwhile.
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Buffers kept for a thread: a write needs two, a `nearest` three.
const KEPT: usize = 4;
/// A buffer that one large value has made grow beyond this is given back to the system.
const KEPT_BYTES: usize = 64 << 10;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer at first, which goes back to its thread's spare ones when dropped.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Vec<u8>);

impl Scratch {
    /// Takes a spare buffer, or makes one.
    pub(crate) fn take() -> Self {
        Self(SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten().unwrap_or_default())
    }
}

impl Deref for Scratch {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0);
        if bytes.capacity() == 0 || bytes.capacity() > KEPT_BYTES {
            return;
        }
        bytes.clear();
        // At the end of a thread its spare buffers are gone already; then this one goes too.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT {
                spare.push(bytes);
            }
        });
    }
}
