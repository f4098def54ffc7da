#[handle(app.prices, pipe = [pairwise, |pairs| pairs.filter(rising)], sink = print)]
fn rise(app: &App, (before, now): (f64, f64)) -> f64 {
    now - before
}
