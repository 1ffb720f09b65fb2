//! Samples of the records of every link: at least one a variant, and the longest there can be.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use child_ipc::{
    link::{
        CannotStart, Confine, Ready, control,
        log::{Event, Level, LogRecord},
        monitor_authd, monitor_broker, monitor_config, monitor_worker, worker_authd, worker_broker, worker_keys,
    },
    types::{
        Blob, BrokerId, Build, HostName, Ids, ListenerId, Permission, Permissions, Secret, SessionId, UserName,
        VirtPath, WorkerId,
    },
};

fn user() -> UserName {
    UserName::new(b"alice").unwrap()
}

fn path(text: &str) -> VirtPath {
    VirtPath::root().join(text.as_bytes()).unwrap()
}

fn confine() -> Confine {
    Confine { ids: Some(Ids { uid: 1, gid: 2, groups: vec![3, 4] }), best_effort: true }
}

fn ready() -> Ready {
    Ready { weaker: Blob::new(b"no mount namespace").unwrap() }
}

fn cannot() -> CannotStart {
    CannotStart { why: Blob::new(b"no such user").unwrap() }
}

fn line() -> LogRecord {
    LogRecord {
        level: Level::Info,
        event: Event::Transfer,
        session: Some(SessionId(7)),
        text: Blob::new(b"path=/a bytes=1").unwrap(),
    }
}

pub fn to_worker() -> Vec<monitor_worker::ToWorker> {
    use monitor_worker::*;
    let address = SocketAddr::from(([0; 8], 21));
    vec![
        ToWorker::Start(WorkerStart {
            build: Build::THIS,
            confine: confine(),
            worker: WorkerId(1),
            settings: Blob::new(&[b's'; SETTINGS]).unwrap(),
            ledger: (11, 12),
        }),
        ToWorker::Authd,
        ToWorker::Listener(Listener { id: ListenerId(1), address }),
        ToWorker::CloseListener(ListenerId(1)),
        ToWorker::Settings(Blob::new(&[b's'; SETTINGS]).unwrap()),
        ToWorker::PassivePool(PassiveSockets { listener: ListenerId(1) }),
        ToWorker::ConnectBack(Connecting { session: SessionId(1), errno: 0 }),
        ToWorker::ConnectBack(Connecting { session: SessionId(1), errno: 111 }),
        ToWorker::Granted(Granted { session: SessionId(1), broker: BrokerId(2), tls_required: 2 }),
        ToWorker::GrantRefused(SessionId(1)),
        ToWorker::Kick(SessionId(1)),
        ToWorker::Stop,
        ToWorker::Region(true),
    ]
}

pub fn from_worker() -> Vec<monitor_worker::FromWorker> {
    use monitor_worker::*;
    vec![
        FromWorker::Ready(ready()),
        FromWorker::CannotStart(cannot()),
        FromWorker::Log(line()),
        FromWorker::PassivePool(PassivePool { listener: ListenerId(1), wanted: 8 }),
        FromWorker::ConnectBack(ConnectBack { session: SessionId(1), port: 2000 }),
        FromWorker::SessionEnded(SessionId(1)),
        FromWorker::Lines(vec![line(), line()]),
    ]
}

pub fn to_authd() -> Vec<monitor_authd::ToAuthd> {
    use monitor_authd::*;
    let settings = AuthdSettings { max_concurrent_password_checks: 2, login_cache_ttl_secs: 300 };
    vec![
        ToAuthd::Start(AuthdStart { build: Build::THIS, confine: confine(), settings }),
        ToAuthd::Users,
        ToAuthd::AddWorker(WorkerId(1)),
        ToAuthd::DropWorker(WorkerId(1)),
        ToAuthd::Settings(settings),
        ToAuthd::Stop,
        ToAuthd::Certificates(true),
    ]
}

pub fn from_authd() -> Vec<monitor_authd::FromAuthd> {
    use monitor_authd::*;
    vec![
        FromAuthd::Ready(ready()),
        FromAuthd::CannotStart(cannot()),
        FromAuthd::Grant(Grant { worker: WorkerId(1), session: SessionId(2), user: user() }),
        FromAuthd::Log(line()),
        FromAuthd::WorkerBreach(WorkerId(1)),
        FromAuthd::Certificates(1, Blob::new(&[b'w'; 512]).unwrap()),
    ]
}

