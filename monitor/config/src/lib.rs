//! caisson-config: reads caisson.toml(5) and caisson-users(5) for the monitor, whole, checks them whole, or says in one line with
//! file, line and column what is wrong.
//!
//! Started by the monitor at start and at each reload; descriptor 0 is the link. Runs as nobody when root started it, without
//! capabilities, and sees the machine's files read-only: names of users and groups are looked up here, by the C library, and
//! root links neither that nor the TOML parser. Reads from: two descriptors the monitor opened. Trusts: the admin who wrote them.
//!
//! `keywords.rs` is the table everything derives from; `parse.rs` walks a file along it; `value.rs` reads single values;
//! `check.rs` judges the whole, `doubts.rs` warns of what is right and will not work; `table.rs` writes the accounts down.
//! Not here: who may write the files (monitor/src/config.rs), and binding or swapping what is configured (monitor/src/reload.rs).
#![forbid(unsafe_code)]

mod check;
mod doubts;
mod keywords;
mod parse;
mod table;
mod value;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;

use child_ipc::Received;
use child_ipc::link::Confine;
use child_ipc::link::monitor_config::{Config, ConfigEnd, ConfigStart, FromConfig, Loaded, ToConfig, User};
use child_ipc::link::settings::{BrokerSettings, FtpSettings, Require, Resumption, Tls};
use child_ipc::link::user_record::{CertificateLogin, Fingerprint};
use child_ipc::types::{Blob, HostName, Network, UserName};
use child_sandbox::{Confinement, Enforcement, Rights, Role, Root};

use crate::doubts::Doubts;

pub use check::{accounts, ask_for_certificates, settings};
pub use keywords::{CONFIG, Keyword, Kind, REPEATED, REQUIRED, UNSET, USER};
pub use parse::Source;

/// Longest file read, in bytes.
const LONGEST: u64 = 32 << 20;

/// Every account by name.
pub type Users = BTreeMap<UserName, Judged>;

/// caisson.toml as read: what the monitor is told, and what is used up here.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "named after the keywords, which caisson.toml(5) describes")]
pub struct Settings {
    pub config: Config,
    /// Packed into `config`, like the next.
    pub ftp: FtpSettings,
    pub brokers: BrokerSettings,
    pub users_file: PathBuf,
    pub worker_user: String,
    pub authd_user: String,
    /// What workers are told of it, if there is a certificate.
    pub tls: Tls,
    /// Where TLS is asked for, which needs a certificate: offset and keyword.
    pub wants_certificate: Option<(usize, &'static str)>,
    pub anonymous: bool,
    /// The names of `[[host]]`.
    pub hosts: Vec<HostName>,
    pub anonymous_account: Entry,
}

/// One repeated section as read; only the fields of its own keywords are filled in.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "named after the keywords, which caisson.toml(5) describes")]
pub struct Part {
    /// `address` of `[[listen]]`.
    pub address: Option<SocketAddr>,
    pub proxies: Vec<Network>,
    pub tls: Option<Security>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub clients: Vec<Network>,
    /// `address` of `[[passive]]`.
    pub external: Option<Ipv4Addr>,
    /// `tls_required` of `[[network]]`.
    pub require: Option<Require>,
    /// `data_resumption` of `[[network]]`.
    pub resumption: Option<Resumption>,
    pub name: Option<HostName>,
    pub banner: Option<Blob<1024>>,
}

/// `tls` of `[[listen]]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// There is none.
    No,
    /// By AUTH.
    Explicit,
    /// From the first byte on.
    Implicit,
}

/// One `[[user]]` as written: names looked up, not yet judged.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "named after the keywords, which caisson-users(5) describes")]
pub struct Entry {
    pub name: Option<UserName>,
    pub uid: Option<u32>,
    /// Without it, the primary group of `uid`.
    pub gid: Option<u32>,
    pub groups: Vec<u32>,
    pub account: Judged,
}

/// An account, complete and judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// The stored hash, for authd; none: no password is ever right.
    pub hash: Option<Blob<512>>,
    /// Any password is right: anonymous accounts.
    pub any_password: bool,
    /// For authd: clients must have named one of these.
    pub hosts: Vec<HostName>,
    /// For authd: what its certificates are for.
    pub certificate_login: CertificateLogin,
    /// For authd: its certificates.
    pub certificates: Vec<Fingerprint>,
    /// What the monitor is told.
    pub user: User,
}

