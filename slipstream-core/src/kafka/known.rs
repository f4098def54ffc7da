//! The settings that librdkafka knows, read off the table that it prints.
//!
//! ```text
//! linger.ms  |  P  | 0 .. 900000  |  5 | high | Alias for `queue.buffering.max.ms`: Delay in … <br>*Type: float*
//! name         side  range                     canonical name                                kind
//! ```
use std::collections::BTreeMap;
use std::io;

use super::native;

/// What librdkafka knows of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    /// The name that it is an alias of, where it is one.
    pub(super) alias_of: Option<String>,
    pub(super) side: Side,
    pub(super) kind: Kind,
    /// The values that it may have, where they can be told: `0 .. 900000`, `true, false`.
    pub(super) range: String,
}

/// Which clients a setting is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Consumer,
    Producer,
    Both,
}

/// What a value has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Float,
    Boolean,
    /// One or several words of those in the range.
    Words,
    Text,
    /// A function or an object of C, which no text can stand for.
    Handle,
}

/// All settings by name, aliases too.
#[derive(Debug)]
pub(super) struct KnownSettings(BTreeMap<String, Known>);

impl KnownSettings {
    /// Those of the librdkafka that is linked.
    pub(super) fn of_librdkafka() -> io::Result<Self> {
        native::properties().map(|table| Self::read(&table))
    }

    fn read(table: &str) -> Self {
        let mut known = BTreeMap::new();
        for (name, row) in table.lines().filter_map(row) {
            // A few are there twice, of clients and of topics. librdkafka sets the client's, which come first.
            known.entry(name).or_insert(row);
        }
        KnownSettings(known)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Known> {
        self.0.get(name)
    }

    /// The name that a setting has under all of its aliases.
    pub(super) fn canonical<'a>(&'a self, name: &'a str) -> &'a str {
        self.get(name).and_then(|known| known.alias_of.as_deref()).unwrap_or(name)
    }

    /// The known name that differs in the fewest letters, unless it is another word altogether.
    pub(super) fn nearest(&self, name: &str) -> Option<&str> {
        let far = (name.chars().count() / 3).max(1) + 1;
        let settable = self.0.iter().filter(|(_, known)| known.kind != Kind::Handle);
        let apart = settable.map(|(other, _)| (letters_apart(name, other), other.as_str()));
        apart.filter(|(letters, _)| *letters < far).min().map(|(_, other)| other)
    }

    /// All names of the setting with this canonical one.
    pub(super) fn names<'a>(&'a self, canonical: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str).filter(move |name| self.canonical(name) == canonical)
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Known)> {
        self.0.iter().map(|(name, known)| (name.as_str(), known))
    }
}

/// A row of the table; `None` for its headings and rules.
fn row(line: &str) -> Option<(String, Known)> {
    let mut columns = line.splitn(4, " | ").map(str::trim);
    let (name, side, range, rest) = (columns.next()?, columns.next()?, columns.next()?, columns.next()?);
    let (about, kind) = rest.rsplit_once("<br>*Type: ")?;
    let alias_of = about.split_once("Alias for `").and_then(|(_, alias)| alias.split_once("`: "));
    let known = Known {
        alias_of: alias_of.map(|(name, _)| name.to_owned()),
        side: match side {
            "C" => Side::Consumer,
            "P" => Side::Producer,
            _ => Side::Both,
        },
        kind: match kind.trim_end_matches('*') {
            "integer" => Kind::Integer,
            "float" => Kind::Float,
            "boolean" => Kind::Boolean,
            "enum value" | "CSV flags" => Kind::Words,
            "see dedicated API" => Kind::Handle,
            _ => Kind::Text,
        },
        range: range.to_owned(),
    };
    Some((name.to_owned(), known))
}

/// In how many letters two names differ: left out, put in, replaced (Levenshtein's distance).
fn letters_apart(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (i, letter) in one.chars().enumerate() {
        let (mut left, mut diagonal) = (i + 1, i);
        for (cell, another) in row.iter_mut().zip(std::iter::once(None).chain(other.chars().map(Some))) {
            let value = match another {
                None => i + 1,
                Some(another) => (diagonal + usize::from(letter != another)).min(*cell + 1).min(left + 1),
            };
            diagonal = std::mem::replace(cell, value);
            left = value;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_name_side_kind_range_and_alias() {
        let table = "## Topic configuration properties\n\n\
            Property | C/P | Range | Default | Importance | Description\n\
            ---------|-----|-------|--------:|------------|------------\n\
            acks     |  P  | -1 .. 1000 | -1 | high | Alias for `request.required.acks`: A `0` | `1`. <br>*Type: integer*\n\
            debug    |  *  | a, b, c    |    | med  | Which <br>*Type: CSV flags*\n";
        let known = KnownSettings::read(table);
        assert_eq!(
            known.get("acks"),
            Some(&Known {
                alias_of: Some("request.required.acks".into()),
                side: Side::Producer,
                kind: Kind::Integer,
                range: "-1 .. 1000".into(),
            })
        );
        assert_eq!(known.canonical("acks"), "request.required.acks");
        assert_eq!(known.get("debug").map(|debug| (debug.side, debug.kind)), Some((Side::Both, Kind::Words)));
        assert_eq!(known.0.len(), 2);
    }

    #[test]
    fn letters_apart_are_those_left_out_put_in_or_replaced() {
        for (one, other, letters) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "ab", 2),
            ("acks", "acks", 0),
            ("ack", "acks", 1),
            ("kitten", "sitting", 3),
            ("linger", "lingre", 2),
        ] {
            assert_eq!(letters_apart(one, other), letters, "{one} {other}");
            assert_eq!(letters_apart(other, one), letters, "{other} {one}");
        }
    }
}