pub fn to_broker() -> Vec<monitor_broker::ToBroker> {
    use monitor_broker::*;
    vec![
        ToBroker::Start(BrokerStart {
            build: Build::THIS,
            confine: confine(),
            account: user(),
            permissions: Permissions::NONE.with(Permission::Read).bits(),
            home: "/home/alice".into(),
            settings: Blob::new(&[b's'; SETTINGS]).unwrap(),
            slots: 2,
        }),
        ToBroker::AddWorker(WorkerId(1)),
        ToBroker::DropWorker(WorkerId(1)),
        ToBroker::Stop,
    ]
}

pub fn from_broker() -> Vec<monitor_broker::FromBroker> {
    use monitor_broker::*;
    vec![
        FromBroker::Ready(ready()),
        FromBroker::CannotStart(cannot()),
        FromBroker::Log(line()),
        FromBroker::WorkerBreach(WorkerId(1)),
    ]
}

pub fn to_config() -> Vec<monitor_config::ToConfig> {
    use monitor_config::*;
    let file = Blob::new(&[b'f'; 4096]).unwrap();
    vec![ToConfig::Start(ConfigStart { build: Build::THIS, confine: confine(), file }), ToConfig::Users]
}

/// The longest there can be.
fn configuration() -> monitor_config::Config {
    use monitor_config::*;
    let long = || Some(format!("/{}", "p".repeat(4094)).into());
    let ids = || Some(Ids { uid: u32::MAX, gid: u32::MAX, groups: vec![u32::MAX; 32] });
    let fixed = Fixed {
        worker_ids: ids(),
        authd_ids: ids(),
        workers: 128,
        best_effort: true,
        control_socket: long(),
        program_dir: long(),
    };
    let address = SocketAddr::from(([u16::MAX; 8], u16::MAX));
    Config {
        listen: vec![Listen { address, place: (u32::MAX, u32::MAX), proxied: true }; 16],
        fixed,
        passive_ports: Ports { first: 1024, last: u16::MAX },
        workers: Blob::new(&[b's'; monitor_worker::SETTINGS]).unwrap(),
        brokers: Blob::new(&[b's'; monitor_broker::SETTINGS]).unwrap(),
        certificates: vec![format!("/{}", "k".repeat(1022)).into(); 32],
        ..Config::default()
    }
}

pub fn from_config() -> Vec<monitor_config::FromConfig> {
    use monitor_config::*;
    let weaker = Blob::new(&[b'w'; 1024]).unwrap();
    vec![
        FromConfig::UsersFile("/etc/caisson/users.toml".into()),
        FromConfig::Done(Box::new(Loaded {
            config: configuration(),
            weaker,
            warnings: vec![Blob::new(b"home").unwrap(); WARNINGS],
        })),
        FromConfig::Refused(Blob::new(&[b'r'; 2048]).unwrap()),
    ]
}

pub fn accounts() -> Vec<monitor_config::Account> {
    use monitor_config::*;
    let ids = Some(Ids { uid: u32::MAX, gid: u32::MAX, groups: vec![u32::MAX; 32] });
    let home = format!("/{}", "h".repeat(4094)).into();
    vec![Account {
        name: user(),
        user: User { locked: true, ids, home, permissions: Permissions::ALL.bits(), tls_required: 2 },
    }]
}

pub fn worker_to_authd() -> Vec<worker_authd::ToAuthd> {
    use worker_authd::*;
    vec![
        ToAuthd::Check(Check {
            session: SessionId(1),
            user: user(),
            password: Some(Secret::new(vec![b'p'; Secret::MAX]).unwrap()),
            source: IpAddr::V4(Ipv4Addr::LOCALHOST),
            host: HostName::new(vec!["a".repeat(61); 4].join(".").as_bytes()),
            secured: true,
            possession: Some(Box::new(Possession {
                certificate: Blob::new(&[1; CERTIFICATE]).unwrap(),
                transcript: Blob::new(&[2; 48]).unwrap(),
                scheme: 0x0806,
                signature: Blob::new(&[3; SIGNATURE]).unwrap(),
            })),
        }),
        ToAuthd::Check(Check {
            session: SessionId(2),
            user: user(),
            password: None,
            source: IpAddr::V4(Ipv4Addr::LOCALHOST),
            host: None,
            secured: false,
            possession: None,
        }),
        ToAuthd::Forget(SessionId(1)),
    ]
}

