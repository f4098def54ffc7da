mod clusters;
mod partitions;
mod producing;
mod read_back;
mod sending;
mod settings;
