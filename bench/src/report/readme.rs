//! Fills the table of promises in bench/README.md: one for each architecture, between two marks.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{Book, bars};
use crate::error::{Call, Error, Result};
use crate::rows::metric;

/// Rewrites the table of this machine's architecture; everything else on the page stays.
///
/// # Errors
/// The page cannot be read or written, or has no marks for this architecture.
pub fn fill(page: &Path, book: &Book) -> Result<()> {
    let what = || format!("fill in {}", page.display());
    let text = fs::read_to_string(page).call(what)?;
    let arch = book.machine.arch;
    let filled = between(&text, arch, &table(book))
        .ok_or_else(|| Error::Other(format!("{} has no marks for {arch}", page.display())))?;
    fs::write(page, filled).call(what)
}

fn table(book: &Book) -> String {
    let m = &book.machine;
    let mut out = format!(
        "Last measured {} on {} ({} cores, {} MiB), Linux {}, by `{}`.\n\n| bar | row | last measured |\n|---|---|---|\n",
        m.date, m.cpu, m.cores, m.memory_mib, m.kernel, book.line
    );
    for bar in bars::BARS {
        let row = metric(bar.metric).map_or("", |(row, _)| row.name);
        let _ = writeln!(out, "| {} | {row} | {} |", bar.claim, bars::verdict(bar, book).words());
    }
    out
}

fn between(text: &str, arch: &str, table: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- bars {arch} -->\n"), format!("<!-- end {arch} -->"));
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{table}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_of_this_architecture_is_replaced() {
        let page = "a\n<!-- bars x -->\nold\n<!-- end x -->\nb\n<!-- bars y -->\nkept\n<!-- end y -->\n";
        let filled = between(page, "x", "new\n");
        let expected = "a\n<!-- bars x -->\nnew\n<!-- end x -->\nb\n<!-- bars y -->\nkept\n<!-- end y -->\n";
        assert_eq!(filled.as_deref(), Some(expected));
        assert_eq!(between(page, "z", "new"), None);
    }

    #[test]
    fn every_bar_stands_on_the_page_for_both_architectures() {
        let page = include_str!("../../README.md");
        for bar in bars::BARS {
            assert_eq!(page.matches(&format!("| {} |", bar.claim)).count(), 2, "{}", bar.claim);
        }
    }

    #[test]
    fn every_row_and_server_of_the_program_is_explained_on_the_page() {
        let page = include_str!("../../README.md").to_lowercase();
        for row in crate::rows::ROWS {
            assert!(page.contains(&format!("`{}`", row.name)), "{}", row.name);
        }
        for kind in crate::servers::SERVERS {
            assert!(page.contains(kind.name), "{}", kind.name);
        }
    }
}
