//! A database as a store opens it.
use rocksdb::{BlockBasedOptions, Options};

/// The options of a store, as `slipstream-core/src/store/options.rs` sets them.
pub(crate) fn options() -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_bloom_filter(10.0, false);
    table.set_block_cache(&rocksdb::Cache::new_lru_cache(64 << 20));
    table.set_cache_index_and_filter_blocks(false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table);
    options.set_compression_type(rocksdb::DBCompressionType::Lz4);
    options.set_write_buffer_size(16 << 20);
    options.set_max_write_buffer_number(4);
    options.set_max_bytes_for_level_base(128 << 20);
    options.set_max_open_files(512);
    let processors = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 4));
    options.set_max_background_jobs(i32::try_from(processors).unwrap_or(2));
    options.set_avoid_unnecessary_blocking_io(true);
    options.set_wal_recovery_mode(rocksdb::DBRecoveryMode::PointInTime);
    options.set_track_and_verify_wals_in_manifest(true);
    options.set_log_level(rocksdb::LogLevel::Warn);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options
}
