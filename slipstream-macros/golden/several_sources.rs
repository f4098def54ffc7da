#[handle(app.jfk, &app.list[1], *app.lga(), iter(vec![1, 2]), messages)]
fn handle_number(app: &App, n: u8) {
    app.see(n);
}
