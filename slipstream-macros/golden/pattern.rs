#[handle(app.weather, sink = app.sky)]
fn handle_weather(app: &App, Message { key, value, .. }: Message<Origin, Weather>) -> (Origin, Weather) {
    (key, value)
}
