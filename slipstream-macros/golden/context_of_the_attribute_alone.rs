#[handle(app.weather, sink = app.sky)]
async fn handle_weather(app: &App, weather: Weather) -> (Timestamp, Weather) {
    (weather.time, weather)
}
