//! The builder: the same routes from closures, beside handlers of the attribute.
use crate::{Log, typed};
use futures::{Stream, StreamExt, stream};
use slipstream::{Cache, Error, Flow, Result, flow, handle, iter, one, source};
use std::{sync::Arc, time::Duration};

fn words() -> impl Stream<Item = &'static str> {
    stream::iter(["one", "three"])
}

struct App {
    lengths: Cache<String, usize>,
}

#[handle(words, sink = app.lengths)]
fn shout(app: &App, word: &'static str) -> (String, usize) {
    (word.to_uppercase(), 0)
}

struct Length(usize);

#[tokio::test]
async fn closures_join_the_routes_of_handlers() -> Result<()> {
    let app = Arc::new(App { lengths: Cache::in_memory()? });
    let (lengths, log) = (app.lengths.clone(), Log::default());
    let seen = log.clone();
    let late = log.clone();
    flow![shout]
        .with(source(&words).handle(|word| (word.to_owned(), word.len())).sink(&app.lengths))
        .with(source(&words).handle(|word| one(Length(word.len()))).sink_with(|length| assert!(length.0 > 2)))
        .with(
            source(&words)
                .handle(|word| word.parse::<u8>().ok())
                .sink_with(|n| assert!(*n > 9, "not a number")),
        )
        .with(
            source(&words)
                .handle_async(move |word| {
                    let lengths = lengths.clone();
                    async move {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        lengths.insert(&format!("{word}!"), 1)?;
                        Ok::<_, slipstream::BoxError>(vec![word])
                    }
                })
                .sink_async(move |word| {
                    let log = late.clone();
                    async move { log.add(word) }
                }),
        )
        .with(source(&words).pipe(|words| words.map(str::len)).pipe(StreamExt::enumerate).handle(
            move |pair| {
                seen.add(format!("{pair:?}"));
            },
        ))
        .run(Arc::clone(&app))
        .await?;
    let keys = app.lengths.keys().collect::<std::result::Result<Vec<_>, _>>()?;
    assert_eq!(keys, ["ONE", "THREE", "one", "one!", "three", "three!"]);
    assert_eq!(log.take(), ["(0, 3)", "one", "(1, 5)", "three"]);
    Ok(())
}

#[tokio::test]
async fn a_closure_reads_several_sources_and_has_a_name_in_errors() -> Result<()> {
    let log = Log::default();
    let (odd, even) = (iter([1, 3]), iter([2, 4]));
    let seen = log.clone();
    Flow::new().with(source(&odd).and(&even).handle(move |n| seen.add(n))).run(()).await?;
    assert_eq!(log.sorted(), ["1", "2", "3", "4"]);

    let failing = source(&odd).handle(|_| Err::<(), _>("no")).named("refuses");
    let error = typed(Flow::new().with(failing).run(()).await.unwrap_err());
    assert!(matches!(error, Error::Handler { handler: "refuses", .. }));
    Ok(())
}
