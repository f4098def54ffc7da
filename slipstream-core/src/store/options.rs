//! How RocksDB is set up. Each number says what it buys; the measurements behind them are of keyed
//! state that is looked up far more often than it is scanned.
use rocksdb::{
    BlockBasedOptions, Cache, DBCompactionStyle, DBCompressionType, DBRecoveryMode, Env, LogLevel, Options,
    ReadOptions, WriteOptions,
};

/// Rows in memory before they become a file. Smaller ones leave many files at level 0, each of
/// which an as-of look-up has to ask.
pub(crate) const WRITE_BUFFER_BYTES: usize = 16 << 20;
/// Together 64 MiB: writes go on while the full ones are written out.
const WRITE_BUFFERS: i32 = 4;
/// Data blocks only. Index and filter blocks stay outside, in memory with their open files: in a
/// cache of this size they would push each other out, and a look-up would read them again.
const BLOCK_CACHE_BYTES: usize = 64 << 20;
/// As large as what comes down from level 0 at once (four files of a write buffer each, times two).
const LEVEL_BASE_BYTES: u64 = 128 << 20;
/// Bits per key of the Bloom filter: one look-up in a hundred for a missing key reads a block in vain.
const BLOOM_BITS: f64 = 10.0;
/// Below the usual limit of 1,024 open files of a process, which a store of 60 GB would go past.
const OPEN_FILES: i32 = 512;
/// RocksDB's own log: for its makers, and read by nobody in good times.
const INFO_LOG_BYTES: usize = 1 << 20;

/// The options of a database; `memory` for one that is nowhere else.
pub(crate) fn database(memory: Option<&Env>) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_bloom_filter(BLOOM_BITS, false);
    table.set_block_cache(&Cache::new_lru_cache(BLOCK_CACHE_BYTES));
    table.set_cache_index_and_filter_blocks(false);

    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table);
    options.set_compaction_style(DBCompactionStyle::Level);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(WRITE_BUFFER_BYTES);
    options.set_max_write_buffer_number(WRITE_BUFFERS);
    options.set_max_bytes_for_level_base(LEVEL_BASE_BYTES);
    options.set_max_open_files(OPEN_FILES);
    let processors = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 4));
    options.set_max_background_jobs(i32::try_from(processors).unwrap_or(2));
    // Files that a dropped iterator was the last to need are deleted by a background thread, not by a handler.
    options.set_avoid_unnecessary_blocking_io(true);
    // After a power loss the unsynced end of the log is lost from some byte on, and need not end well:
    // what lies before the first bad record is a consistent earlier state.
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    // A whole log file that is gone or cut short is noticed.
    options.set_track_and_verify_wals_in_manifest(true);
    options.set_log_level(LogLevel::Warn);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(INFO_LOG_BYTES);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    if let Some(memory) = memory {
        options.set_env(memory);
    }
    options
}

/// Options of a write: in the write-ahead log, handed to the operating system, not forced to disk. A
/// store in memory needs no log.
pub(crate) fn write(in_memory: bool) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.disable_wal(in_memory);
    options
}

/// Options of a write that is on the disk when it returns.
pub(crate) fn durable(in_memory: bool) -> WriteOptions {
    let mut options = write(in_memory);
    options.set_sync(!in_memory);
    options
}

/// Options of a cursor over the keys in `from..to`.
pub(crate) fn cursor(from: &[u8], to: &[u8]) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_iterate_lower_bound(from);
    options.set_iterate_upper_bound(to);
    options
}
