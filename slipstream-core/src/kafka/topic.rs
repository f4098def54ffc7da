//! A topic: a source of messages and a sink of records, with its codecs and how it is read.
//!
//! ```text
//! kafka.topic("weather") ─ .json() ─▶ Topic ─ .start(…), .group(…) ─▶ another Topic
//! ```
//!
//! Invariants: a topic that is read in another way is another source; clones are the same one.
use super::{Kafka, Offset, SettingError, Settings, sink::Outlet, source::Reading};
use crate::{
    codec::{Codec, Json, KeyCodec, MessagePack, Raw, Text},
    source::Control,
};
use std::{
    collections::BTreeMap,
    fmt,
    marker::PhantomData,
    sync::{Arc, RwLock},
};

/// A topic of a [`Kafka`] cluster: a source of messages with keys `K` and values `V`, and a sink for pairs `(K, V)`
/// and for [records](super::Record). Clones are the same source.
///
/// ```
/// use futures::TryStreamExt;
/// use slipstream_core::{
///     Flow, iter,
///     kafka::{Kafka, Offset},
///     source,
/// };
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> slipstream_core::Result<()> {
/// let kafka = Kafka::in_process()?;
/// kafka.create_topic("squares", 4).await?;
/// let squares = kafka.topic::<String, i32>("squares").json();
///
/// let numbers = iter(1..=3);
/// let square = source(&numbers).handle(|n| Some((n.to_string(), n * n))).sink(&squares);
/// Flow::new().with(square).run(()).await?;
///
/// let mut read: Vec<i32> =
///     squares.until(Offset::End).stream().map_ok(|message| message.value).try_collect().await?;
/// read.sort();
/// assert_eq!(read, [1, 4, 9]);
/// # Ok(()) }
/// ```
///
/// **As a sink** it takes each output into the message in hand: it is written by the codecs at once, so that what
/// cannot be written is the handler's error, and it leaves when the message is published, or never. Each commit waits
/// until all that left before it is acknowledged. After a crash the messages since the last commit come again, and
/// their outputs with them: at least once. Records of one key stay in the order in which they were given out, in the
/// partition that Java's client chooses for the key; no key (`()`, or `None` of an `Option`) is any partition, and an
/// empty key is a key. A value `None` of an `Option` is null on the wire.
///
/// **By hand** [`send`](Topic::send) sends one record, in a message or outside of one.
///
/// The topic has to be there: a flow that begins with a topic which its cluster does not have ends with an error that
/// names it, unless `allow.auto.create.topics` is `true`.
///
/// | setting | here | why |
/// |---|---|---|
/// | `enable.idempotence` | `true` | a record sent again after a lost answer is there once, and in order; gives way to `acks`, `retries` and `max.in.flight` that exclude it |
/// | `linger.ms` | librdkafka's, 5 | a commit sends at once, without it |
/// | `message.timeout.ms` | librdkafka's, five minutes | a record that is not acknowledged by then fails the flow |
/// | `queue.buffering.max.messages`, `….kbytes` | librdkafka's, 100,000 and 1 GiB | beyond them no message begins |
/// | `allow.auto.create.topics` | `false` | a misspelt topic is an error |
pub struct Topic<K, V> {
    pub(super) config: Arc<TopicConfig<K, V>>,
    pub(super) control: Control,
    pub(super) reading: Reading,
}

/// What a topic is made of.
pub(super) struct TopicConfig<K, V> {
    pub(super) kafka: Kafka,
    pub(super) name: Arc<str>,
    pub(super) codecs: Arc<Codecs<K, V>>,
    /// Those of the topic over those of the cluster.
    pub(super) settings: Settings,
    pub(super) start: Offset,
    /// For single partitions, in place of `start`.
    pub(super) starts: BTreeMap<i32, Offset>,
    pub(super) until: Option<Offset>,
    pub(super) group: Option<Arc<str>>,
    pub(super) is_broadcast: bool,
    pub(super) concurrency: usize,
    pub(super) is_dry_run: bool,
    /// Its records say where they come from.
    pub(super) says_origin: bool,
    /// Where records go: made when the first is sent, and again after a failure.
    pub(super) outlet: RwLock<Option<Arc<Outlet>>>,
}

/// How keys and values are written and read.
pub(super) struct Codecs<K, V> {
    pub(super) key: Box<dyn Codec<K>>,
    pub(super) value: Box<dyn Codec<V>>,
}

/// A topic of which it is still to be said how its values are written. Keys are strings or bytes as they are, or `()`
/// for none, unless [`codecs`](Unformatted::codecs) says otherwise.
///
/// ```
/// use slipstream_core::kafka::Kafka;
///
/// let kafka = Kafka::new([("bootstrap.servers", "localhost:9092")])?;
/// let weather = kafka.topic::<(), f64>("weather").json();
/// let names = kafka.topic::<String, Option<String>>("names").text();
/// # Ok::<(), slipstream_core::BoxError>(())
/// ```
#[must_use = "say how values are written: `.json()`, `.message_pack()`, `.text()`, `.raw()`, `.codec(…)`"]
pub struct Unformatted<K, V> {
    kafka: Kafka,
    name: Arc<str>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Unformatted<K, V> {
    pub(super) fn new(kafka: Kafka, name: &str) -> Self {
        Unformatted { kafka, name: Arc::from(name), types: PhantomData }
    }
    /// Values are [JSON](Json): what serde can write and read. `None` of an `Option` is null on the wire, not the
    /// text `null`.
    #[must_use]
    pub fn json(self) -> Topic<K, V>
    where
        KeyCodec: Codec<K>,
        Json: Codec<V>,
    {
        self.codec(Json)
    }
    /// Values are [MessagePack], with named fields.
    #[must_use]
    pub fn message_pack(self) -> Topic<K, V>
    where
        KeyCodec: Codec<K>,
        MessagePack: Codec<V>,
    {
        self.codec(MessagePack)
    }
    /// Values are [text](Text) as it is: `String` and the like.
    #[must_use]
    pub fn text(self) -> Topic<K, V>
    where
        KeyCodec: Codec<K>,
        Text: Codec<V>,
    {
        self.codec(Text)
    }
    /// Values are [bytes](Raw) as they are: `Vec<u8>` and the like.
    #[must_use]
    pub fn raw(self) -> Topic<K, V>
    where
        KeyCodec: Codec<K>,
        Raw: Codec<V>,
    {
        self.codec(Raw)
    }
    /// Values are written and read by this codec, which may be one of your own: see [`Codec`].
    #[must_use]
    pub fn codec(self, value: impl Codec<V>) -> Topic<K, V>
    where
        KeyCodec: Codec<K>,
    {
        self.codecs(KeyCodec, value)
    }
    /// Keys and values are written and read by these codecs.
    ///
    /// ```
    /// use slipstream_core::{codec::Json, kafka::Kafka};
    ///
    /// let kafka = Kafka::new([("bootstrap.servers", "localhost:9092")])?;
    /// let pairs = kafka.topic::<(u32, u32), f64>("pairs").codecs(Json, Json);
    /// # Ok::<(), slipstream_core::BoxError>(())
    /// ```
    #[must_use]
    pub fn codecs(self, key: impl Codec<K>, value: impl Codec<V>) -> Topic<K, V> {
        let Unformatted { kafka, name, .. } = self;
        let settings = kafka.settings().clone();
        let config = TopicConfig {
            kafka,
            name,
            codecs: Arc::new(Codecs { key: Box::new(key), value: Box::new(value) }),
            settings,
            start: Offset::Beginning,
            starts: BTreeMap::new(),
            until: None,
            group: None,
            is_broadcast: false,
            concurrency: 1,
            is_dry_run: false,
            says_origin: false,
            outlet: RwLock::default(),
        };
        Topic { config: Arc::new(config), control: Control::default(), reading: Reading::default() }
    }
}

impl<K, V> Topic<K, V> {
    /// Settings of this topic alone, over those of its cluster. Topics with the same settings share a producer.
    ///
    /// ```
    /// use slipstream_core::kafka::Kafka;
    ///
    /// let kafka = Kafka::new([("bootstrap.servers", "localhost:9092"), ("linger.ms", "5")])?;
    /// let patient = kafka.topic::<(), f64>("weather").json().settings([("linger.ms", "100")])?;
    /// # Ok::<(), slipstream_core::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`SettingError`] for the first that cannot be taken.
    pub fn settings<N: AsRef<str>, T: AsRef<str>>(
        self,
        settings: impl IntoIterator<Item = (N, T)>,
    ) -> Result<Self, SettingError> {
        let settings = Settings::new(settings)?;
        Ok(self.with(|config| {
            let all = std::mem::take(&mut config.settings);
            config.settings = settings.over(&all);
        }))
    }
    /// Where to begin when there is no stored position; [`Offset::Beginning`] without it. A number is that message.
    ///
    /// ```
    /// use slipstream_core::kafka::{Kafka, Offset};
    ///
    /// let kafka = Kafka::new([("bootstrap.servers", "localhost:9092")])?;
    /// let news = kafka.topic::<(), String>("news").text().start(Offset::End).start_partition(3, 50);
    /// # Ok::<(), slipstream_core::BoxError>(())
    /// ```
    #[must_use]
    pub fn start(self, start: impl Into<Offset>) -> Self {
        self.with(|config| config.start = start.into())
    }
    /// Where this partition begins, in place of [`start`](Topic::start).
    #[must_use]
    pub fn start_partition(self, partition: i32, start: impl Into<Offset>) -> Self {
        self.with(|config| {
            config.starts.insert(partition, start.into());
        })
    }
    /// Where the source ends: each partition at this place as it is when the flow starts. Without it there is no end.
    ///
    /// ```
    /// use slipstream_core::kafka::{Kafka, Offset};
    ///
    /// let kafka = Kafka::new([("bootstrap.servers", "localhost:9092")])?;
    /// let all_there_is = kafka.topic::<(), String>("news").text().until(Offset::End);
    /// # Ok::<(), slipstream_core::BoxError>(())
    /// ```
    #[must_use]
    pub fn until(self, end: impl Into<Offset>) -> Self {
        self.with(|config| config.until = Some(end.into()))
    }
    /// The consumer group, whose members share the partitions; without it the flow's name. It takes back
    /// [`broadcast`](Topic::broadcast).
    #[must_use]
    pub fn group(self, group: impl AsRef<str>) -> Self {
        self.with(|config| {
            config.group = Some(Arc::from(group.as_ref()));
            config.is_broadcast = false;
        })
    }
    /// Each process reads all partitions, without a group; positions are in the store. For the small side of a join.
    /// It takes back [`group`](Topic::group).
    #[must_use]
    pub fn broadcast(self) -> Self {
        self.with(|config| {
            config.group = None;
            config.is_broadcast = true;
        })
    }
    /// How many partitions may be handled at the same time; one without it. Messages of one partition are handled one
    /// after the other.
    #[must_use]
    pub fn concurrency(self, partitions: usize) -> Self {
        self.with(|config| config.concurrency = partitions.max(1))
    }
    /// As a sink it sends nothing: records are written, so that one which cannot be written is an error, and logged at
    /// the level `DEBUG`, where their handler gives them out. Needs no broker.
    ///
    /// ```
    /// use slipstream_core::kafka::Kafka;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> slipstream_core::Result<()> {
    /// let kafka = Kafka::new([("bootstrap.servers", "nowhere:9092")])?;
    /// let weather = kafka.topic::<(), f64>("weather").json().dry_run();
    /// weather.send((), 72.5).await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn dry_run(self) -> Self {
        self.with(|config| config.is_dry_run = true)
    }

    /// Records that are given to it in a message say of which: by headers whose names are those of
    /// [`kafka::origin`](super::origin), after the record's own.
    ///
    /// | header | value, as text |
    /// |---|---|
    /// | `slipstream-topic` | the message's topic; of a source that is none, the name by which its positions are stored, or the one in the program |
    /// | `slipstream-partition` | the message's partition |
    /// | `slipstream-offset` | the message's offset |
    /// | `slipstream-handler` | the handler of that source: also where a channel's handler gives out the record, inside of its message |
    /// | `slipstream-output` | the number of the record among those that the handler has given to such topics in this message, from 0 |
    /// | `slipstream-replay` | `true` where the handler has published an earlier handling of the message, else `false` |
    ///
    /// All but the last are the same when a message is handled again by a [`Checkpoint`](crate::Checkpoint), or after a
    /// crash, as long as the handler gives out its records in the same order: so whoever reads them can keep the last
    /// revision of each. Behind a pipe the message is the one that brought the pipe's item out. A source without
    /// positions has partition 0, and for an offset how many messages came before in this run. Records that are
    /// sent outside of messages have none of these headers. Say so before the flow begins.
    ///
    /// ```
    /// use slipstream_core::{
    ///     Flow,
    ///     kafka::{Kafka, Offset, origin},
    ///     source,
    /// };
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> slipstream_core::Result<()> {
    /// let kafka = Kafka::in_process()?;
    /// kafka.create_topic("words", 1).await?;
    /// kafka.create_topic("loud", 1).await?;
    /// let words = kafka.topic::<(), String>("words").text().until(Offset::End);
    /// words.send((), "hello".into()).await?;
    ///
    /// let loud = kafka.topic::<(), String>("loud").text().origin();
    /// let shout = source(&words).takes().handle(|word: String| Some(((), word.to_uppercase()))).sink(&loud);
    /// Flow::new().named("shout").with(shout).run(()).await?;
    ///
    /// # use futures::TryStreamExt;
    /// let read: Vec<_> = loud.until(Offset::End).stream().try_collect().await?;
    /// assert!(read[0].headers.contains(&(origin::TOPIC.to_owned(), b"words".to_vec())));
    /// assert!(read[0].headers.contains(&(origin::OFFSET.to_owned(), b"0".to_vec())));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn origin(self) -> Self {
        crate::watch::ask();
        self.with(|config| config.says_origin = true)
    }

    fn with(self, change: impl FnOnce(&mut TopicConfig<K, V>)) -> Self {
        let mut config = TopicConfig::clone(&self.config);
        change(&mut config);
        // What is read in another way is another source, with a control of its own.
        Topic { config: Arc::new(config), control: Control::default(), reading: Reading::default() }
    }
}

impl<K, V> Clone for Topic<K, V> {
    fn clone(&self) -> Self {
        let Topic { config, control, reading } = self;
        Topic { config: Arc::clone(config), control: control.clone(), reading: reading.clone() }
    }
}

impl<K, V> Clone for TopicConfig<K, V> {
    fn clone(&self) -> Self {
        TopicConfig {
            kafka: self.kafka.clone(),
            name: Arc::clone(&self.name),
            codecs: Arc::clone(&self.codecs),
            settings: self.settings.clone(),
            start: self.start,
            starts: self.starts.clone(),
            until: self.until,
            group: self.group.clone(),
            is_broadcast: self.is_broadcast,
            concurrency: self.concurrency,
            is_dry_run: self.is_dry_run,
            says_origin: self.says_origin,
            // Its settings may become others.
            outlet: RwLock::default(),
        }
    }
}

impl<K, V> fmt::Debug for Topic<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic")
            .field("name", &self.config.name)
            .field("group", &self.config.group)
            .finish_non_exhaustive()
    }
}

impl<K, V> fmt::Debug for Unformatted<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unformatted").field("name", &self.name).finish_non_exhaustive()
    }
}
