//! Any flow over any log, dropped at any moments and run again over its store, leaves after each run what the
//! messages that it has handled leave one after the other, and in the end all of them.
//!
//! ```text
//! log ═ up to 4 partitions, so many at a time ═▶ stands: checks and moves its partition's number
//!                                                handlers 0 to 2, by what the script has for them
//!                                                  ├─▶ shared ──its changes──▶ seen
//!                                                  ├─▶ own ────its changes──▶ trail
//!                                                  └─▶ gifts ──────────────▶ trail, shared, own, gifts
//! ```
//!
//! What partitions share is changed by what may be done in any order; the rest is each partition's own, in
//! the order of its messages.
use futures::{Stream, StreamExt, stream};
use proptest::{collection::vec, option, prelude::*};
use slipstream::{
    AsyncIterable, BoxError, Cache, Channel, Error, Flow, OnError, Position, Positions, Result, Seekable,
    Seeks, Store, source,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, task::yield_now};

/// What a handler does with a message, one after the other.
#[derive(Debug, Clone, PartialEq)]
enum Act {
    /// To what all partitions share.
    Add(u8, u64),
    Raise(u8, u64),
    Toggle(u8),
    /// To what is the partition's own.
    Insert(u8, u64),
    Remove(u8),
    Clear,
    /// Which is handed on, one less each time, down to 0.
    Give(u8),
    Yield,
}

/// A handler's part of a message.
#[derive(Debug, Clone, Default)]
struct Part {
    acts: Vec<Act>,
    /// After all of them: each time, where the handler then skips, else once.
    fails: bool,
}

