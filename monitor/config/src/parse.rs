//! Walks a TOML document along the keyword tables. Every error is one line:
//! `file:line:column: keyword: what was expected`.
//!
//! Reads: text of a file only its owner may write (monitor/src/config.rs has checked). Knows no keyword by name.

use std::fmt::Display;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::keywords::{Keyword, Kind, REQUIRED, UNSET};

/// A file's name and text.
#[derive(Debug)]
pub struct Source {
    /// What it is called in errors.
    pub file: String,
    /// All of it.
    pub text: String,
}

/// What a `[[section]]` that may be repeated holds, its name, and at which offset it begins.
pub(crate) struct Found<R> {
    pub section: &'static str,
    pub holds: R,
    pub offset: usize,
}

impl Source {
    /// An error at a byte offset of the text.
    pub(crate) fn error(&self, offset: usize, message: impl Display) -> String {
        format!("{}: {message}", self.place(offset))
    }

    /// `file:line:column` of a byte offset, the column counted in characters from 1.
    fn place(&self, offset: usize) -> String {
        let (line, column) = self.line_and_column(offset);
        format!("{}:{line}:{column}", self.file)
    }

    /// Both from 1.
    pub(crate) fn line_and_column(&self, offset: usize) -> (u32, u32) {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (number(before.matches('\n').count() + 1), number(column))
    }

    /// Reads the document: keywords of the top and of sections into `into`, and the repeated sections in their order.
    pub(crate) fn read<T, R: Default>(
        &self,
        words: &[Keyword<T>],
        repeated: &[Keyword<R>],
        into: &mut T,
    ) -> Result<Vec<Found<R>>, String> {
        let others: Vec<&str> = repeated.iter().map(|word| word.section).collect();
        let document = DeTable::parse(&self.text)
            .map_err(|e| self.error(e.span().map_or(0, |span| span.start), e.message().replace('\n', "; ")))?;
        let mut list = Vec::new();
        for (key, value) in document.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                (name, value) if others.contains(&name) => {
                    let wrong = |at: usize| self.error(at, format!("{name}: expected a section [[{name}]]"));
                    for item in value.as_array().ok_or_else(|| wrong(key.span().start))? {
                        let offset = item.span().start;
                        let table = item.get_ref().as_table().ok_or_else(|| wrong(offset))?;
                        list.push(self.read_item(table, offset, name, repeated)?);
                    }
                }
                (section, DeValue::Table(table)) if words.iter().any(|w| w.section == section) => {
                    table.iter().try_for_each(|(key, value)| self.keyword(section, key, value, words, &[], into))?;
                }
                _ => self.keyword("", key, value, words, &others, into)?,
            }
        }
        Ok(list)
    }

    fn read_item<R: Default>(
        &self,
        table: &DeTable<'_>,
        offset: usize,
        name: &str,
        words: &[Keyword<R>],
    ) -> Result<Found<R>, String> {
        let own = || words.iter().filter(|word| word.section == name);
        let mut holds = defaults(own());
        table.iter().try_for_each(|(key, value)| self.keyword(name, key, value, words, &[], &mut holds))?;
        match own().find(|w| w.default == REQUIRED && !table.contains_key(w.name)) {
            Some(w) => Err(self.error(offset, format!("{name}.{}: missing; expected {}", w.name, w.kind.expected()))),
            None => Ok(Found { section: own().next().map_or("", |word| word.section), holds, offset }),
        }
    }

    fn keyword<T>(
        &self,
        section: &str,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        words: &[Keyword<T>],
        others: &[&str],
        into: &mut T,
    ) -> Result<(), String> {
        let name = key.get_ref().as_ref();
        let Some(word) = words.iter().find(|w| w.section == section && w.name == name) else {
            return Err(self.error(key.span().start, unknown(section, name, words, others)));
        };
        // A hash, or a password put there by mistake, does not belong on a terminal.
        let shown = self.text.get(value.span()).filter(|_| name != "password");
        let found = shown.and_then(|text| text.lines().next()).unwrap_or("something else");
        let set = match word.kind.set(value.get_ref(), into) {
            Err(why) if why.is_empty() => Err(format!("expected {}, found {found:.64}", word.kind.expected())),
            other => other,
        };
        let full = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
        set.map_err(|why| self.error(value.span().start, format!("{full}: {why}")))
    }
}

impl<T> Kind<T> {
    /// Checks type and range and puts the value in its place.
    fn set(&self, value: &DeValue<'_>, into: &mut T) -> Result<(), String> {
        match (self, value) {
            (Kind::Flag(set), DeValue::Boolean(on)) => set(into, *on),
            (Kind::Number(least, most, set), DeValue::Integer(_)) => {
                let number = text(value).and_then(|text| text.parse().ok()).filter(|n| (least..=most).contains(&n));
                set(into, number.ok_or_else(String::new)?);
            }
            (Kind::Text(_, set), DeValue::String(text)) => set(into, text)?,
            (Kind::Id(_, set), _) => set(into, &text(value).ok_or_else(String::new)?)?,
            (Kind::List(_, set), DeValue::Array(items)) => {
                let items: Option<Vec<_>> = items.iter().map(|item| text(item.get_ref())).collect();
                set(into, &items.ok_or_else(String::new)?)?;
            }
            _ => return Err(String::new()),
        }
        Ok(())
    }
}

/// A string, or an integer in decimal.
fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n.to_string()),
        _ => None,
    }
}

/// A section in which nothing is given. (tests/man.rs checks that every default is a value of its own keyword.)
pub(crate) fn defaults<'w, T: Default + 'static>(words: impl IntoIterator<Item = &'w Keyword<T>>) -> T {
    let mut section = T::default();
    for word in words.into_iter().filter(|w| w.default != REQUIRED && w.default != UNSET) {
        let _ = DeValue::parse(word.default).is_ok_and(|value| word.kind.set(value.get_ref(), &mut section).is_ok());
    }
    section
}

fn unknown<T>(section: &str, name: &str, words: &[Keyword<T>], others: &[&str]) -> String {
    if let Some(word) = words.iter().find(|w| w.name == name && w.section != section) {
        let home =
            if word.section.is_empty() { "to the top of the file".into() } else { format!("in [{}]", word.section) };
        return format!("{name}: unknown keyword here; it belongs {home}");
    }
    let sections = words.iter().map(|w| w.section).filter(|other| section.is_empty() && !other.is_empty());
    let names = words.iter().filter(|w| w.section == section).map(|w| w.name);
    let known = names.chain(sections).chain(others.iter().copied());
    match known.map(|known| (distance(name, known), known)).min() {
        Some((errors, near)) if errors <= 2 + name.len() / 5 => {
            format!("{name}: unknown keyword; did you mean {near}?")
        }
        _ => format!("{name}: unknown keyword"),
    }
}

/// Levenshtein distance: how many typing errors apart two names are.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().take(64).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let substitute = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_counted() {
        assert_eq!(distance("workres", "workers"), 2);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("sandbox", "sandbox"), 0);
    }

    #[test]
    fn a_column_counts_characters_not_bytes() {
        let source = Source { file: "f".into(), text: "a = 1\né = 2".into() };
        assert_eq!(source.place(8), "f:2:2");
        assert_eq!(source.place(999), "f:2:6");
    }
}
