//! The settings that are not the user's: what the library promises depends on them.
use super::known::{Kind, Known};

/// Each under the name that librdkafka gives it, with what holds instead.
const OWNED: [(&str, &str); 15] = [
    ("auto.commit.enable", COMMITS),
    ("auto.commit.interval.ms", "a flow commits at its own interval: say it with `.commit_every(…)`"),
    ("auto.offset.reset", "say with `.start(…)` where to begin when there is no stored position"),
    (
        "delivery.report.only.error",
        "a commit waits until its outputs are acknowledged, and so needs all reports",
    ),
    ("enable.auto.commit", COMMITS),
    ("enable.auto.offset.store", COMMITS),
    ("enable.partition.eof", "whether a partition is at its end is told by its position"),
    ("group.id", "say it with `.group(…)`; the default is the flow's name"),
    ("log.queue", "what librdkafka logs goes to the program's own log"),
    ("offset.store.method", COMMITS),
    ("offset.store.path", COMMITS),
    ("offset.store.sync.interval.ms", COMMITS),
    (
        "partitioner",
        "partitions are chosen by key as Java's client does (`murmur2_random`); a record may name its own",
    ),
    ("transactional.id", "a producer with it sends nothing outside of transactions"),
    ("queuing.strategy", "outputs keep their order within a partition"),
];

const COMMITS: &str = "positions are committed together with the state that depends on them";

/// Why a setting cannot be given, by its canonical name.
pub(super) fn reason(canonical: &str, known: &Known) -> Option<&'static str> {
    if known.kind == Kind::Handle {
        return Some("it is a function or an object of C, and no text");
    }
    OWNED.iter().find(|(owned, _)| *owned == canonical).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::super::known::KnownSettings;
    use super::*;

    #[test]
    fn what_the_library_owns_is_known_to_librdkafka_by_that_name() {
        let known = KnownSettings::of_librdkafka().unwrap();
        for (name, _) in OWNED {
            assert!(known.get(name).is_some(), "`{name}` is not known");
            assert_eq!(known.canonical(name), name);
        }
    }
}
