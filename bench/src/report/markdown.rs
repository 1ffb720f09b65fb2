//! The result file for people: machine, versions, one table a row, the bars.

use std::fmt::Write as _;

use super::{Book, bars, median, number};
use crate::rows::{Better, Metric, ROWS, Row};
use crate::servers::{Role, SERVERS};

/// The whole page.
pub fn page(book: &Book) -> String {
    let mut out = String::new();
    let m = &book.machine;
    let _ = writeln!(out, "# Measured on {}\n\nWritten by `{}`; do not edit.\n", m.arch, book.line);
    let _ = writeln!(out, "| | |\n|---|---|");
    for (what, value) in [
        ("CPU", format!("{}, {} cores", m.cpu, m.cores)),
        ("memory", format!("{} MiB", m.memory_mib)),
        ("system", format!("{}, Linux {}", m.system, m.kernel)),
        ("date", m.date.clone()),
        ("load when it began", m.load.clone()),
        ("sizes", sizes(book)),
    ] {
        let _ = writeln!(out, "| {what} | {value} |");
    }
    for (name, version) in &book.versions {
        let _ = writeln!(out, "| {name} | {version} |");
    }
    for (name, why) in &book.missing {
        let _ = writeln!(out, "| {name} | not measured: {why} |");
    }
    let _ = write!(out, "\n{}\n## The bars\n\n| bar | figure |\n|---|---|\n", tables(book));
    for bar in bars::BARS {
        let _ = writeln!(out, "| {} | {} |", bar.claim, bars::verdict(bar, book).words());
    }
    if !book.faults.is_empty() {
        out.push_str("\n## Faults in the measuring\n\n");
        for fault in &book.faults {
            let _ = writeln!(out, "- {fault}");
        }
    }
    out
}

fn sizes(book: &Book) -> String {
    let p = &book.plan;
    let quick = if p.quick { "QUICK RUN, for checking the harness only: " } else { "" };
    format!(
        "{quick}{} turns; {} MiB file; {} × {} MiB in parallel; {} × {} KiB; {} clients × {} MiB; \
         {} silent; rates over {} ms",
        p.runs,
        p.big >> 20,
        p.parallel,
        p.part >> 20,
        p.small,
        p.small_len >> 10,
        p.crowd,
        p.crowd_len >> 20,
        p.silent,
        p.window.as_millis()
    )
}

/// One table for each row that was measured.
pub fn tables(book: &Book) -> String {
    let mut out = String::new();
    for row in ROWS {
        let metrics: Vec<_> = row.metrics.iter().filter(|m| is_there(book, m)).collect();
        if !metrics.is_empty() {
            let _ = writeln!(out, "## {}: {}\n", row.name, row.what);
            table(&mut out, book, row);
            out.push('\n');
        }
    }
    out
}

fn is_there(book: &Book, metric: &Metric) -> bool {
    SERVERS.iter().any(|k| book.cell(metric.id, k.name).is_some())
}

fn table(out: &mut String, book: &Book, row: &Row) {
    let _ = writeln!(
        out,
        "| figure | server | median | least to most | × floor | × best peer |\n|---|---|---:|---:|---:|---:|"
    );
    let floor = SERVERS.iter().find(|k| k.role == Role::Floor).map_or("", |k| k.name);
    for metric in row.metrics {
        let best = book.best_peer(metric.id);
        for kind in SERVERS {
            let Some(cell) = book.cell(metric.id, kind.name) else { continue };
            let figures = cell.figures();
            let Some(middle) = median(&figures) else {
                // A server that skips the whole row has no place in its table.
                if book.cell(row.metrics[0].id, kind.name).is_some_and(|c| !c.turns.is_empty()) {
                    let why = cell.skipped.as_deref().unwrap_or("no figure");
                    let _ = writeln!(out, "| {} | {} | – | {why} | | |", metric.what, kind.name);
                }
                continue;
            };
            let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
            let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let times = |other: Option<&str>| {
                let ratio = other
                    .filter(|_| metric.better != Better::Neither)
                    .and_then(|o| book.ratio(metric.id, kind.name, o));
                ratio.map_or_else(String::new, |r| format!("{r:.2}"))
            };
            let _ = writeln!(
                out,
                "| {}, {} | {} | {} | {} to {} | {} | {} |",
                metric.what,
                metric.unit,
                kind.name,
                number(middle),
                number(least),
                number(most),
                times(Some(floor)),
                times(best),
            );
        }
    }
}
