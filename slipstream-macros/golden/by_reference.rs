#[handle(app.numbers)]
async fn count(app: &App, n: &u64) {
    app.add(*n).await;
}