pub fn authd_to_worker() -> Vec<worker_authd::FromAuthd> {
    use worker_authd::*;
    vec![FromAuthd::Verdict(Verdict { session: SessionId(1), outcome: Outcome::Busy }), FromAuthd::Certificates]
}

pub fn to_keys() -> Vec<worker_keys::ToKeys> {
    use worker_keys::*;
    let message = Blob::new(&[b'm'; MESSAGE]).unwrap();
    vec![ToKeys::Sign(Sign { tag: u32::MAX, key: KeyName([0xff; 32]), scheme: u16::MAX, message })]
}

pub fn from_keys() -> Vec<worker_keys::FromKeys> {
    use worker_keys::*;
    vec![FromKeys::Signed(u32::MAX, Blob::new(&[b's'; SIGNATURE]).unwrap()), FromKeys::Refused(1)]
}

pub fn chains() -> Vec<worker_keys::Chain> {
    use worker_keys::*;
    let certificates = vec![Blob::new(&[b'c'; CERTIFICATE]).unwrap(); CHAIN];
    vec![Chain { key: KeyName([1; 32]), schemes: vec![u16::MAX; 16], certificates }]
}

pub fn asks() -> Vec<worker_broker::Ask> {
    use std::num::NonZeroU32;
    use worker_broker::*;
    let longest = format!("/{}", "x".repeat(254) + "/").repeat(17)[..VirtPath::MAX - 1].to_string();
    let long = path(&longest);
    [
        Op::OpenRead(long.clone()),
        Op::OpenWrite { path: long.clone(), mode: WriteMode::At(u64::MAX), umask: u16::MAX },
        Op::Stat(path("a")),
        Op::ChangeDir(path("a")),
        Op::List {
            path: long.clone(),
            form: Form::Facts(Facts::EVERY),
            hidden: true,
            written: Blob::cut(&[b'w'; 5000]),
        },
        Op::Facts { path: path("a"), facts: Facts::EVERY },
        Op::MakeDir(path("a"), 0o077),
        Op::RemoveDir(path("a")),
        Op::Remove(path("a")),
        Op::Rename { from: long.clone(), to: long.clone() },
        Op::SetModified(path("a"), i64::MIN),
        Op::SetMode(path("a"), 0o644),
        Op::SetFacts { path: path("a"), modified: Some(i64::MIN), mode: Some(u16::MAX) },
        Op::SetTimes { path: path("a"), accessed: i64::MIN, modified: i64::MAX },
        Op::Space(path("a")),
        Op::Symlink { target: long.clone(), link: long.clone() },
        Op::Copy { from: long.clone(), to: long.clone(), umask: u16::MAX },
        Op::Publish { staged: NonZeroU32::MAX, sync: true },
        Op::Discard(NonZeroU32::MIN),
    ]
    .into_iter()
    .map(|op| Ask { tag: u32::MAX, op })
    .collect()
}

pub fn answers() -> Vec<worker_broker::Answer> {
    use std::num::NonZeroU32;
    use worker_broker::*;
    let attrs = Attrs { kind: Kind::File, size: u64::MAX, modified: i64::MIN, mode: 0o7777 };
    let opened = Opened {
        size: 1,
        created: true,
        chosen: Some(path(&format!("/{}", "x".repeat(254) + "/").repeat(17)[..VirtPath::MAX - 1])),
        storage: Storage { device: u64::MAX, medium: Medium::Disk { cached: u64::MAX } },
        staged: Some(NonZeroU32::MAX),
    };
    [
        Ok(Done::Nothing),
        Ok(Done::Opened(opened)),
        Ok(Done::Stat(attrs)),
        Ok(Done::Listing { bytes: u64::MAX, directory: true }),
        Ok(Done::Line(Blob::new(&[b'l'; 5000]).unwrap())),
        Ok(Done::Space(u64::MAX)),
        Ok(Done::Copying { bytes: u64::MAX, devices: (u64::MAX, 0) }),
        Err(Why::Io(-1)),
    ]
    .into_iter()
    .map(|outcome| Answer { tag: u32::MAX, outcome })
    .collect()
}

pub fn requests() -> Vec<control::Request> {
    use control::*;
    [Command::Reload, Command::Status, Command::Kick(user())]
        .into_iter()
        .map(|command| Request { build: Build::THIS, command })
        .collect()
}

pub fn replies() -> Vec<control::Reply> {
    vec![control::Reply::Line(Blob::new(&[b'l'; 1536]).unwrap()), control::Reply::Done(true)]
}
