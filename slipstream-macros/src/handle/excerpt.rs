//! An expression as a short text, for errors that name a source when a flow starts.
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::ToTokens;

/// Longer than this, and what stands in brackets is left out.
const LONG: usize = 40;

/// The expression on one line, close to how a user writes it: `app.weather`, `iter(…)`.
pub(super) fn of(expr: impl ToTokens) -> String {
    let tokens = expr.into_token_stream();
    let whole = join(tokens.clone(), true);
    if whole.chars().count() <= LONG { whole } else { join(tokens, false) }
}

/// A token stream prints itself as `app . weather`, and a span tells no more than its first token on stable.
fn join(tokens: TokenStream, in_brackets: bool) -> String {
    let mut text = String::new();
    // Whether what comes next needs a space if it is a word.
    let mut after_word = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => (" { ", " }"),
                    Delimiter::None => ("", ""),
                };
                let within = match group.stream() {
                    empty if empty.is_empty() => String::new(),
                    _ if !in_brackets && group.delimiter() != Delimiter::None => "…".to_owned(),
                    stream => join(stream, in_brackets),
                };
                let open = if text.is_empty() || text.ends_with(' ') { open.trim_start() } else { open };
                text.extend([open, within.trim(), close]);
                after_word = group.delimiter() == Delimiter::Brace;
            }
            TokenTree::Punct(punct) => {
                let in_path = text.ends_with(':') || punct.spacing() == Spacing::Joint;
                text.push(punct.as_char());
                if matches!(punct.as_char(), ',' | ';') || (punct.as_char() == ':' && !in_path) {
                    text.push(' ');
                }
                after_word = false;
            }
            word => {
                if after_word {
                    text.push(' ');
                }
                text.push_str(&word.to_string());
                after_word = true;
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    fn excerpt(expr: &str) -> String {
        super::of(expr.parse::<proc_macro2::TokenStream>().unwrap())
    }

    #[test]
    fn a_short_expression_reads_as_it_was_written() {
        for expr in [
            "messages",
            "app.weather",
            "&app.inner.topics[0]",
            "*app.weather()",
            "app.topic(\"weather\")?",
            "iter(vec![1, 2, 3])",
            "Named::<u8>::new('x', -1)",
            "Named { name: 1 }",
        ] {
            assert_eq!(excerpt(expr), expr);
        }
    }

    #[test]
    fn a_long_expression_leaves_out_what_stands_in_brackets() {
        assert_eq!(excerpt("iter(vec![10, 20, 30, 40, 50, 60, 70, 80]).paced()"), "iter(…).paced()");
    }
}
