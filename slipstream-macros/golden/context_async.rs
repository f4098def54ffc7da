#[handle(app.activity, sink = [app.enriched, print])]
pub async fn handle_activity(app: &App, activity: Activity) -> Result<(Name, Sky)> {
    let weather = app.sky.as_of(&activity.time)?;
    Ok((activity.name, weather.map_or(Sky::Unknown, |(_, weather)| weather.sky)))
}
