//! A handler that takes another item than its source gives, and returns it too.
use slipstream::{Iter, Result, flow, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

#[derive(Debug, Clone)]
struct Activity {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = print)]
async fn handler(app: &App, activity: Activity) -> Result<(i64, Activity)> {
    Ok((activity.time, activity))
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
