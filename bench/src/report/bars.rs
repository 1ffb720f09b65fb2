//! The promises: what Caisson's figures are held against, and how they stand.

use super::{Book, number};
use crate::rows::metric;
use crate::servers::{Role, SERVERS};

/// One promise.
#[derive(Debug)]
pub struct Bar {
    /// The promise in words.
    pub claim: &'static str,
    /// The metric it is about.
    pub metric: &'static str,
    /// What must hold.
    pub test: Test,
}

/// What must hold of Caisson's median.
#[derive(Debug, Clone, Copy)]
pub enum Test {
    /// At least so many times another's figure.
    TimesAtLeast(f64, Against),
    /// At most this, in the metric's unit.
    AtMost(f64),
}

/// Whom Caisson is compared with.
#[derive(Debug, Clone, Copy)]
pub enum Against {
    /// The floor.
    Floor,
    /// One peer by name.
    Server(&'static str),
}

/// In the order of the page.
pub const BARS: &[Bar] = &[
    bar("Download at least 0.95 × the floor", "download", Test::TimesAtLeast(0.95, Against::Floor)),
    bar("Upload at least 0.90 × the floor", "upload", Test::TimesAtLeast(0.90, Against::Floor)),
    bar("16 KiB files down at least 1.1 × Pure-FTPd", "small-down", Test::TimesAtLeast(1.1, PURE_FTPD)),
    bar("16 KiB files up at least 1.1 × Pure-FTPd", "small-up", Test::TimesAtLeast(1.1, PURE_FTPD)),
    bar("A 16 KiB file down costs at most 130 µs of CPU", "small-down-cpu", Test::AtMost(130.0)),
    bar("A 16 KiB file up costs at most 130 µs of CPU", "small-up-cpu", Test::AtMost(130.0)),
    bar("All processes idle weigh at most 10 MiB (the goal is 6)", "pss-idle", Test::AtMost(10.0)),
    bar("200 idle sessions of one user add less than 1 MiB", "pss-200", Test::AtMost(1.0)),
    bar("1,000 idle sessions of one user add at most 1 MiB", "pss-1000", Test::AtMost(1.0)),
];

const PURE_FTPD: Against = Against::Server("pure-ftpd");

const fn bar(claim: &'static str, metric: &'static str, test: Test) -> Bar {
    Bar { claim, metric, test }
}

/// How a promise stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It holds; the figure in words.
    Met(String),
    /// It does not; the figure in words.
    Missed(String),
    /// This run says nothing about it, and why.
    Unmeasured(String),
}

impl Verdict {
    /// One line for the terminal.
    pub fn line(&self, bar: &Bar) -> String {
        match self {
            Self::Met(figure) => format!("pass    {}: {figure}", bar.claim),
            Self::Missed(figure) => format!("MISSED  {}: {figure}", bar.claim),
            Self::Unmeasured(why) => format!("-       {}: not measured ({why})", bar.claim),
        }
    }

    /// For the tables: the figure with its mark.
    pub fn words(&self) -> String {
        match self {
            Self::Met(figure) => format!("{figure} (met)"),
            Self::Missed(figure) => format!("{figure} (**missed**)"),
            Self::Unmeasured(_) => "not yet measured".into(),
        }
    }
}

/// Holds a promise against the book.
pub fn verdict(bar: &Bar, book: &Book) -> Verdict {
    let ours = SERVERS.iter().find(|k| k.role == Role::Ours).map_or("", |k| k.name);
    let Some(figure) = book.median(bar.metric, ours) else {
        let why = book.missing.iter().find(|(name, _)| *name == ours).map(|(_, why)| why.clone());
        return Verdict::Unmeasured(why.unwrap_or_else(|| "the row gave no figure".into()));
    };
    let unit = metric(bar.metric).map_or("", |(_, m)| m.unit);
    let (holds, words) = match bar.test {
        Test::AtMost(most) => (figure <= most, format!("{} {unit}", number(figure))),
        Test::TimesAtLeast(least, against) => {
            let other = match against {
                Against::Floor => SERVERS.iter().find(|k| k.role == Role::Floor).map_or("", |k| k.name),
                Against::Server(name) => name,
            };
            let Some(ratio) = book.ratio(bar.metric, ours, other) else {
                return Verdict::Unmeasured(format!("no figure of {other}"));
            };
            (ratio >= least, format!("{ratio:.2} × ({} {unit})", number(figure)))
        }
    };
    if holds { Verdict::Met(words) } else { Verdict::Missed(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_names_a_metric_and_a_server_that_exist() {
        for bar in BARS {
            assert!(metric(bar.metric).is_some(), "{}", bar.metric);
            if let Test::TimesAtLeast(_, Against::Server(name)) = bar.test {
                assert!(SERVERS.iter().any(|k| k.name == name), "{name}");
            }
        }
    }
}
