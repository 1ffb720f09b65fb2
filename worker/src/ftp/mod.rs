//! The FTP protocol of one client: takes lines, time and verdicts, emits replies and orders.
//!
//! Reads from: the client (hostile), and what the loop reports of authd, the monitor and the brokers. Touches no
//! socket and no descriptor, so tests, fuzzers and the loop run the same code.
//!
//! | file | what |
//! |---|---|
//! | `line` | bytes of the control connection to command lines: Telnet, limits |
//! | `reply` | replies to bytes; every refusal's code in one function |
//! | `table` | the verbs: one row each; FEAT and HELP come from it |
//! | `cmd` | the verbs: one file each |
//! | `state` | where a client stands; a step consumes one state and yields the next |
//! | `data` | what is ordered of a data connection, and how that ends |
//!
//! Not here: waiting, sockets, time limits (event.rs, session.rs).

pub mod cmd;
pub mod data;
pub mod line;
pub mod reply;
pub mod state;
pub mod table;
pub mod talk;

use std::net::{IpAddr, Ipv4Addr};

use child_ipc::{
    link::{
        log,
        settings::{FtpSettings, Require},
        worker_authd::Outcome,
        worker_broker::{Done, Op, Why},
    },
    types::{BrokerId, HostName, Port, Secret, SessionId, UserName},
};

use data::{Ending, Move, Via, Work};
use line::Line;

pub use reply::Out;
pub use state::State;

/// What every step may know.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// caisson.toml(5), as far as it concerns this role.
    pub settings: &'a FtpSettings,
    /// The client's address, never an IPv4 address in IPv6 form.
    pub peer: IpAddr,
    /// It has come by a proxy: nobody can connect to it.
    pub proxied: bool,
    /// What is under TLS.
    pub shield: Shield,
    /// Milliseconds of a clock that only goes forward.
    pub now: u64,
}

/// What of a client's connections is under TLS (RFC 4217), or could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shield {
    /// AUTH would be possible: there is a certificate, and the listener is no plain one.
    pub possible: bool,
    /// No more handshakes are possible for the moment.
    pub busy: bool,
    /// The control connection is.
    pub on: bool,
    /// PBSZ was said.
    pub sized: bool,
    /// PROT P: the next data connections will be.
    pub private: bool,
    /// What has to be, whatever the settings have become since its handshake began.
    pub required: Require,
    /// The client has shown a certificate in the handshake, and has not logged in since.
    pub certified: bool,
}

impl Context<'_> {
    /// What has to be under TLS: the strictest of what the settings say now and said when the handshake began, and of what the
    /// account demands.
    pub fn require(&self) -> Require {
        self.settings.require(self.peer).max(self.shield.required)
    }

    /// Refuses a login in clear where one has to be under TLS; whether it did. Asked at USER and again at PASS, for a reload may come
    /// in between.
    pub fn refuses_login(&self, out: &mut Out) -> bool {
        let refuses = self.require() != Require::No && !self.shield.on;
        if refuses {
            out.reply(530, "Use AUTH TLS first: no login is possible without it.");
        }
        refuses
    }

    /// Whether PORT and EPRT are possible.
    pub fn active(&self) -> bool {
        self.settings.active && !self.proxied
    }

    /// What 227 tells the client instead of the address it has connected to.
    pub fn passive_address(&self) -> Option<Ipv4Addr> {
        self.settings.places.passive_address(self.peer, self.settings.passive_address)
    }
}

/// What happens to a client's protocol.
#[derive(Debug)]
pub enum Event<'a> {
    /// The client sent a line.
    Line(Line<'a>),
    /// An ABOR stands somewhere in the lines that wait behind a transfer (RFC 959 4.1.3): cut it now. The line itself
    /// is delivered in its turn.
    Abort,
    /// STAT without argument is the next line while a transfer runs.
    Status {
        /// Bytes moved so far.
        moved: u64,
    },
    /// authd answered.
    Verdict(Outcome),
    /// The monitor granted the session: from now on it is the account's.
    Granted(SessionId, BrokerId),
    /// The monitor did not grant it.
    GrantRefused,
    /// authd died, or cannot be asked now.
    NoAuthd,
    /// The broker answered; a descriptor that came along waits in the session.
    Answer(Result<Done, Why>),
    /// The broker died.
    BrokerLost,
    /// A passive port is there (its address only if it was asked for), or none is to be had.
    Listening(Option<(Port, Option<IpAddr>)>),
    /// The text of the listing that was ordered with [`Order::ReadListing`]; `None` when it is too long.
    Listing(Option<Vec<u8>>),
    /// A transfer has ended.
    Ended(Ending),
    /// What was ordered with [`Order::Work`] has ended: the sum, or nothing to say of a copy.
    Worked(state::Worked),
    /// A time limit has passed: of a login, of silence, or of a question that nobody answers.
    Expired(&'static str),
    /// No transfer has followed PASV or EPSV in time: the port goes back.
    PortExpired,
    /// The server stops, or an admin ends the session: say 421.
    Farewell(&'static str),
}

/// What the protocol wants done. Orders of one step are obeyed in turn; at most one of them is answered by an
/// [`Event`] at once.
#[derive(Debug)]
pub enum Order {
    /// Ask authd about this password, or whether the client's certificate is enough; answered by `Verdict`, `Granted` or
    /// `GrantRefused`, `NoAuthd`.
    Check(UserName, Option<Secret>),
    /// The client has named this host, or none any more: authd is told with the next `Check`.
    Host(Option<HostName>),
    /// Send what was said and go on under TLS; what the client has sent behind its line is dropped.
    Secure,
    /// This is under TLS from now on.
    Shield(Shield),
    /// The identity has ended (QUIT, REIN, USER): tell the monitor.
    Logout,
    /// Ask the broker; answered by `Answer`.
    Ask(Op),
    /// Get a passive port, or keep the one held; answered by `Listening`.
    Listen {
        /// Whether the address is needed too (PASV).
        with_address: bool,
    },
    /// Give back the passive port and close the data connection, if there are any.
    Unlisten,
    /// A transfer is about to be ordered: begin to get its data connection.
    Open(Via),
    /// Move bytes between the data connection and the descriptor that came with the answer; answered by `Ended`.
    Move(Move),
    /// Close data connection and file at once; nothing is answered.
    Cut,
    /// Cut the transfer, sum or copy; answered by `Ended` or `Worked`, once nobody writes to a file any more.
    Abort,
    /// Sum or copy what came with the answer; answered by `Worked`.
    Work(Work),
    /// Read the listing that came with the answer; answered by `Listing`.
    ReadListing(u64),
    /// A line for the log.
    Log(log::Level, log::Event, String),
    /// Send what is to be sent and close the control connection.
    Close,
}
