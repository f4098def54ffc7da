//! The builder: what `#[handle]` does, for closures and for code that decides at run time. The
//! source comes first, so that the closure's parameter has a type; the return shapes are a closed
//! set, since no macro sees the concrete type here.
use crate::{
    AsyncIterable, BoxError, Emitter, FromItem, Handler, Items, OnError, Routes, Sink,
    once::{Never, Refuted},
    opaque::opaque_debug,
    output::{Itself, Nothing, Output},
    pipe::{Pipes, chain, pipe},
    route::{Mountable, Reading, Taking, handled},
    sink::{SinkAsync, Sinks, Taken, sink_async},
};
use futures::Stream;
use std::{
    future::{Future, ready},
    marker::PhantomData,
};

/// Begins a handler made of a closure.
///
/// ```
/// use slipstream_core::{Flow, iter, print, source};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> slipstream_core::Result<()> {
/// let numbers = iter(1..=3);
/// let squares = source(&numbers).handle(|n| Some(n * n)).sink(&print);
/// Flow::new().with(squares).run(()).await
/// # }
/// ```
///
/// The source is cloned; a clone is known as the same source by its
/// [`identity`](AsyncIterable::identity), or, where its type has no state (a function), by that.
pub fn source<S: AsyncIterable + Clone + Send>(source: &S) -> Reads<((), S), S::Item, Direct> {
    Reads { sources: ((), source.clone()), way: Direct, item: PhantomData }
}

/// Sources of `I`, and the way to what the closure takes; the closure is still to be named.
#[must_use = "a source does nothing without a handler: `.handle(…)`"]
pub struct Reads<S, I, W> {
    sources: S,
    way: W,
    item: PhantomData<fn() -> I>,
}

impl<S, I: Clone + Send + 'static, W: PipedWay<I>> Reads<S, I, W> {
    /// The closure reads what `function` makes of the stream; see [`Items`].
    pub fn pipe<F, P>(self, function: F) -> Reads<S, I, Pipes<I, P::Item>>
    where
        F: Fn(Items<W::Item>) -> P + Send + Sync + 'static,
        P: Stream<Item: Clone + Send + 'static> + Send + 'static,
    {
        Reads { sources: self.sources, way: self.way.then(pipe(function)), item: PhantomData }
    }
    /// The closure takes an `M`, as a parameter under `#[handle]` may be one: the value of a [`Message`](crate::Message), what
    /// is in an `Ok`, what a topic's message is decoded to.
    ///
    /// ```
    /// use slipstream_core::{Flow, Message, iter, source};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> slipstream_core::Result<()> {
    /// let prices = iter([Message::new("JFK", 72.5), Message::new("LGA", 71.0)]);
    /// let told = source(&prices).takes::<f64>().handle(|price| println!("{price}"));
    /// Flow::new().with(told).run(()).await
    /// # }
    /// ```
    pub fn takes<M: FromItem<W::Item> + Send + 'static>(self) -> Reads<S, I, As<W, M>> {
        Reads { sources: self.sources, way: As(self.way, PhantomData), item: PhantomData }
    }
}

impl<S, I: Clone + Send + 'static, W: Way<I>> Reads<S, I, W> {
    /// One more source of the same items.
    pub fn and<N>(self, source: &N) -> Reads<(S, N), I, W>
    where
        N: AsyncIterable<Item = I> + Clone + Send,
    {
        Reads { sources: (self.sources, source.clone()), way: self.way, item: PhantomData }
    }
    /// Handles each item.
    pub fn handle<F, O>(self, handler: F) -> Handling<S, I, W, Closure<F, W::Item>, O>
    where
        F: Fn(W::Item) -> O + Send + Sync + 'static,
        O: Output + Send + 'static,
    {
        self.by(O::to(Closure(handler, PhantomData)))
    }
    /// Handles each item, with work that waits.
    pub fn handle_async<F, Fut, O>(self, handler: F) -> Handling<S, I, W, ClosureAsync<F, W::Item>, O>
    where
        F: Fn(W::Item) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = O> + Send + 'static,
        O: Output + Send + 'static,
    {
        self.by(O::to(ClosureAsync(handler, PhantomData)))
    }
    fn by<H, T>(self, handler: H) -> Handles<S, I, W, H, T> {
        let Reads { sources, way, .. } = self;
        let (sinks, on_error) = ((), OnError::stop());
        Handles { name: "closure", sources, way, handler, sinks, on_error, types: PhantomData }
    }
}

/// A closure with its sources and sinks: what [`Flow::with`](crate::Flow::with) takes.
#[must_use = "mount it with `Flow::with`"]
pub struct Handles<S, I, W, H, T, K = ()> {
    name: &'static str,
    sources: S,
    way: W,
    handler: H,
    sinks: K,
    on_error: OnError,
    types: PhantomData<fn(I) -> T>,
}

/// With a closure `H` that returns an `O`.
pub type Handling<S, I, W, H, O> = Handles<S, I, W, <O as Output>::To<H>, <O as Output>::Item>;

