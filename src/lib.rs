//! Slipstream.
