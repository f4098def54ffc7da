#[handle(app.weather, sinks = [app.sky, print], crate = streams)]
pub(crate) async fn handle_weather(app: &App, weather: Weather, extra: u8) -> (Timestamp, Weather) {
    (weather.time, weather)
}
