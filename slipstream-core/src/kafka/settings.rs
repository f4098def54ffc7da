//! Settings of a cluster or a topic: checked when they are given, one by one.
use std::collections::BTreeMap;
use std::fmt;

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use super::error::SettingError;
use super::known::{Kind, Known, KnownSettings, Side};
use super::owned;

/// Settings of Kafka's clients, by librdkafka's names; `_` may stand for `.`.
///
/// Which settings there are, and what they may be, is as librdkafka says: see its CONFIGURATION.md. A few are the
/// library's own, since what it promises depends on them; each of their errors says what to use instead.
///
/// ```
/// use slipstream_core::kafka::{SettingError, Settings};
///
/// let cluster = Settings::new([("bootstrap.servers", "localhost:9092"), ("linger_ms", "5")])?;
/// let topic = Settings::new([("linger.ms", "50")])?.over(&cluster);
/// assert_eq!(topic.get("linger.ms"), Some("50"));
/// assert_eq!(topic.get("bootstrap.servers"), Some("localhost:9092"));
///
/// let told = |settings| Settings::new([settings]).unwrap_err().to_string();
/// assert_eq!(
///     told(("bootstrap.server", "localhost:9092")),
///     "there is no Kafka setting `bootstrap.server` with the value `localhost:9092`: \
///      did you mean `bootstrap.servers`?"
/// );
/// assert_eq!(
///     told(("max.poll.interval.ms", "5 min")),
///     "the Kafka setting `max.poll.interval.ms` cannot be `5 min`: it is an integer, 1 .. 86400000"
/// );
/// assert_eq!(
///     told(("group.id", "sky")),
///     "the Kafka setting `group.id` is the library's own: \
///      say it with `.group(…)`; the default is the flow's name"
/// );
/// # Ok::<(), SettingError>(())
/// ```
///
/// Its `Debug` leaves out the values of free text, but for a few that are never secret: there may be passwords
/// among them.
#[derive(Clone, Default)]
pub struct Settings {
    /// By canonical name, so that no setting is there twice.
    settings: BTreeMap<String, Setting>,
}

#[derive(Clone)]
struct Setting {
    /// The name that was given, with `.` for `_`.
    name: String,
    /// All of its names.
    names: Vec<String>,
    value: String,
    side: Side,
    is_shown: bool,
}

impl Settings {
    /// Takes each setting, in the order given.
    ///
    /// # Errors
    /// [`SettingError`] for the first that is not known, is not of its kind, is the library's own, or is given
    /// twice.
    pub fn new<N: AsRef<str>, V: AsRef<str>>(
        settings: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, SettingError> {
        let known = KnownSettings::of_librdkafka()?;
        let mut taken = Self::default();
        for (name, value) in settings {
            taken.take(name.as_ref(), value.as_ref(), &known)?;
        }
        Ok(taken)
    }

    fn take(&mut self, given: &str, value: &str, known: &KnownSettings) -> Result<(), SettingError> {
        let name = spelt(given, known);
        let canonical = known.canonical(&name);
        if let Some(other) = self.settings.get(canonical) {
            return Err(SettingError::Twice { name: given.to_owned(), other: other.name.clone() });
        }
        let setting = check(given, &name, value, known)?;
        self.settings.insert(canonical.to_owned(), setting);
        Ok(())
    }

    /// These settings, and those of a cluster that they leave open.
    #[must_use]
    pub fn over(mut self, cluster: &Settings) -> Self {
        for (canonical, setting) in &cluster.settings {
            self.settings.entry(canonical.clone()).or_insert_with(|| setting.clone());
        }
        self
    }

    /// The value of a setting, by any of librdkafka's names for it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let named = |setting: &&Setting| setting.names.iter().any(|other| other == name);
        self.settings.values().find(named).map(|setting| setting.value.as_str())
    }

    /// Those that a consumer takes, under librdkafka's own names; secrets are among them.
    pub fn consumer(&self) -> impl Iterator<Item = (&str, &str)> {
        self.without(Side::Producer)
    }

    /// Those that a producer takes, under librdkafka's own names; secrets are among them.
    pub fn producer(&self) -> impl Iterator<Item = (&str, &str)> {
        self.without(Side::Consumer)
    }

    /// librdkafka logs a warning for each setting of the other side.
    fn without(&self, side: Side) -> impl Iterator<Item = (&str, &str)> {
        let taken = self.settings.iter().filter(move |(_, setting)| setting.side != side);
        taken.map(|(canonical, setting)| (canonical.as_str(), setting.value.as_str()))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.settings.values().map(|setting| {
            let value = if setting.is_shown { &*setting.value } else { "(not shown)" };
            (&setting.name, value)
        });
        f.debug_map().entries(shown).finish()
    }
}

/// The name with `.` for `_`; a few names of librdkafka's have a `_` themselves.
fn spelt(name: &str, known: &KnownSettings) -> String {
    if known.get(name).is_some() { name.to_owned() } else { name.replace('_', ".") }
}

