#[handle(messages, sink = print)]
fn handle_message(emoji: char) -> String {
    format!("Hello {emoji}!")
}