/// With one more sink, `N`.
pub type AndSink<S, I, W, H, T, K, N> = Handles<S, I, W, H, T, (K, N)>;

impl<S, I, W, H, T, K> Handles<S, I, W, H, T, K> {
    /// Names the handler, for errors; "closure" without it.
    pub fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }
    /// What is done when the closure fails; without it the flow stops.
    pub fn on_error(mut self, policy: OnError) -> Self {
        self.on_error = policy;
        self
    }
    /// One more sink, after those before.
    pub fn sink<N: Takes<T, X>, X>(self, sink: &N) -> AndSink<S, I, W, H, T, K, N::To<N>> {
        self.and(N::to(sink.clone()))
    }
    /// A closure as one more sink; a reference to one, with its parameter's type written, does as
    /// a [`sink`](Handles::sink) too.
    pub fn sink_with<R: Taken, F: Fn(&T) -> R>(self, sink: F) -> AndSink<S, I, W, H, T, K, R::To<F>> {
        self.and(R::to(sink))
    }
    /// An async closure as one more sink.
    pub fn sink_async<R, Fut, F>(self, take: F) -> AndSink<S, I, W, H, T, K, R::To<SinkAsync<F>>>
    where
        R: Taken,
        Fut: Future<Output = R>,
        F: Fn(T) -> Fut,
    {
        self.and(R::to(sink_async(take)))
    }
    fn and<N>(self, sink: N) -> AndSink<S, I, W, H, T, K, N> {
        let Handles { name, sources, way, handler, sinks, on_error, types } = self;
        Handles { name, sources, way, handler, sinks: (sinks, sink), on_error, types }
    }
}

/// A [`Sink`], asked for once (see `once.rs`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a sink for `{T}`",
    label = "cannot take `{T}`",
    note = "a `Cache<K, V>` and a `Topic<K, V>` take pairs: return `(key, value)`, with the key `()` where there is none; `print` takes what is `Debug`",
    note = "a function `fn(&T)` is a sink if it returns `()` or `Result<()>`; a closure goes to `sink_with` or `sink_async`"
)]
pub trait Takes<T, X>: Sink<T> {
    /// `S` itself.
    type To<S>;
    /// Itself.
    fn to<S>(step: S) -> Self::To<S>;
}

impl<T, N: Sink<T>> Takes<T, ()> for N {
    type To<S> = S;
    fn to<S>(step: S) -> S {
        step
    }
}

impl<T, N: Sink<T> + Refuted> Takes<T, Never> for N {
    type To<S> = S;
    fn to<S>(step: S) -> S {
        step
    }
}

