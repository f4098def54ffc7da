#[handle(app.topic("weather")?, sink = app.cache("sky")?)]
fn handle_weather(app: &App, weather: Weather) -> (Timestamp, Weather) {
    (weather.time, weather)
}
