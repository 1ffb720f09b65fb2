//! Walks a TOML document along the keyword tables. Every error has file, line, column, keyword and what was expected.
//!
//! Reads: text that `check.rs` read from a file only its owner may write. Knows no keyword by name.

use std::{collections::BTreeSet, fmt, ops::Range};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::keywords::{Keyword, REQUIRED, UNSET};

/// What is wrong with a file, in one line: `file:line:column: keyword: what was expected`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(pub String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// A file's name and text.
#[derive(Debug)]
pub struct Source {
    /// As the admin wrote it.
    pub file: String,
    /// The whole.
    pub text: String,
}

/// A section that may stand in a file many times, with the offset at which it begins.
type Repeated<T> = Vec<(T, usize)>;

impl Source {
    /// Parses the document; TOML itself is the `toml` crate's.
    pub fn parse(&self) -> Result<Spanned<DeTable<'_>>, ConfigError> {
        DeTable::parse(&self.text).map_err(|e| {
            self.error(e.span().map_or(0, |span: Range<usize>| span.start), e.message().replace('\n', "; "))
        })
    }

    /// An error at a byte offset of the text.
    pub fn error(&self, offset: usize, message: impl fmt::Display) -> ConfigError {
        ConfigError(format!("{}: {message}", self.place(offset)))
    }

    /// `file:line:column` of a byte offset, the column counted in characters from 1.
    pub fn place(&self, offset: usize) -> String {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        format!("{}:{line}:{}", self.file, before.get(line_start..).unwrap_or("").chars().count() + 1)
    }

    /// Reads the top of a document and its sections into `into`; `repeated` names the arrays of tables, read by
    /// [`Source::read_repeated`].
    pub(super) fn read_document<T>(
        &self,
        document: &DeTable<'_>,
        words: &[Keyword<T>],
        repeated: &[&str],
        into: &mut T,
    ) -> Result<(), ConfigError> {
        let sections: BTreeSet<&str> = words.iter().map(|w| w.section).filter(|s| !s.is_empty()).collect();
        for (key, value) in document {
            let name: &str = key.get_ref();
            match value.get_ref() {
                _ if repeated.contains(&name) => {}
                DeValue::Table(table) if sections.contains(name) => {
                    table.iter().try_for_each(|(key, value)| self.read_keyword(name, key, value, words, into))?;
                }
                _ if sections.contains(name) => {
                    return Err(self.error(key.span().start, format!("{name}: expected a section [{name}]")));
                }
                _ => {
                    let others: Vec<&str> = sections.iter().chain(repeated).copied().collect();
                    self.read_top(key, value, words, &others, into)?;
                }
            }
        }
        Ok(())
    }

    fn read_top<T>(
        &self,
        key: &Spanned<toml::de::DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        words: &[Keyword<T>],
        sections: &[&str],
        into: &mut T,
    ) -> Result<(), ConfigError> {
        if value.get_ref().is_table() || value.get_ref().is_array() {
            let name: &str = key.get_ref();
            let hint = nearest(name, sections).map_or_else(String::new, |near| format!("; did you mean [{near}]?"));
            return Err(self.error(key.span().start, format!("{name}: unknown section{hint}")));
        }
        self.read_keyword("", key, value, words, into)
    }

    /// Reads every `[[section]]` of a document.
    pub(super) fn read_repeated<T: Default>(
        &self,
        document: &DeTable<'_>,
        section: &str,
        words: &[Keyword<T>],
    ) -> Result<Repeated<T>, ConfigError> {
        let Some(value) = document.get(section) else { return Ok(Vec::new()) };
        let wrong = |at: usize| self.error(at, format!("{section}: expected a section [[{section}]]"));
        let DeValue::Array(all) = value.get_ref() else { return Err(wrong(value.span().start)) };
        let mut read = Vec::new();
        for item in all {
            let DeValue::Table(table) = item.get_ref() else { return Err(wrong(item.span().start)) };
            let mut entry = defaults(words);
            table.iter().try_for_each(|(key, value)| self.read_keyword(section, key, value, words, &mut entry))?;
            if let Some(missing) = words.iter().find(|w| w.default == REQUIRED && !table.contains_key(w.name)) {
                let message = format!("{section}.{}: missing; expected {}", missing.name, missing.kind.expected());
                return Err(self.error(item.span().start, message));
            }
            read.push((entry, item.span().start));
        }
        Ok(read)
    }

    fn read_keyword<T>(
        &self,
        section: &str,
        key: &Spanned<toml::de::DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        words: &[Keyword<T>],
        into: &mut T,
    ) -> Result<(), ConfigError> {
        let name: &str = key.get_ref();
        let Some(word) = words.iter().find(|w| w.section == section && w.name == name) else {
            return Err(self.error(key.span().start, unknown(section, name, words)));
        };
        let full = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
        let at = value.span().start;
        let expected = || format!("{full}: expected {}, found {}", word.kind.expected(), found(name, value.get_ref()));
        let accepted = word.kind.accept(value.get_ref()).ok_or_else(|| self.error(at, expected()))?;
        (word.set)(into, &accepted)
            .map_err(|why| self.error(at, if why.is_empty() { expected() } else { format!("{full}: {why}") }))
    }
}

