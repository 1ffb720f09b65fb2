//! What was found: the book of figures, and how it is told.
//!
//! Ratios are taken turn by turn (run 3 of one server against run 3 of another, minutes apart at most) and their
//! median is given; so a machine that gets slower in the middle of a run does not tilt them.

pub mod bars;
mod json;
mod markdown;
mod readme;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::args::Args;
use crate::error::{Call, Result};
use crate::machine::Machine;
use crate::plan::Plan;
use crate::rows::{Better, ROWS, Reading, Row, metric};
use crate::servers::{Kind, Role, SERVERS};

/// Everything a run found out.
#[derive(Debug)]
pub struct Book {
    /// Where it ran.
    pub machine: Machine,
    /// How much was measured.
    pub plan: Plan,
    /// The command line.
    pub line: String,
    /// Server and version, in the order of the table.
    pub versions: Vec<(&'static str, String)>,
    /// Servers that could not take part, and why.
    pub missing: Vec<(&'static str, String)>,
    /// Faults in the measuring.
    pub faults: Vec<String>,
    cells: BTreeMap<(&'static str, &'static str), Cell>,
}

/// One metric of one server.
#[derive(Debug, Default, Clone)]
pub struct Cell {
    /// Figures by turn.
    pub turns: BTreeMap<usize, f64>,
    /// Why there is none, where the row said so.
    pub skipped: Option<String>,
}

impl Cell {
    /// The figures in order of turns.
    pub fn figures(&self) -> Vec<f64> {
        self.turns.values().copied().collect()
    }
}

impl Book {
    /// An empty book for a run with these words.
    pub fn new(args: &Args) -> Self {
        Self {
            machine: Machine::look(),
            plan: args.plan,
            line: format!("bench/run {}", own_words(&args.line)),
            versions: Vec::new(),
            missing: Vec::new(),
            faults: Vec::new(),
            cells: BTreeMap::new(),
        }
    }

    /// Notes a server's version.
    pub fn version(&mut self, kind: &Kind, version: &str) {
        self.versions.push((kind.name, version.into()));
    }

    /// Notes that a server cannot take part.
    pub fn absent(&mut self, kind: &Kind, why: &str) {
        eprintln!("bench: {}: {why}; it is skipped", kind.name);
        self.missing.push((kind.name, why.into()));
    }

    /// Notes a fault in the measuring.
    pub fn fault(&mut self, fault: &str) {
        eprintln!("bench: FAULT {fault}");
        self.faults.push(fault.into());
    }

    /// Notes what a turn yielded.
    pub fn enter(&mut self, row: &Row, kind: &Kind, run: usize, readings: &[Reading]) {
        let mut line = format!("{:<11} {:<10} run {}", row.name, kind.name, run + 1);
        for (metric, reading) in row.metrics.iter().zip(readings) {
            let cell = self.cells.entry((metric.id, kind.name)).or_default();
            match reading {
                Reading::Figure(figure) => {
                    let _ = write!(line, "  {} {}", number(*figure), metric.unit);
                    cell.turns.insert(run, *figure);
                }
                Reading::Skipped(why) => cell.skipped = Some(why.clone()),
            }
        }
        if readings.iter().any(|r| matches!(r, Reading::Figure(_))) {
            eprintln!("{line}");
        }
    }

    /// The figures of one server for one metric.
    pub fn cell(&self, id: &str, server: &str) -> Option<&Cell> {
        self.cells.iter().find(|((m, s), _)| *m == id && *s == server).map(|(_, cell)| cell)
    }

    /// The median of one server for one metric.
    pub fn median(&self, id: &str, server: &str) -> Option<f64> {
        self.cell(id, server).and_then(|c| median(&c.figures()))
    }

    /// How many times the other's figure a server's is: the median of the ratios turn by turn.
    pub fn ratio(&self, id: &str, server: &str, other: &str) -> Option<f64> {
        let (mine, theirs) = (self.cell(id, server)?, self.cell(id, other)?);
        let ratios: Vec<_> =
            mine.turns.iter().filter_map(|(turn, figure)| Some(figure / theirs.turns.get(turn)?)).collect();
        median(&ratios).filter(|r| r.is_finite())
    }

    /// The peer with the best median.
    pub fn best_peer(&self, id: &str) -> Option<&'static str> {
        let better = metric(id)?.1.better;
        let peers = SERVERS.iter().filter(|k| k.role == Role::Peer);
        let medians = peers.filter_map(|k| Some((k.name, self.median(id, k.name)?)));
        match better {
            Better::Higher => medians.max_by(|a, b| a.1.total_cmp(&b.1)).map(|p| p.0),
            Better::Lower => medians.min_by(|a, b| a.1.total_cmp(&b.1)).map(|p| p.0),
            Better::Neither => None,
        }
    }
}

/// Writes the result files, fills in the promises after a whole run, and prints how each bar stands.
///
/// # Errors
/// A file cannot be written.
pub fn publish(args: &Args, book: &Book) -> Result<()> {
    let folder: PathBuf = if args.is_whole() { args.results.clone() } else { args.results.join("tmp") };
    fs::create_dir_all(&folder).call(|| format!("mkdir {}", folder.display()))?;
    for (ending, text) in [("json", json::page(book)), ("md", markdown::page(book))] {
        let path = folder.join(format!("{}.{ending}", book.machine.arch));
        fs::write(&path, text).call(|| format!("write {}", path.display()))?;
        println!("wrote {}", path.display());
    }
    if let Some(page) = args.readme.as_ref().filter(|_| args.is_whole()) {
        readme::fill(page, book)?;
        println!("filled in {}", page.display());
    }
    print!("\n{}", markdown::tables(book));
    println!("\nThe bars:");
    for bar in bars::BARS {
        println!("  {}", bars::verdict(bar, book).line(bar));
    }
    if !args.is_whole() {
        println!("  (not a whole run: none of this holds a promise)");
    }
    for fault in &book.faults {
        println!("FAULT {fault}");
    }
    Ok(())
}

/// Rows, servers and bars, for `--list`.
pub fn listing() -> String {
    let mut text = String::from("rows:\n");
    for row in ROWS {
        let _ = writeln!(text, "  {:<11} {}", row.name, row.what);
    }
    text.push_str("servers:\n");
    for kind in SERVERS {
        let _ = writeln!(text, "  {}", kind.name);
    }
    text.push_str("bars:\n");
    for bar in bars::BARS {
        let _ = writeln!(text, "  {} ({})", bar.claim, bar.metric);
    }
    text
}

/// The middle figure; of an even count, the mean of the two in the middle.
pub fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => sorted.get(middle).copied(),
        _ => Some(f64::midpoint(*sorted.get(middle - 1)?, *sorted.get(middle)?)),
    }
}

/// A figure with as many decimals as make sense.
pub fn number(figure: f64) -> String {
    match figure.abs() {
        x if x >= 100.0 => format!("{figure:.0}"),
        x if x >= 10.0 => format!("{figure:.1}"),
        x if x >= 1.0 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}

/// The words a person gave, without the paths that bench/run put before them.
fn own_words(line: &str) -> String {
    let mut words = line.split(' ').peekable();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if ["--peers", "--readme", "--results", "--programs"].contains(&word) {
            words.next();
        } else {
            kept.push(word);
        }
    }
    kept.join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[9.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn the_record_names_what_a_person_typed_and_no_path() {
        assert_eq!(own_words("--peers a --readme b --results c --quick --only memory"), "--quick --only memory");
    }
}