/// What [`Flow::with`](crate::Flow::with) takes.
pub trait Attach<C>: Send {
    /// Joins the routes of its sources.
    ///
    /// # Errors
    /// When a source has the identity of another one whose items have another type.
    fn attach(self, routes: &mut Routes<'_, C>) -> Result<(), BoxError>;
}

impl<C, S, I, W, H, T, K> Attach<C> for Handles<S, I, W, H, T, K>
where
    C: Send + Sync + 'static,
    S: Sources<I>,
    I: Clone + Send + Sync + 'static,
    W: Way<I>,
    H: Handler<C, Item = W::Item, Emit = Nothing, Output: Output<Item = T>>,
    T: Send + Sync + 'static,
    K: Sinks<T>,
{
    fn attach(self, routes: &mut Routes<'_, C>) -> Result<(), BoxError> {
        let handler = handled(self.name, self.handler).outputs::<_, ()>(Itself);
        let handler = handler.on_error(self.on_error).with(self.sinks);
        self.sources.mount(routes, &self.way, &handler)
    }
}

/// The sources of one closure: `()`, or those before and one more.
pub trait Sources<I>: Send {
    /// Mounts the handler on each.
    ///
    /// # Errors
    /// As [`Attach::attach`].
    fn mount<C, W>(
        self,
        routes: &mut Routes<'_, C>,
        way: &W,
        handler: &Mountable<C, W::Item>,
    ) -> Result<(), BoxError>
    where
        C: Send + Sync + 'static,
        W: Way<I>;
}

impl<I> Sources<I> for () {
    fn mount<C, W>(self, _: &mut Routes<'_, C>, _: &W, _: &Mountable<C, W::Item>) -> Result<(), BoxError>
    where
        C: Send + Sync + 'static,
        W: Way<I>,
    {
        Ok(())
    }
}

impl<I, Before, S> Sources<I> for (Before, S)
where
    I: Clone + Send + Sync + 'static,
    Before: Sources<I>,
    S: AsyncIterable<Item = I> + Send,
{
    fn mount<C, W>(
        self,
        routes: &mut Routes<'_, C>,
        way: &W,
        handler: &Mountable<C, W::Item>,
    ) -> Result<(), BoxError>
    where
        C: Send + Sync + 'static,
        W: Way<I>,
    {
        let (before, source) = self;
        before.mount(routes, way, handler)?;
        let origin = source.identity().unwrap_or_else(|| std::any::type_name::<S>().to_owned());
        way.take(routes.made::<_, ()>(source, &origin)).mount(handler)
    }
}

/// From a source's item to what the closure takes.
pub trait Way<I>: Send + 'static {
    /// What the closure takes.
    type Item: Send + 'static;
    /// Goes it.
    fn take<'r, C: Send + Sync + 'static>(&self, source: Reading<'r, C, I>) -> Taking<'r, C, Self::Item>
    where
        I: Clone + Send + Sync + 'static;
}

/// A way that may go on: through a pipe, or to what an item is taken as.
pub trait PipedWay<I>: Way<I> {
    /// The way with one more pipe at its end.
    fn then<J: Clone + Send + 'static>(self, pipe: Pipes<Self::Item, J>) -> Pipes<I, J>;
    /// Goes it, to what becomes an `M`.
    fn take_as<'r, C: Send + Sync + 'static, M>(&self, source: Reading<'r, C, I>) -> Taking<'r, C, M>
    where
        I: Clone + Send + Sync + 'static,
        M: FromItem<Self::Item> + Send + 'static;
}

/// The item as it is.
#[derive(Debug)]
pub struct Direct;

impl<I: Clone + Send + 'static> PipedWay<I> for Direct {
    fn then<J: Clone + Send + 'static>(self, pipe: Pipes<I, J>) -> Pipes<I, J> {
        pipe
    }
    fn take_as<'r, C: Send + Sync + 'static, M>(&self, source: Reading<'r, C, I>) -> Taking<'r, C, M>
    where
        I: Clone + Send + Sync + 'static,
        M: FromItem<I> + Send + 'static,
    {
        source.takes()
    }
}

impl<I: Clone + Send + 'static> Way<I> for Direct {
    type Item = I;
    fn take<'r, C: Send + Sync + 'static>(&self, source: Reading<'r, C, I>) -> Taking<'r, C, I>
    where
        I: Clone + Send + Sync + 'static,
    {
        source.takes()
    }
}

impl<I: Send + 'static, J: Clone + Send + 'static> PipedWay<I> for Pipes<I, J> {
    fn then<N: Clone + Send + 'static>(self, pipe: Pipes<J, N>) -> Pipes<I, N> {
        chain(self, pipe)
    }
    fn take_as<'r, C: Send + Sync + 'static, M>(&self, source: Reading<'r, C, I>) -> Taking<'r, C, M>
    where
        I: Clone + Send + Sync + 'static,
        M: FromItem<J> + Send + 'static,
    {
        source.through(self.clone()).takes()
    }
}

impl<I: Send + 'static, J: Clone + Send + 'static> Way<I> for Pipes<I, J> {
    type Item = J;
    fn take<'r, C: Send + Sync + 'static>(&self, source: Reading<'r, C, I>) -> Taking<'r, C, J>
    where
        I: Clone + Send + Sync + 'static,
    {
        source.through(self.clone()).takes()
    }
}

/// What a way leads to, taken as an `M`.
pub struct As<W, M>(W, PhantomData<fn() -> M>);

impl<I, W: PipedWay<I>, M: FromItem<W::Item> + Send + 'static> Way<I> for As<W, M> {
    type Item = M;
    fn take<'r, C: Send + Sync + 'static>(&self, source: Reading<'r, C, I>) -> Taking<'r, C, M>
    where
        I: Clone + Send + Sync + 'static,
    {
        self.0.take_as(source)
    }
}

/// A closure as a handler of `M`.
pub struct Closure<F, M>(F, PhantomData<fn(M)>);

impl<C, M, O, F> Handler<C> for Closure<F, M>
where
    C: Sync,
    M: Send + 'static,
    O: Send + 'static,
    F: Fn(M) -> O + Send + Sync + 'static,
{
    type Item = M;
    type Emit = Nothing;
    type Output = O;
    const WAITS: bool = false;
    #[inline]
    fn call<'a>(&'a self, _: &'a C, item: M, _: Emitter<Nothing>) -> impl Future<Output = O> + Send + 'a {
        ready(self.0(item))
    }
}

/// A closure that returns a future, as a handler of `M`.
pub struct ClosureAsync<F, M>(F, PhantomData<fn(M)>);

impl<C, M, Fut, F> Handler<C> for ClosureAsync<F, M>
where
    C: Sync,
    M: Send + 'static,
    Fut: Future<Output: Send> + Send + 'static,
    F: Fn(M) -> Fut + Send + Sync + 'static,
{
    type Item = M;
    type Emit = Nothing;
    type Output = Fut::Output;
    const WAITS: bool = true;
    #[inline]
    fn call<'a>(
        &'a self,
        _: &'a C,
        item: M,
        _: Emitter<Nothing>,
    ) -> impl Future<Output = Fut::Output> + Send + 'a {
        self.0(item)
    }
}

opaque_debug! { Reads<S, I, W>; As<W, M>; Handles<S, I, W, H, T, K>; Closure<F, M>; ClosureAsync<F, M>; }