/// A section in which nothing is given.
pub(super) fn defaults<T: Default>(words: &[Keyword<T>]) -> T {
    let mut section = T::default();
    for word in words.iter().filter(|w| w.default != REQUIRED && w.default != UNSET) {
        // tests/man.rs checks that every default is a value of its own keyword.
        if let Ok(value) = DeValue::parse(word.default)
            && let Some(value) = word.kind.accept(value.get_ref())
        {
            let _ = (word.set)(&mut section, &value);
        }
    }
    section
}

fn unknown<T>(section: &str, name: &str, words: &[Keyword<T>]) -> String {
    let title =
        |section: &str| if section.is_empty() { "the top of the file".to_owned() } else { format!("[{section}]") };
    if let Some(other) = words.iter().find(|w| w.name == name) {
        return format!("{name}: unknown keyword in {}; it belongs to {}", title(section), title(other.section));
    }
    let names: Vec<&str> = words.iter().filter(|w| w.section == section).map(|w| w.name).collect();
    let hint = nearest(name, &names).map_or_else(String::new, |near| format!("; did you mean {near}?"));
    format!("{name}: unknown keyword in {}{hint}", title(section))
}

fn found(name: &str, value: &DeValue<'_>) -> String {
    match value {
        // A hash, or a password put there by mistake, does not belong on a terminal.
        DeValue::String(_) if name == "password" => "another string".to_owned(),
        DeValue::String(s) => format!("{:?}", s.chars().take(64).collect::<String>()),
        DeValue::Integer(n) => n.to_string(),
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Array(_) => "another array".to_owned(),
        other => format!("a {}", other.type_str()),
    }
}

/// The name that is the fewest typing errors away, if that is few.
fn nearest<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    let close = names.iter().map(|n| (distance(name.as_bytes(), n.as_bytes()), *n)).min()?;
    (close.0 <= 2 + name.len() / 5).then_some(close.1)
}

/// Levenshtein distance.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().take(64).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
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
    fn a_typing_error_finds_its_word_and_nonsense_finds_none() {
        assert_eq!(nearest("workres", &["workers", "worker_user"]), Some("workers"));
        assert_eq!(nearest("Sandbox", &["sandbox"]), Some("sandbox"));
        assert_eq!(nearest("x", &["sandbox"]), None);
    }

    #[test]
    fn a_column_counts_characters_not_bytes() {
        let source = Source { file: "f".into(), text: "a = 1\né = 2".into() };
        assert_eq!(source.place(8), "f:2:2");
        assert_eq!(source.place(999), "f:2:6");
    }
}
