//! The clusters that an example is told to use: for each a Kafka broker, by `--bootstrap-servers HOST:PORT`.
use slipstream::{Kafka, Result};

/// `N` clusters, in the order given; one that is given alone stands for all. `None` where none is given.
pub(crate) fn given<const N: usize>() -> Result<Option<[Kafka; N]>> {
    let mut clusters = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        match args.next() {
            Some(servers) if name == "--bootstrap-servers" => {
                clusters.push(Kafka::new([("bootstrap.servers", servers)])?);
            }
            _ => return Err(usage(N)),
        }
    }
    match <[Kafka; N]>::try_from(clusters) {
        Ok(clusters) => Ok(Some(clusters)),
        Err(clusters) => match clusters.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(std::array::from_fn(|_| one.clone()))),
            _ => Err(usage(N)),
        },
    }
}

fn usage(most: usize) -> slipstream::BoxError {
    let times = if most == 1 { String::new() } else { format!(", up to {most} times") };
    format!("usage: [--bootstrap-servers HOST:PORT]{times}").into()
}