#[derive(Debug, Clone)]
struct Message {
    /// A key that it increments under its lock.
    locks: Option<u8>,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Policy {
    Stop,
    Skip,
    Retry,
    RetryThenSkip,
}

impl Policy {
    fn skips(self) -> bool {
        matches!(self, Policy::Skip | Policy::RetryThenSkip)
    }
    fn on_error(self) -> OnError {
        match self {
            Policy::Stop => OnError::stop(),
            Policy::Skip => OnError::skip(),
            Policy::Retry => OnError::retry(2, Duration::ZERO),
            Policy::RetryThenSkip => OnError::retry(1, Duration::ZERO).then_skip(),
        }
    }
}

#[derive(Debug, Clone)]
struct Handler {
    policy: Policy,
    /// Each message comes to it twice, through a pipe.
    is_piped: bool,
}

#[derive(Debug, Clone)]
struct Script {
    handlers: Vec<Handler>,
    /// By partition and offset.
    log: Vec<Vec<Message>>,
    concurrency: usize,
    commit_after: u64,
    /// Each message fills the epoch.
    is_tight: bool,
    /// After so many acts a run is dropped; whether the handler that was at it waits for that.
    drops: Vec<(i64, bool)>,
}

fn script() -> impl Strategy<Value = Script> {
    let key = || 0..3_u8;
    let act = prop_oneof![
        4 => (key(), 1..5_u64).prop_map(|(key, number)| Act::Add(key, number)),
        2 => (key(), 1..9_u64).prop_map(|(key, number)| Act::Raise(key, number)),
        2 => key().prop_map(Act::Toggle),
        3 => (key(), 0..9_u64).prop_map(|(key, number)| Act::Insert(key, number)),
        2 => key().prop_map(Act::Remove),
        1 => Just(Act::Clear),
        2 => (0..6_u8).prop_map(Act::Give),
        3 => Just(Act::Yield),
    ];
    let part = (vec(act, 0..5), prop::bool::weighted(0.15)).prop_map(|(acts, fails)| Part { acts, fails });
    let message =
        (option::weighted(0.2, key()), vec(part, 0..=3)).prop_map(|(locks, parts)| Message { locks, parts });
    let policy = prop::sample::select(vec![Policy::Stop, Policy::Skip, Policy::Retry, Policy::RetryThenSkip]);
    let handler =
        (policy, prop::bool::weighted(0.25)).prop_map(|(policy, is_piped)| Handler { policy, is_piped });
    let handlers = vec(handler, 1..=3);
    let log = vec(vec(message, 0..10), 1..=4);
    let drops = vec((0..80_i64, any::<bool>()), 0..5);
    (handlers, log, 1..=4_usize, 1..8_u64, any::<bool>(), drops).prop_map(
        |(handlers, log, concurrency, commit_after, is_tight, drops)| Script {
            handlers,
            log,
            concurrency,
            commit_after,
            is_tight,
            drops,
        },
    )
}

impl Script {
    fn message(&self, (partition, offset): At) -> Option<&Message> {
        self.log.get(usize::try_from(partition).ok()?)?.get(usize::try_from(offset).ok()?)
    }
    fn part(&self, at: At, handler: usize) -> Part {
        self.message(at).and_then(|message| message.parts.get(handler)).cloned().unwrap_or_default()
    }
    /// How often a run may end with a failure: at most once for each message and handler that stops.
    fn stops(&self) -> usize {
        let parts = self.log.iter().flatten().flat_map(|message| self.handlers.iter().zip(&message.parts));
        parts.filter(|(handler, part)| handler.policy == Policy::Stop && part.fails).count()
    }
}

/// Partition and offset.
type At = (i32, i64);

/// A gift that its handler fails on, and skips.
const NOT_LIKED: u8 = 4;

// The model: one message after the other.

/// What is there, by cache and key, as text.
type State = BTreeMap<String, String>;

#[derive(Debug, Default)]
struct Model {
    shared: BTreeMap<String, u64>,
    seen: BTreeMap<String, u64>,
    locked: BTreeMap<u8, u64>,
    own: BTreeMap<u8, u64>,
    trail: Vec<String>,
}

/// What the handlers of channel and caches are to see.
enum Given {
    Shared(String),
    Own(u8, Option<u64>),
    Gift(u8),
}

impl Model {
    fn act(&mut self, act: &Act, given: &mut Vec<Given>) {
        match *act {
            Act::Add(key, number) => self.share(format!("add {key}"), given, |old| Some(old + number)),
            Act::Raise(key, number) => self.share(format!("raise {key}"), given, |old| Some(old.max(number))),
            Act::Toggle(key) => self.share(format!("toggle {key}"), given, |old| (old == 0).then_some(1)),
            Act::Insert(key, number) => {
                self.own.insert(key, number);
                given.push(Given::Own(key, Some(number)));
            }
            Act::Remove(key) => {
                self.own.remove(&key);
                given.push(Given::Own(key, None));
            }
            Act::Clear => {
                given.extend(std::mem::take(&mut self.own).into_keys().map(|key| Given::Own(key, None)));
            }
            Act::Give(number) => given.push(Given::Gift(number)),
            Act::Yield => {}
        }
    }
    fn share(&mut self, key: String, given: &mut Vec<Given>, change: impl Fn(u64) -> Option<u64>) {
        let old = self.shared.remove(&key).unwrap_or(0);
        self.shared.extend(change(old).map(|new| (key.clone(), new)));
        given.push(Given::Shared(key));
    }
    /// Depth first.
    fn see(&mut self, given: Vec<Given>) {
        for given in given {
            let mut more = Vec::new();
            match given {
                Given::Shared(key) => *self.seen.entry(key).or_insert(0) += 1,
                Given::Own(key, value) => self.trail.push(format!("own {key}: {value:?}")),
                Given::Gift(NOT_LIKED) => {}
                Given::Gift(number) => {
                    self.trail.push(format!("gift {number}"));
                    self.own.insert(number, number.into());
                    more.push(Given::Own(number, Some(number.into())));
                    more.extend(number.checked_sub(1).map(Given::Gift));
                    self.share("gifts".to_owned(), &mut more, |old| Some(old + 1));
                }
            }
            self.see(more);
        }
    }
}

/// What so many messages of each partition leave.
fn model(script: &Script, handled: &[i64]) -> State {
    let (mut model, mut state) = (Model::default(), State::new());
    for (partition, next) in (0..).zip(handled) {
        for at in (0..*next).map(|offset| (partition, offset)) {
            if let Some(key) = script.message(at).and_then(|message| message.locks) {
                *model.locked.entry(key).or_insert(0) += 1;
            }
            for (number, handler) in script.handlers.iter().enumerate() {
                let (part, mut given) = (script.part(at, number), Vec::new());
                if part.fails && handler.policy.skips() {
                    continue;
                }
                for _ in 0..if handler.is_piped { 2 } else { 1 } {
                    part.acts.iter().for_each(|act| model.act(act, &mut given));
                }
                model.see(given);
            }
        }
        add(&mut state, &format!("own {partition}"), std::mem::take(&mut model.own));
        let trail = std::mem::take(&mut model.trail);
        add(&mut state, "trail", (!trail.is_empty()).then_some((partition, trail)));
        add(&mut state, "stands", (*next > 0).then_some((partition, *next)));
    }
    add(&mut state, "shared", model.shared);
    add(&mut state, "seen", model.seen);
    add(&mut state, "locked", model.locked);
    state
}

fn add<K: std::fmt::Debug, V: std::fmt::Debug>(
    state: &mut State,
    cache: &str,
    rows: impl IntoIterator<Item = (K, V)>,
) {
    state.extend(rows.into_iter().map(|(key, value)| (format!("{cache}, {key:?}"), format!("{value:?}"))));
}

// The flow.

#[derive(Debug, Clone)]
struct Log(Arc<Script>);

impl AsyncIterable for Log {
    type Item = At;
    fn open(&self) -> impl Stream<Item = At> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, at)| at)
    }
    fn identity(&self) -> Option<String> {
        Some("log".to_owned())
    }
    fn seeks(&self) -> Option<Seeks<At>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Log {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, At)> + Send + 'static {
        let mut left: Vec<At> = Vec::new();
        for (partition, messages) in (0..).zip(&self.0.log) {
            let offsets = start.next(partition).unwrap_or(0)..messages.len() as i64;
            left.extend(offsets.map(|offset| (partition, offset)));
        }
        left.sort_by_key(|(partition, offset)| (*offset, *partition));
        stream::iter(left).map(|at| (Position::new(at.0, at.1), at))
    }
    fn concurrency(&self) -> usize {
        self.0.concurrency
    }
}

