//! The result file for programs: one JSON object (RFC 8259).

use std::fmt::Write as _;

use super::bars::{self, Verdict};
use super::{Book, median};
use crate::rows::{Better, Metric, ROWS};
use crate::servers::{Role, SERVERS};

/// The whole page.
pub fn page(book: &Book) -> String {
    let m = &book.machine;
    let machine = object(&[
        ("arch", text(m.arch)),
        ("cpu", text(&m.cpu)),
        ("cores", m.cores.to_string()),
        ("memory_mib", m.memory_mib.to_string()),
        ("kernel", text(&m.kernel)),
        ("system", text(&m.system)),
        ("load_at_start", text(&m.load)),
        ("date", text(&m.date)),
    ]);
    let p = &book.plan;
    let plan = object(&[
        ("quick", p.quick.to_string()),
        ("runs", p.runs.to_string()),
        ("big_bytes", p.big.to_string()),
        ("parallel", p.parallel.to_string()),
        ("parallel_bytes_each", p.part.to_string()),
        ("small_files", p.small.to_string()),
        ("small_bytes", p.small_len.to_string()),
        ("idle_sessions_most", p.idle_most.to_string()),
        ("directory_entries", p.entries.to_string()),
        ("noops", p.noops.to_string()),
        ("clients_at_once", p.crowd.to_string()),
        ("clients_bytes_each", p.crowd_len.to_string()),
        ("silent_connections", p.silent.to_string()),
        ("window_ms", p.window.as_millis().to_string()),
    ]);
    let metrics: Vec<_> =
        ROWS.iter().flat_map(|row| row.metrics).filter_map(|m| Some((m.id, one_metric(book, m)?))).collect();
    let faults: Vec<_> = book.faults.iter().map(|f| text(f)).collect();
    let page = object(&[
        ("machine", machine),
        ("command", text(&book.line)),
        ("plan", plan),
        ("versions", pairs(&book.versions)),
        ("missing", pairs(&book.missing)),
        ("metrics", object(&metrics)),
        ("bars", array(&bars::BARS.iter().map(|bar| one_bar(book, bar)).collect::<Vec<_>>())),
        ("faults", array(&faults)),
    ]);
    page + "\n"
}

fn one_metric(book: &Book, metric: &Metric) -> Option<String> {
    let servers: Vec<_> = SERVERS.iter().filter_map(|k| Some((k.name, one_cell(book, metric.id, k.name)?))).collect();
    if servers.is_empty() {
        return None;
    }
    let better = match metric.better {
        Better::Higher => "higher",
        Better::Lower => "lower",
        Better::Neither => "neither",
    };
    Some(object(&[
        ("what", text(metric.what)),
        ("unit", text(metric.unit)),
        ("better", text(better)),
        ("best_peer", book.best_peer(metric.id).map_or("null".into(), text)),
        ("servers", object(&servers)),
    ]))
}

fn one_cell(book: &Book, id: &str, server: &str) -> Option<String> {
    let cell = book.cell(id, server)?;
    let figures = cell.figures();
    let Some(middle) = median(&figures) else {
        return Some(object(&[("skipped", text(cell.skipped.as_deref().unwrap_or("no figure")))]));
    };
    let floor = SERVERS.iter().find(|k| k.role == Role::Floor).map_or("", |k| k.name);
    let times = |other: Option<&str>| other.and_then(|o| book.ratio(id, server, o)).map_or("null".into(), decimal);
    Some(object(&[
        ("median", decimal(middle)),
        ("min", decimal(figures.iter().copied().fold(f64::INFINITY, f64::min))),
        ("max", decimal(figures.iter().copied().fold(f64::NEG_INFINITY, f64::max))),
        ("times_floor", times(Some(floor))),
        ("times_best_peer", times(book.best_peer(id))),
        ("runs", array(&figures.iter().copied().map(decimal).collect::<Vec<_>>())),
    ]))
}

fn one_bar(book: &Book, bar: &bars::Bar) -> String {
    let (verdict, words) = match bars::verdict(bar, book) {
        Verdict::Met(words) => ("met", words),
        Verdict::Missed(words) => ("missed", words),
        Verdict::Unmeasured(why) => ("not measured", why),
    };
    object(&[
        ("claim", text(bar.claim)),
        ("metric", text(bar.metric)),
        ("verdict", text(verdict)),
        ("figure", text(&words)),
    ])
}

fn decimal(figure: f64) -> String {
    if figure.is_finite() { format!("{figure:.4}") } else { "null".into() }
}

fn pairs(pairs: &[(&'static str, String)]) -> String {
    let members: Vec<_> = pairs.iter().map(|(name, value)| (*name, text(value))).collect();
    object(&members)
}

fn object(members: &[(&str, String)]) -> String {
    let inner: Vec<_> = members.iter().map(|(name, value)| format!("{}: {value}", text(name))).collect();
    format!("{{{}}}", block(&inner))
}

fn array(items: &[String]) -> String {
    let is_flat = items.iter().all(|i| !i.contains('\n') && !i.starts_with('"'));
    if is_flat { format!("[{}]", items.join(", ")) } else { format!("[{}]", block(items)) }
}

fn block(items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let lines: Vec<_> = items.iter().map(|item| format!("  {}", item.replace('\n', "\n  "))).collect();
    format!("\n{}\n", lines.join(",\n"))
}

fn text(words: &str) -> String {
    let mut out = String::from("\"");
    for c in words.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if u32::from(c) < 0x20 => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_printed_cannot_break_the_file() {
        assert_eq!(text("a\"b\\c\nd"), r#""a\"b\\c\u000ad""#);
        assert_eq!(array(&["1".into(), "2".into()]), "[1, 2]");
    }
}
