//! What a store promises about its directory: one owner, formats that are remembered, and damage
//! that is noticed.
mod formats;
mod opening;
