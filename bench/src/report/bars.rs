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
    /// At most so many times another's figure.
    TimesAtMost(f64, Against),
    /// At most this, in the metric's unit.
    AtMost(f64),
    /// At least this, in the metric's unit.
    AtLeast(f64),
}

/// Whom Caisson is compared with.
#[derive(Debug, Clone, Copy)]
pub enum Against {
    /// The floor.
    Floor,
    /// One peer by name.
    Server(&'static str),
    /// Whichever peer's median is best.
    BestPeer,
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
    bar("5,000 idle sessions of one user add less than 4 MiB", "pss-5000", Test::AtMost(4.0)),
    bar("A download beside 5,000 idle sessions at least 0.95 × one without", "beside-ratio", Test::AtLeast(0.95)),
    bar("LIST of 10,000 entries in at most 0.7 × Pure-FTPd's time", "list", Test::TimesAtMost(0.7, PURE_FTPD)),
    bar("MLSD of 10,000 entries in at most 0.7 × Pure-FTPd's time", "mlsd", Test::TimesAtMost(0.7, PURE_FTPD)),
    bar("99 of 100 NOOPs beside 16 downloads answered within 2 ms", "noop-p99", Test::AtMost(2.0)),
    bar("A new worker greets a client within 50 ms of the old one's death", "respawn", Test::AtMost(50.0)),
    bar("300 clients at once: none is lost", "clients-lost", Test::AtMost(0.0)),
    bar(
        "300 clients at once log in ahead of the best peer",
        "clients-login",
        Test::TimesAtMost(1.0, Against::BestPeer),
    ),
    bar(
        "300 clients at once RETR 10 MiB ahead of the best peer",
        "clients-retr",
        Test::TimesAtMost(1.0, Against::BestPeer),
    ),
    bar(
        "300 clients at once STOR 10 MiB ahead of the best peer",
        "clients-stor",
        Test::TimesAtMost(1.0, Against::BestPeer),
    ),
    bar("300 clients at once QUIT ahead of the best peer", "clients-quit", Test::TimesAtMost(1.0, Against::BestPeer)),
    bar("10,000 connections that send nothing are held", "silent-held", Test::AtLeast(10_000.0)),
    bar("10,000 connections that send nothing add at most 8 MiB", "silent-pss", Test::AtMost(8.0)),
    bar("Others log in and fetch 16 KiB beside them within 100 ms at worst", "silent-worst", Test::AtMost(100.0)),
    bar("Download under TLS at least 1.4 × the best peer", "tls-download", Test::TimesAtLeast(1.4, Against::BestPeer)),
    bar("Upload under TLS at least 1.4 × the best peer", "tls-upload", Test::TimesAtLeast(1.4, Against::BestPeer)),
    bar(
        "A GiB down under TLS costs at most 0.55 × the best peer's CPU",
        "tls-download-cpu",
        Test::TimesAtMost(0.55, Against::BestPeer),
    ),
    bar(
        "A GiB up under TLS costs at most 0.55 × the best peer's CPU",
        "tls-upload-cpu",
        Test::TimesAtMost(0.55, Against::BestPeer),
    ),
    bar(
        "16 KiB files down under TLS at least 2 × the best peer",
        "tls-small-down",
        Test::TimesAtLeast(2.0, Against::BestPeer),
    ),
    bar(
        "16 KiB files up under TLS at least 2 × the best peer",
        "tls-small-up",
        Test::TimesAtLeast(2.0, Against::BestPeer),
    ),
    bar("All data connections down are resumed", "tls-small-down-resumed", Test::AtLeast(100.0)),
    bar("All data connections up are resumed", "tls-small-up-resumed", Test::AtLeast(100.0)),
    bar(
        "Handshakes of 16 clients at least 1.2 × unFTP, the best single-process peer",
        "tls-handshakes",
        Test::TimesAtLeast(1.2, Against::Server("unftp")),
    ),
    bar("200 idle sessions under TLS add at most 6 MiB", "tls-pss-200", Test::AtMost(6.0)),
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
    let plain = format!("{} {unit}", number(figure));
    let times = |against| {
        let other = opponent(bar, book, against).ok_or("no figure of a peer")?;
        let ratio = book.ratio(bar.metric, ours, other).ok_or_else(|| format!("no figure of {other}"))?;
        Ok::<_, String>((ratio, format!("{ratio:.2} × {other} ({plain})")))
    };
    let judged = match bar.test {
        Test::AtMost(most) => Ok((figure <= most, plain.clone())),
        Test::AtLeast(least) => Ok((figure >= least, plain.clone())),
        Test::TimesAtLeast(least, against) => times(against).map(|(ratio, words)| (ratio >= least, words)),
        Test::TimesAtMost(most, against) => times(against).map(|(ratio, words)| (ratio <= most, words)),
    };
    match judged {
        Ok((true, words)) => Verdict::Met(words),
        Ok((false, words)) => Verdict::Missed(words),
        Err(why) => Verdict::Unmeasured(why),
    }
}

fn opponent(bar: &Bar, book: &Book, against: Against) -> Option<&'static str> {
    match against {
        Against::Floor => SERVERS.iter().find(|k| k.role == Role::Floor).map(|k| k.name),
        Against::Server(name) => Some(name),
        Against::BestPeer => book.best_peer(bar.metric),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_names_a_metric_and_a_server_that_exist() {
        for bar in BARS {
            assert!(metric(bar.metric).is_some(), "{}", bar.metric);
            if let Test::TimesAtLeast(_, Against::Server(name)) | Test::TimesAtMost(_, Against::Server(name)) = bar.test
            {
                assert!(SERVERS.iter().any(|k| k.name == name), "{name}");
            }
        }
    }
}
