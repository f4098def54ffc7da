mod partitions;
mod settings;
