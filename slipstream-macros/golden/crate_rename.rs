#[handle(numbers, sink = |n| async move { send(n).await }, crate = my::streams)]
async fn double(n: u64, out: &mut Emitter<u64>) {
    out.emit(n * 2);
}
