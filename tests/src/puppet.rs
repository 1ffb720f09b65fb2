//! A worker that was taken over, seen from the scenario that moves it: `hostile-worker` does what these lines say.
//!
//! One line each way: `send LINK HEX [DESCRIPTOR...]` sends one record; `receive LINK MILLISECONDS` tells the next one;
//! `read` and `write HEX` use the newest descriptor it was given; `ledger WHICH OFFSET HEX` writes into a region of the ledger, its
//! own (0) or another's, and `cut` makes its own shorter. Links are `monitor`, `authd`, `broker`; descriptors
//! are links, `control`, `listener`, `got`, `null`, `pipe`, `unix`, `own`.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
};

use child_ipc::{
    Record,
    link::{monitor_worker::ToWorker, worker_authd, worker_broker},
};
use nix::sys::signal::Signal;
use serde::Serialize;

use crate::{
    Daemon, Site,
    procs::Process,
    programs, site, until,
    wait::{LIMIT, within},
};

/// What a hostile worker says to whom connects: no reply code of FTP.
pub const GREETING: &str = "666 taken over";

/// The words of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Send a record.
    Send,
    /// Receive one.
    Receive,
    /// Read from a descriptor.
    Read,
    /// Write to it.
    Write,
    /// Write into a region of the ledger.
    Ledger,
    /// Make its own region shorter.
    Cut,
}

impl Word {
    /// The word, if it is one.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "send" => Some(Word::Send),
            "receive" => Some(Word::Receive),
            "read" => Some(Word::Read),
            "write" => Some(Word::Write),
            "ledger" => Some(Word::Ledger),
            "cut" => Some(Word::Cut),
            _ => None,
        }
    }
}

/// Bytes as hexadecimal digits; none is `-`.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    if text.is_empty() { "-".to_owned() } else { text }
}

/// The bytes of hexadecimal digits; what is none ends them.
#[must_use]
pub fn unhex(text: &str) -> Vec<u8> {
    let digit = |d: u8| char::from(d).to_digit(16).and_then(|d| u8::try_from(d).ok());
    text.as_bytes().chunks(2).map_while(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// Whether a record of the monitor gives a worker its link to a broker.
#[must_use]
pub fn is_granted(bytes: &[u8]) -> bool {
    matches!(child_ipc::wire::decode::<ToWorker>(bytes), Ok(ToWorker::Granted(_)))
}

/// A record's encoding.
#[must_use]
pub fn encoded(record: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(record).expect("a record can be encoded")
}

/// Which link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// To the monitor.
    Monitor,
    /// To authd.
    Authd,
    /// To the broker of the last granted session.
    Broker,
}

impl Link {
    fn name(self) -> &'static str {
        match self {
            Link::Monitor => "monitor",
            Link::Authd => "authd",
            Link::Broker => "broker",
        }
    }
}

/// What came on a link.
#[derive(Debug, PartialEq, Eq)]
pub enum Came {
    /// A record with so many descriptors.
    Record(Vec<u8>, usize),
    /// Nothing in time.
    Nothing,
    /// The end of the link, or of the worker.
    Ended,
}

/// The scenario's hold on a hostile worker.
#[derive(Debug)]
pub struct Puppet {
    /// The worker.
    pub process: Process,
    lines: BufReader<TcpStream>,
}

impl Puppet {
    /// Gives `site` programs of its own, in which workers can be hostile; without a token all are honest.
    #[must_use]
    pub fn stage(hostile: &str) -> Site {
        let mut site = Site::new();
        let copies = site.dir.join("programs");
        programs::copy(&site.programs, &copies);
        let honest = copies.join("honest");
        fs::create_dir(&honest).expect("mkdir");
        fs::rename(copies.join("caisson-worker"), honest.join("caisson-worker")).expect("rename");
        fs::copy(hostile, copies.join("caisson-worker")).expect("copy");
        site.programs = copies;
        site
    }

    /// Makes one more worker hostile: the next that starts. The lines of `plan` are done before it says `Ready`.
    pub fn token(site: &Site, plan: &str) {
        let draft = site.programs.join("draft");
        site::write_private(&draft, plan);
        fs::rename(draft, site.programs.join("token")).expect("rename");
    }

    /// Kills a worker, so that a hostile one takes its place, and takes hold of that.
    #[must_use]
    pub fn take_over(daemon: &Daemon) -> Self {
        Self::token(&daemon.site, "");
        let victim = *daemon.workers().last().expect("a worker");
        let before = daemon.workers();
        victim.signal(Signal::SIGKILL);
        let process = until("a hostile worker has started", || {
            daemon.workers().into_iter().find(|w| !before.contains(w) && is_hostile(*w, &daemon.site.programs))
        });
        Self::hold(daemon, process)
    }

    /// Connects until the hostile worker answers.
    fn hold(daemon: &Daemon, process: Process) -> Self {
        // What the honest worker took stays open, so that it is the busier one.
        let mut others = Vec::new();
        let lines = within(LIMIT, || {
            let stream = TcpStream::connect(daemon.address()).expect("connect");
            stream.set_read_timeout(Some(LIMIT)).expect("setsockopt");
            let mut lines = BufReader::new(stream);
            let mut greeting = String::new();
            lines.read_line(&mut greeting).ok()?;
            if greeting.starts_with(GREETING) {
                return Some(lines);
            }
            others.push(lines);
            None
        });
        Puppet { process, lines: lines.expect("the hostile worker answers nobody") }
    }

