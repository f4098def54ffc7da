mod clusters;
mod fake;
mod partitions;
mod producing;
mod read_back;
mod reading;
mod sending;
mod settings;
