//! What a store promises about its directory (one owner, formats that are remembered, damage that is
//! noticed) and about memory.
mod child;
mod damage;
mod formats;
mod memory;
mod merge;
mod opening;