    /// Sends a record; false when the worker has ended.
    pub fn send(&mut self, link: Link, record: &impl Serialize, fds: &[&str]) -> bool {
        self.send_raw(link, &encoded(record), fds)
    }

    /// Sends bytes as one record.
    pub fn send_raw(&mut self, link: Link, bytes: &[u8], fds: &[&str]) -> bool {
        let line = [&["send", link.name(), &hex(bytes)][..], fds].concat().join(" ");
        match self.ask(&line).as_deref() {
            Some("sent") => true,
            // The other end has ended the link before we were told to end, or does not read.
            Some(answer) if ["pipe", "reset", "unavailable"].iter().any(|w| answer.contains(w)) => false,
            Some(answer) => panic!("{line}: {answer}"),
            None => false,
        }
    }

    /// The next record of a link, if one comes within `millis`.
    pub fn receive(&mut self, link: Link, millis: u64) -> Came {
        let Some(answer) = self.ask(&format!("receive {} {millis}", link.name())) else { return Came::Ended };
        let words: Vec<&str> = answer.split(' ').collect();
        match words[..] {
            ["record", bytes, fds] => Came::Record(unhex(bytes), fds.parse().expect("a number")),
            ["nothing"] => Came::Nothing,
            ["closed"] => Came::Ended,
            _ if answer.contains("reset") || answer.contains("pipe") => Came::Ended,
            _ => panic!("receive: {answer}"),
        }
    }

    /// The next record of a link, decoded; panics when none comes.
    pub fn expect<R: Record>(&mut self, link: Link) -> (R, usize) {
        match self.receive(link, 10_000) {
            Came::Record(bytes, fds) => (child_ipc::wire::decode(&bytes).expect("a record of this link"), fds),
            other => panic!("{link:?}: {other:?} where a record was expected"),
        }
    }

    /// What the newest descriptor holds.
    pub fn read(&mut self) -> Result<Vec<u8>, String> {
        let answer = self.ask("read").expect("the worker lives");
        answer.strip_prefix("bytes ").map(unhex).ok_or(answer)
    }

    /// Writes to the newest descriptor.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let answer = self.ask(&format!("write {}", hex(bytes))).expect("the worker lives");
        if answer.starts_with("wrote") { Ok(()) } else { Err(answer) }
    }

    /// Writes into a region of the ledger: its own (0), or that of another worker.
    pub fn write_ledger(&mut self, which: usize, offset: u64, bytes: &[u8]) -> Result<(), String> {
        let answer = self.ask(&format!("ledger {which} {offset} {}", hex(bytes))).expect("the worker lives");
        if answer.starts_with("wrote") { Ok(()) } else { Err(answer) }
    }

    /// Tries to make its region of the ledger shorter: what it is told, if it lives.
    pub fn cut_ledger(&mut self) -> Option<String> {
        self.ask("cut")
    }

    /// Logs `session` in as an honest worker would, and receives its grant.
    pub fn log_in(&mut self, daemon: &Daemon, name: &str, session: u32) {
        self.send(Link::Authd, &check(daemon, name, session), &[]);
        let (said, _) = self.expect::<worker_authd::FromAuthd>(Link::Authd);
        let accepted = |v: &worker_authd::Verdict| v.outcome == worker_authd::Outcome::Accepted;
        assert!(matches!(&said, worker_authd::FromAuthd::Verdict(verdict) if accepted(verdict)), "{said:?}");
        let (granted, _) = self.expect::<ToWorker>(Link::Monitor);
        assert!(matches!(granted, ToWorker::Granted(g) if g.session.0 == session), "{granted:?}");
    }

    /// Asks the broker; the answer, and how many descriptors came with it.
    pub fn ask_broker(&mut self, op: worker_broker::Op) -> (worker_broker::Answer, usize) {
        self.send(Link::Broker, &worker_broker::Ask { tag: 7, op }, &[]);
        self.expect(Link::Broker)
    }

    /// Waits until the monitor has ended it, and checks that nothing came on `link` meanwhile.
    pub fn is_ended(mut self, link: Link, what: &str) {
        if let Came::Record(bytes, fds) = self.receive(link, 0) {
            panic!("{what}: it got {} with {fds} descriptors", hex(&bytes));
        }
        let ended = within(std::time::Duration::from_secs(5), || (!self.process.is_alive()).then_some(()));
        assert!(ended.is_some(), "{what}: the worker still lives");
    }

    /// A line, and its answer; `None` when the worker has ended.
    fn ask(&mut self, line: &str) -> Option<String> {
        self.lines.get_mut().write_all(format!("{line}\n").as_bytes()).ok()?;
        let mut answer = String::new();
        match self.lines.read_line(&mut answer) {
            Ok(1..) => Some(answer.trim_end().to_owned()),
            Ok(0) | Err(_) => None,
        }
    }
}

/// A password check with the right password of `name`.
#[must_use]
pub fn check(daemon: &Daemon, name: &str, session: u32) -> worker_authd::ToAuthd {
    use child_ipc::types::{Secret, SessionId, UserName};
    worker_authd::ToAuthd::Check(worker_authd::Check {
        session: SessionId(session),
        user: UserName::new(name.as_bytes()).expect("a name"),
        password: Secret::new(daemon.site.account(name).password.as_bytes().to_vec()),
        source: "127.0.0.1".parse().expect("an address"),
        host: None,
        secured: true,
        possession: None,
    })
}

fn is_hostile(process: Process, programs: &Path) -> bool {
    process.link("exe").map(PathBuf::from) == Some(programs.join("caisson-worker"))
}
