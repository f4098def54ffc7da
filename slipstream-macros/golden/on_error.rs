#[handle(app.orders, on_error = OnError::retry(3, app.patience), sink = app.bills)]
fn bill(app: &App, order: Order) -> Result<Bill> {
    order.bill()
}