/// What outlives a run.
#[derive(Debug, Clone)]
struct World {
    script: Arc<Script>,
    store: Store,
    stands: Cache<i32, i64>,
    shared: Cache<String, u64>,
    seen: Cache<String, u64>,
    locked: Cache<u8, u64>,
    own: Vec<Cache<u8, u64>>,
    trail: Cache<i32, Vec<String>>,
    /// Which parts have failed that fail once.
    failed: Arc<Mutex<BTreeSet<(At, usize)>>>,
}

impl World {
    fn new(script: Script) -> Result<Self> {
        let store = Store::in_memory()?;
        let own = (0..script.log.len()).map(|partition| store.cache(&format!("own {partition}")));
        Ok(World {
            own: own.collect::<Result<_, _>>()?,
            script: Arc::new(script),
            stands: store.cache("stands")?,
            shared: store.cache("shared")?,
            seen: store.cache("seen")?,
            locked: store.cache("locked")?,
            trail: store.cache("trail")?,
            store,
            failed: Arc::default(),
        })
    }
    fn own(&self, partition: i32) -> &Cache<u8, u64> {
        &self.own[partition as usize]
    }
    fn trail(&self, partition: i32, line: String) -> Result<()> {
        let mut trail = self.trail.get(&partition)?.unwrap_or_default();
        trail.push(line);
        Ok(self.trail.insert(&partition, trail)?)
    }
    /// Where the state says that each partition stands.
    fn handled(&self) -> Result<Vec<i64>> {
        let partitions = 0..self.own.len() as i32;
        partitions.map(|partition| Ok(self.stands.get(&partition)?.unwrap_or(0))).collect()
    }
    fn state(&self) -> Result<State> {
        let mut state = State::new();
        for (partition, own) in self.own.iter().enumerate() {
            add(&mut state, &format!("own {partition}"), own.iter().collect::<Result<Vec<_>, _>>()?);
        }
        add(&mut state, "trail", self.trail.iter().collect::<Result<Vec<_>, _>>()?);
        add(&mut state, "stands", self.stands.iter().collect::<Result<Vec<_>, _>>()?);
        add(&mut state, "shared", self.shared.iter().collect::<Result<Vec<_>, _>>()?);
        add(&mut state, "seen", self.seen.iter().collect::<Result<Vec<_>, _>>()?);
        add(&mut state, "locked", self.locked.iter().collect::<Result<Vec<_>, _>>()?);
        Ok(state)
    }
}

