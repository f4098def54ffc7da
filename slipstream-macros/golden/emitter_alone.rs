#[handle(ticks, sink = print)]
fn twice(out: &mut Emitter<u8>) {
    out.emit(1);
    out.emit(2);
}
