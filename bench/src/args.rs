//! The command line.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::plan::Plan;

/// Printed by `--help`.
pub const USAGE: &str = "\
usage: bench [--quick] [--runs N] [--only ROW,...] [--servers NAME,...] [--list]
             [--peers DIR] [--programs DIR] [--results DIR] [--readme FILE]

  --quick     smaller files, fewer turns; the figures go to results/tmp and hold no promise
  --runs      turns of each server in each row (1 to 99, five unless given); fewer go to results/tmp
  --only      these rows; results go to results/tmp
  --servers   these servers; results go to results/tmp
  --list      print rows, servers and bars, measure nothing
  --peers     where bench/run unpacked the peers (target/bench-peers)
  --programs  where Caisson's programs are (beside this program)
";

/// What to do.
#[derive(Debug)]
pub struct Args {
    /// Sizes and counts.
    pub plan: Plan,
    /// Rows asked for; empty means all.
    pub only: Vec<String>,
    /// Servers asked for; empty means all.
    pub servers: Vec<String>,
    /// Print what there is and stop.
    pub list: bool,
    /// Print the usage and stop.
    pub help: bool,
    /// Unpacked peers.
    pub peers: PathBuf,
    /// Folder of `caissond` and its companions.
    pub programs: PathBuf,
    /// Folder of the result files.
    pub results: PathBuf,
    /// The page with the promises; its tables are filled in after a full run.
    pub readme: Option<PathBuf>,
    /// The command line as it was given, for the record.
    pub line: String,
}

impl Args {
    /// True when every row and server is measured in full, so that the figures may stand in the promises.
    pub fn is_whole(&self) -> bool {
        let is_full = !self.plan.quick && self.plan.runs >= Plan::full().runs;
        is_full && self.only.is_empty() && self.servers.is_empty()
    }

    /// Reads the words after the program's name.
    ///
    /// # Errors
    /// An unknown option, or a value out of its range.
    pub fn parse(words: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Self> {
        use lexopt::prelude::*;
        let words: Vec<_> = words.into_iter().collect();
        let beside = std::env::current_exe().ok().and_then(|p| p.parent().map(PathBuf::from));
        let mut args = Self {
            plan: Plan::full(),
            only: Vec::new(),
            servers: Vec::new(),
            list: false,
            help: false,
            peers: PathBuf::from("target/bench-peers"),
            programs: beside.unwrap_or_default(),
            results: PathBuf::from("bench/results"),
            readme: None,
            line: words.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" "),
        };
        let mut runs = None;
        let mut parser = lexopt::Parser::from_args(words);
        while let Some(word) = parser.next().map_err(usage)? {
            match word {
                Long("quick") => args.plan = Plan::quick(),
                Long("runs") => runs = Some(parser.value().and_then(|v| v.parse::<usize>()).map_err(usage)?),
                Long("only") => args.only = names(&parser.value().map_err(usage)?),
                Long("servers") => args.servers = names(&parser.value().map_err(usage)?),
                Long("list") => args.list = true,
                Long("help") | Short('h') => args.help = true,
                Long("peers") => args.peers = parser.value().map_err(usage)?.into(),
                Long("programs") => args.programs = parser.value().map_err(usage)?.into(),
                Long("results") => args.results = parser.value().map_err(usage)?.into(),
                Long("readme") => args.readme = Some(parser.value().map_err(usage)?.into()),
                other => return Err(usage(other.unexpected())),
            }
        }
        match runs {
            Some(n) if (1..=99).contains(&n) => args.plan.runs = n,
            Some(n) => return Err(Error::Other(format!("--runs {n}: expected 1 to 99"))),
            None => {}
        }
        Ok(args)
    }
}

fn usage(cause: lexopt::Error) -> Error {
    Error::Other(format!("{cause}\n{USAGE}"))
}

fn names(value: &std::ffi::OsStr) -> Vec<String> {
    value.to_string_lossy().split(',').filter(|n| !n.is_empty()).map(String::from).collect()
}
