//! The attribute's grammar: sources, then `name = value` for the rest.
use super::{Mistakes, mention, private::Private};
use proc_macro2::{Span, TokenStream};
use syn::{
    Error, Expr, Ident, Path, Result, Token, bracketed,
    ext::IdentExt,
    parse::{ParseStream, Parser},
    punctuated::Punctuated,
    token::Bracket,
};

/// The names that take a value.
const NAMES: [&str; 4] = ["sink", "pipe", "on_error", "crate"];

const USAGE: &str =
    "usage: `#[handle(source, …, pipe = [f, g], sink = [s, t], on_error = policy, crate = path)]`";

/// What an attribute says.
#[derive(Default)]
pub(super) struct Arguments {
    pub(super) sources: Vec<Expr>,
    pub(super) pipes: Vec<Expr>,
    pub(super) sinks: Vec<Expr>,
    pub(super) on_error: Option<Expr>,
    /// The values of arguments that are not known.
    meant: Vec<Expr>,
    pub(super) private: Private,
}

impl Arguments {
    /// What can be read of `attribute`; what cannot is a mistake.
    pub(super) fn parse(attribute: TokenStream, mistakes: &mut Mistakes) -> Self {
        let mut arguments = Arguments::default();
        let read = |input: ParseStream<'_>| arguments.read(input, mistakes);
        match read.parse2(attribute) {
            Err(error) => mistakes.add(Error::new(error.span(), format!("{error}\n{USAGE}"))),
            Ok(()) if arguments.sources.is_empty() => {
                mistakes.add(Error::new(
                    Span::call_site(),
                    format!("`#[handle]` needs a source to read\n{USAGE}"),
                ));
            }
            Ok(()) => {}
        }
        arguments
    }

    fn read(&mut self, input: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<()> {
        let mut given: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            if input.peek(Ident::peek_any) && input.peek2(Token![=]) && !input.peek2(Token![==]) {
                let name = input.call(Ident::parse_any)?;
                input.parse::<Token![=]>()?;
                if given.contains(&name) {
                    mistakes.at(&name, repeated(&name));
                }
                match name.to_string().as_str() {
                    "sink" => self.sinks.extend(one_or_list(input)?),
                    "pipe" => self.pipes.extend(one_or_list(input)?),
                    "on_error" => self.on_error = Some(input.parse()?),
                    "crate" => self.private = Private::of(Path::parse_mod_style(input)?),
                    unknown => {
                        mistakes.at(&name, self::unknown(unknown));
                        let values = one_or_list(input)?;
                        // What was meant as a source is not missing as well.
                        let meant = if is_source(unknown) { &mut self.sources } else { &mut self.meant };
                        meant.extend(values);
                    }
                }
                given.push(name);
            } else {
                self.sources.push(input.parse()?);
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    }

    /// Whether an expression uses the variable.
    pub(super) fn mention(&self, variable: &Ident) -> bool {
        self.expressions().any(|expr| mention::uses(expr, variable))
    }

    /// Whether an expression takes a field of it, as it can of nothing but a variable: a function may have its name.
    pub(super) fn take_field_of(&self, variable: &Ident) -> bool {
        self.expressions().any(|expr| mention::takes_field_of(expr, variable))
    }

    pub(super) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let lists = [&self.sources, &self.pipes, &self.sinks, &self.meant].into_iter().flatten();
        lists.chain(&self.on_error)
    }
}

/// `s` or `[s, t]`.
fn one_or_list(input: ParseStream<'_>) -> Result<Vec<Expr>> {
    if input.peek(Bracket) {
        let list;
        bracketed!(list in input);
        Ok(Punctuated::<Expr, Token![,]>::parse_terminated(&list)?.into_iter().collect())
    } else {
        Ok(vec![input.parse()?])
    }
}

fn repeated(name: &Ident) -> String {
    match name == "crate" || name == "on_error" {
        true => format!("`{name}` is given twice"),
        false => format!("`{name}` is given twice: write one list, `{name} = [a, b]`"),
    }
}

fn unknown(name: &str) -> String {
    let remedy = if is_source(name) {
        ": sources have no name, they come first".to_owned()
    } else if let Some(known) = nearest(name) {
        format!(": did you mean `{known}`?")
    } else {
        String::new()
    };
    format!("unknown argument `{name}`{remedy}\n{USAGE}")
}

fn is_source(name: &str) -> bool {
    matches!(name, "source" | "sources" | "input" | "inputs" | "from")
}

/// The known name that is at most two letters away, and nearer than any other.
fn nearest(name: &str) -> Option<&'static str> {
    let by_distance = NAMES.map(|known| (distance(&name.to_lowercase(), known), known));
    by_distance.into_iter().filter(|(distance, _)| *distance <= 2).min().map(|(_, known)| known)
}

/// How many letters must be put in, taken out or changed to make one word of the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    // How far what was read of `from` is from each beginning of `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for letter in from.chars() {
        let mut before = row.iter().copied();
        let mut diagonal = before.next().unwrap_or_default();
        let mut left = diagonal + 1;
        let mut next = vec![left];
        for (above, other) in before.zip(&to) {
            left = (diagonal + usize::from(letter != *other)).min(above + 1).min(left + 1);
            next.push(left);
            diagonal = above;
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn the_distance_of_two_words_counts_letters() {
        for (from, to, expected) in
            [("sink", "sink", 0), ("sinks", "sink", 1), ("", "pipe", 4), ("snik", "sink", 2)]
        {
            assert_eq!(distance(from, to), expected, "{from} {to}");
            assert_eq!(distance(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("Sinks"), Some("sink"));
        assert_eq!(nearest("pipes"), Some("pipe"));
        assert_eq!(nearest("krate"), Some("crate"));
        assert_eq!(nearest("onerror"), Some("on_error"));
        assert_eq!(nearest("group"), None);
    }
}