/// One run.
#[derive(Debug, Clone)]
struct Run {
    world: World,
    gifts: Channel<(i32, u8)>,
    drop: Arc<DropAt>,
}

/// When it is dropped.
#[derive(Debug)]
struct DropAt {
    acts_left: AtomicI64,
    waits: bool,
    now: Notify,
}

impl Run {
    async fn tick(&self) {
        if self.drop.acts_left.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.drop.now.notify_one();
            if self.drop.waits {
                std::future::pending::<()>().await;
            }
        }
    }

    /// The first handler: the position has to be that of the state.
    async fn stand(self, at: At) -> Result<()> {
        let world = &self.world;
        let stands = world.stands.get(&at.0)?.unwrap_or(0);
        if stands != at.1 {
            return Err(
                format!("the state of partition {} stands at {stands}, its log at {}", at.0, at.1).into()
            );
        }
        world.stands.insert(&at.0, at.1 + 1)?;
        if let Some(key) = world.script.message(at).and_then(|message| message.locks) {
            let _lock = world.locked.lock(&key).await?;
            let count = world.locked.get(&key)?.unwrap_or(0);
            yield_now().await;
            world.locked.insert(&key, count + 1)?;
        }
        Ok(())
    }

    async fn act(&self, partition: i32, act: &Act) -> Result<()> {
        let World { shared, .. } = &self.world;
        let own = self.world.own(partition);
        match *act {
            Act::Add(key, number) => {
                shared.update(&format!("add {key}"), |old| old.unwrap_or(0) + number)?;
            }
            Act::Raise(key, number) => {
                shared.update(&format!("raise {key}"), |old| old.unwrap_or(0).max(number))?;
            }
            Act::Toggle(key) => {
                shared.update(&format!("toggle {key}"), |old| old.is_none().then_some(1))?;
            }
            Act::Insert(key, number) => own.insert(&key, number)?,
            Act::Remove(key) => own.remove(&key)?,
            Act::Clear => own.clear()?,
            Act::Give(number) => self.gifts.send((partition, number)).await?,
            Act::Yield => yield_now().await,
        }
        Ok(())
    }

    async fn part(self, at: At, handler: usize) -> Result<()> {
        let part = self.world.script.part(at, handler);
        for act in &part.acts {
            self.act(at.0, act).await?;
            self.tick().await;
        }
        let skips = self.world.script.handlers[handler].policy.skips();
        if part.fails && (skips || self.world.failed.lock().unwrap().insert((at, handler))) {
            return Err(SCRIPTED.into());
        }
        Ok(())
    }

    async fn hear(self, (partition, number): (i32, u8)) -> Result<()> {
        let World { shared, .. } = &self.world;
        self.world.trail(partition, format!("gift {number}"))?;
        self.world.own(partition).insert(&number, u64::from(number))?;
        if let Some(less) = number.checked_sub(1) {
            self.gifts.send((partition, less)).await?;
        }
        shared.update("gifts", |old| old.unwrap_or(0) + 1)?;
        if number % 2 == 0 {
            yield_now().await;
        }
        self.tick().await;
        if number == NOT_LIKED { Err(SCRIPTED.into()) } else { Ok(()) }
    }

    fn flow(&self) -> Flow<()> {
        let script = &self.world.script;
        let log = Log(Arc::clone(script));
        let run = self.clone();
        let mut flow = Flow::new().with(source(&log).handle_async(move |at: At| {
            let run = run.clone();
            async move { run.stand(at).await.map(|()| None::<()>) }
        }));
        for (number, Handler { policy, is_piped }) in script.handlers.iter().enumerate() {
            let run = self.clone();
            let part = move |at: At| {
                let run = run.clone();
                async move { run.part(at, number).await.map(|()| None::<()>) }
            };
            flow = match is_piped {
                false => flow.with(source(&log).handle_async(part).on_error(policy.on_error())),
                true => {
                    let twice = source(&log).pipe(|items| items.flat_map(|at| stream::iter([at, at])));
                    flow.with(twice.handle_async(part).on_error(policy.on_error()))
                }
            };
        }
        let run = self.clone();
        let hear = source(&self.gifts).handle_async(move |gift| {
            let run = run.clone();
            async move { run.hear(gift).await.map(|()| None::<()>) }
        });
        flow = flow.with(hear.on_error(OnError::skip()));
        let seen = self.world.seen.clone();
        flow = flow.with(source(&self.world.shared).handle(move |(key, _): (String, Option<u64>)| {
            seen.update(&key, |count| count.unwrap_or(0) + 1).map(|_| None::<()>)
        }));
        for (partition, own) in (0..).zip(&self.world.own) {
            let world = self.world.clone();
            flow = flow.with(source(own).handle(move |(key, value): (u8, Option<u64>)| {
                world.trail(partition, format!("own {key}: {value:?}")).map(|()| None::<()>)
            }));
        }
        let flow = flow.store(&self.world.store).commit_every(Duration::from_secs(3600));
        let flow = flow.commit_after(script.commit_after);
        if script.is_tight { flow.epoch_bytes(1) } else { flow }
    }
}