/// The setting, if the user may give it and librdkafka takes it.
fn check(given: &str, name: &str, value: &str, known: &KnownSettings) -> Result<Setting, SettingError> {
    let canonical = known.canonical(name);
    let Some(found) = known.get(name) else {
        return unlisted(given, name, value, known);
    };
    if let Some(reason) = owned::reason(canonical, found) {
        return Err(SettingError::Owned { name: given.to_owned(), reason });
    }
    let is_shown = is_shown(canonical, found);
    let said = if is_half_a_number(found.kind, value) {
        String::new()
    } else {
        match refusal(name, value) {
            None => {
                let names = known.names(canonical).map(str::to_owned).collect();
                let (name, value) = (name.to_owned(), value.to_owned());
                return Ok(Setting { name, names, value, side: found.side, is_shown });
            }
            Some(Refusal::Unknown) => return Err(unknown(given, name, value, known)),
            Some(Refusal::Invalid(said)) => said,
        }
    };
    Err(SettingError::Invalid {
        name: given.to_owned(),
        value: is_shown.then(|| value.to_owned()),
        reason: lacking(&said).unwrap_or_else(|| expected(found, is_shown, said)),
    })
}

/// A setting that is not in the table: none, one of Java's, or one that librdkafka does not document.
fn unlisted(given: &str, name: &str, value: &str, known: &KnownSettings) -> Result<Setting, SettingError> {
    match refusal(name, value) {
        None => {
            let (name, names) = (name.to_owned(), vec![name.to_owned()]);
            Ok(Setting { name, names, value: value.to_owned(), side: Side::Both, is_shown: false })
        }
        Some(Refusal::Unknown) => Err(unknown(given, name, value, known)),
        // Of Java's settings it says something about the name alone, and the others have no secrets.
        Some(Refusal::Invalid(reason)) => {
            Err(SettingError::Invalid { name: given.to_owned(), value: None, reason })
        }
    }
}

/// A misspelt password has its value too, so it is told only beside a setting that has no secrets.
fn unknown(given: &str, name: &str, value: &str, known: &KnownSettings) -> SettingError {
    let nearest = known.nearest(name);
    let is_shown = nearest
        .and_then(|nearest| known.get(nearest).map(|found| is_shown(known.canonical(nearest), found)))
        .unwrap_or(false);
    SettingError::Unknown {
        name: given.to_owned(),
        value: is_shown.then(|| value.to_owned()),
        nearest: nearest.map(str::to_owned),
    }
}

/// Free text may be a secret. These never are.
fn is_shown(canonical: &str, known: &Known) -> bool {
    const NO_SECRETS: [&str; 6] = [
        "client.id",
        "client.rack",
        "group.instance.id",
        "metadata.broker.list",
        "partition.assignment.strategy",
        "sasl.mechanisms",
    ];
    known.kind != Kind::Text || NO_SECRETS.contains(&canonical)
}

/// Whether a number is followed by something, or does not fit: librdkafka would take `5 min` for 5, `010` for 8,
/// and cut the upper bits off a large one. Words it reads itself: `acks` may be `all`.
fn is_half_a_number(kind: Kind, value: &str) -> bool {
    let unsigned = value.trim_start().trim_start_matches(['+', '-', '.']);
    let begins = unsigned.starts_with(|c: char| c.is_ascii_digit());
    let is_octal = unsigned.len() > 1 && unsigned.starts_with('0');
    match kind {
        Kind::Integer => begins && (is_octal || value.parse::<i32>().is_err()),
        Kind::Float => begins && value.parse::<f64>().is_err(),
        _ => false,
    }
}

/// What a value of the setting has to be; for free text what librdkafka said, which may repeat the value.
fn expected(known: &Known, is_shown: bool, said: String) -> String {
    let range = &known.range;
    match known.kind {
        Kind::Integer => format!("it is an integer, {range}"),
        Kind::Float => format!("it is a number, {range}"),
        Kind::Boolean => "it is `true` or `false`".to_owned(),
        Kind::Words => format!("it is of these words: {range}"),
        Kind::Text | Kind::Handle if is_shown => said,
        Kind::Text | Kind::Handle => "librdkafka does not take it".to_owned(),
    }
}

/// Where a setting needs what is not built in: what that is, and the feature that has it.
fn lacking(said: &str) -> Option<String> {
    // Whoever lacks libcurl as well has no feature for it.
    const FEATURES: [(&str, &str); 4] =
        [("libcurl", ""), ("libzstd", "zstd"), ("libsasl2", "gssapi"), ("OpenSSL", "ssl")];
    let what = said.rsplit_once(": ").map(|(_, what)| what).filter(|what| what.contains("at build time"))?;
    match FEATURES.iter().find(|(library, _)| what.contains(library)) {
        Some((_, feature)) if !feature.is_empty() => {
            Some(format!("{what}; build with the feature `{feature}`"))
        }
        _ => Some(what.to_owned()),
    }
}

enum Refusal {
    Unknown,
    /// With what librdkafka said.
    Invalid(String),
}

/// What librdkafka has against the setting.
fn refusal(name: &str, value: &str) -> Option<Refusal> {
    match ClientConfig::new().set(name, value).create_native_config() {
        Ok(_) => None,
        Err(KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, ..)) => Some(Refusal::Unknown),
        Err(KafkaError::ClientConfig(_, said, ..)) => Some(Refusal::Invalid(said)),
        Err(_) => Some(Refusal::Invalid("it has a zero byte".to_owned())),
    }
}