/// Takes the link, reads, answers, and is done. What it cannot tell the monitor goes to standard error.
pub fn run() -> ExitCode {
    let opened = child_sandbox::take_link().map_err(|e| e.to_string());
    let link = opened.and_then(|link| ConfigEnd::from_fd(link).map_err(|e| format!("descriptor 0: {e}")));
    let told = link.and_then(|mut link| {
        let (last, tables) = match read(&mut link) {
            Ok((loaded, tables)) => (FromConfig::Done(Box::new(loaded)), tables.into()),
            Err(why) => (FromConfig::Refused(Blob::cut(why.as_bytes())), Vec::new()),
        };
        let tables: Vec<_> = tables.iter().map(AsFd::as_fd).collect();
        link.send(&last, &tables).map_err(|e| format!("the link: {e:?}"))
    });
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("caisson-config: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Confines the process, then reads both files. The error is one line.
fn read(link: &mut ConfigEnd) -> Result<(Loaded, [OwnedFd; 2]), String> {
    let (ToConfig::Start(ConfigStart { confine, file, .. }), config) = receive(link)? else {
        return Err("caisson-config: Start comes first".to_owned());
    };
    let root = confine.ids.is_some();
    let (weaker, doubts) = confined(confine)?;
    let source = read_file(config, String::from_utf8_lossy(file.as_bytes()).into_owned(), "-f")?;
    let mut settings = settings(&source, root)?;
    link.send(&FromConfig::UsersFile(settings.users_file.clone()), &[]).map_err(|e| format!("the link: {e:?}"))?;
    let (ToConfig::Users, users) = receive(link)? else {
        return Err("caisson-config: Users follows UsersFile".to_owned());
    };
    let name = settings.users_file.display().to_string();
    let users = hidden(users).map_err(|why| format!("{name}: {why} (named by users_file)"))?;
    let users = read_file(users, name, "users_file")?;
    let users = accounts(&users, &source, &settings)?;
    ask_for_certificates(&mut settings, &users).ok_or("caisson-config: settings of workers are too long")?;
    let tables = table::tables(&users).map_err(|e| format!("memfd: {e}"))?;
    let warnings = doubts.about(&settings, &users);
    Ok((Loaded { config: settings.config, weaker: Blob::cut(weaker.as_bytes()), warnings }, tables))
}

/// The next record with its descriptor; the link has checked that there is exactly one.
fn receive(link: &mut ConfigEnd) -> Result<(ToConfig, OwnedFd), String> {
    let Received { record, mut fds } = link.recv().map_err(|e| format!("caisson-config: the link: {e:?}"))?;
    Ok((record, fds.pop().ok_or("caisson-config: no descriptor")?))
}

/// What could not be enforced, and what was to be prepared before.
fn confined(confine: Confine) -> Result<(String, Doubts), String> {
    let ids = confine.ids.map(|ids| child_sandbox::Ids { uid: ids.uid, gid: ids.gid, groups: ids.groups });
    let enforcement = if confine.best_effort { Enforcement::BestEffort } else { Enforcement::Required };
    let order = Confinement { role: Role::Config, ids, root: Root::Keep, rights: Rights::NONE, enforcement };
    let confined = child_sandbox::confine(order).map_err(|e| e.to_string())?;
    // Modules of the name service are loaded now, for nothing becomes executable after the seal.
    value::load_name_service();
    let doubts = Doubts::new().map_err(|e| format!("caisson-config: a thread: {e}"))?;
    let report = confined.seal().map_err(|e| e.to_string())?;
    Ok((report.weaker.join("; "), doubts))
}

/// Refuses a file that everybody on the machine may read: whoever has a hash can try passwords on it for as long as they like.
/// Its group may read it, as with shadow(5): who that is, the admin has said.
fn hidden(file: OwnedFd) -> Result<OwnedFd, String> {
    let file = File::from(file);
    match file.metadata().map_err(|e| e.to_string())?.mode() & 0o7777 {
        mode if mode & 0o004 != 0 => Err(format!("mode {mode:04o} lets everybody read password hashes; chmod o-r")),
        _ => Ok(file.into()),
    }
}

/// The text of a file the monitor has opened; `setting` names it.
fn read_file(file: OwnedFd, name: String, setting: &str) -> Result<Source, String> {
    let mut text = String::new();
    let read = File::from(file).take(LONGEST).read_to_string(&mut text);
    read.map_err(|e| format!("{name}: {e} (named by {setting})"))?;
    Ok(Source { file: name, text })
}