const SCRIPTED: &str = "as the script says";

fn is_scripted(error: &BoxError) -> bool {
    matches!(error.downcast_ref(), Some(Error::Handler { cause, .. }) if cause.to_string() == SCRIPTED)
}

/// Runs the flow until it comes to its end, and looks at the state after each run.
async fn runs(script: Script) -> Result<(), BoxError> {
    let (most, mut drops) = (script.drops.len() + script.stops() + 1, script.drops.clone().into_iter());
    let world = World::new(script)?;
    for _ in 0..most {
        let (acts, waits) = drops.next().unwrap_or((i64::MAX, false));
        let drop = Arc::new(DropAt { acts_left: AtomicI64::new(acts), waits, now: Notify::new() });
        let run = Run { world: world.clone(), gifts: Channel::new(), drop: Arc::clone(&drop) };
        let running = tokio::time::timeout(Duration::from_secs(30), run.flow().run(()));
        let ended = tokio::select! {
            biased;
            () = drop.now.notified() => None,
            ended = running => Some(ended.map_err(|_| "it hangs")?),
        };
        let handled = world.handled()?;
        let (state, model) = (world.state()?, model(&world.script, &handled));
        if state != model {
            return Err(format!("{ended:?} at {handled:?}:\n{state:#?}\nin place of\n{model:#?}").into());
        }
        match ended {
            Some(Ok(())) => {
                let all: Vec<_> = world.script.log.iter().map(|messages| messages.len() as i64).collect();
                return if handled == all { Ok(()) } else { Err(format!("ended at {handled:?}").into()) };
            }
            Some(Err(error)) if !is_scripted(&error) => return Err(error),
            _ => {}
        }
    }
    Err(format!("it did not come to its end in {most} runs").into())
}

fn check(mut runtime: tokio::runtime::Builder, script: Script) -> Result<(), TestCaseError> {
    let runtime = runtime.enable_time().build().unwrap();
    runtime.block_on(runs(script)).map_err(|error| TestCaseError::fail(error.to_string()))
}

/// So many cases, unless the environment asks for another number.
fn cases(usual: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(usual),
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn any_flow_that_is_dropped_and_run_again_leaves_what_its_messages_leave_in_order(script in script()) {
        check(tokio::runtime::Builder::new_current_thread(), script)?;
    }

    #[test]
    fn so_it_does_on_several_threads(script in script()) {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        threads.worker_threads(3);
        check(threads, script)?;
    }
}
