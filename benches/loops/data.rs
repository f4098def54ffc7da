//! What the topics hold that are decoded: JSON of about 50 bytes.
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicI64, Ordering};

/// Weather at a time, in microseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Update {
    pub(crate) time: i64,
    pub(crate) celsius: f64,
    pub(crate) wind: f64,
}

/// What is asked about the weather at its time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) time: i64,
    pub(crate) order: u64,
    pub(crate) count: u32,
}

/// Both joined.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Joined {
    pub(crate) order: u64,
    pub(crate) count: u32,
    pub(crate) celsius: f64,
}

/// What a cache keeps under the time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Weather {
    pub(crate) celsius: f64,
    pub(crate) wind: f64,
}

/// Counted by user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Purchase {
    pub(crate) user: u64,
    pub(crate) product: u64,
    pub(crate) amount: f64,
}

const BEGIN: i64 = 1_735_689_600_000_000;
/// Minutes apart.
const STEP: i64 = 60_000_000;

fn json(value: &impl Serialize, bytes: &mut Vec<u8>) {
    serde_json::to_writer(bytes, value).expect("memory takes it");
}

pub(crate) fn update(n: u64, bytes: &mut Vec<u8>) {
    let update = Update {
        time: BEGIN + n as i64 * STEP,
        celsius: (n % 400) as f64 / 10.0,
        wind: (n % 90) as f64 / 4.0,
    };
    json(&update, bytes);
}

pub(crate) fn order(n: u64, bytes: &mut Vec<u8>) {
    json(&Order { time: BEGIN + n as i64 * STEP, order: n, count: (n % 9) as u32 }, bytes);
}

/// How far the updates are. What is ordered asks for a time shortly before that, as it does when both come live:
/// of two topics that were filled before, one may be read far ahead of the other.
#[derive(Debug, Default)]
pub(crate) struct Now(AtomicI64);

impl Now {
    pub(crate) fn updated(&self, time: i64) {
        self.0.store(time, Ordering::Relaxed);
    }
    /// Between two of the last updates.
    pub(crate) fn asked(&self, order: u64) -> i64 {
        self.0.load(Ordering::Relaxed) - (order % 16) as i64 * STEP + STEP / 2
    }
}

pub(crate) const USERS: u64 = 100_000;

pub(crate) fn purchase(n: u64, bytes: &mut Vec<u8>) {
    json(&Purchase { user: user(n), product: n, amount: (n % 1_000) as f64 / 10.0 }, bytes);
}

/// Any of the users (splitmix64).
pub(crate) fn user(n: u64) -> u64 {
    let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (n ^ (n >> 31)) % USERS
}
