#[handle(numbers, sink = [
    |n| println!("{n}"),
    |n| async move { send(n).await },
    async |n| send(n).await,
    |n| {
        let doubled = n * 2;
        async move { send(doubled).await }
    },
    {
        let sent = Counter::new();
        move |n| sent.add(*n)
    },
    print,
])]
fn double(n: u64) -> u64 {
    n * 2
}
