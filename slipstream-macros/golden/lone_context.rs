#[handle(app.ticks)]
async fn on_tick(app: &App) -> Result<()> {
    app.refresh().await
}
