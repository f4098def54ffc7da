#[handle(app.lines, sink = app.counts)]
async fn split_words(app: &App, line: String, out: &mut Emitter<(String, u64)>) -> Result<()> {
    for word in line.split_whitespace() {
        let count = app.counts.get(word)?.unwrap_or_default();
        out.emit((word.to_owned(), count + 1));
    }
    Ok(())
}
