//! Every record of every link: there and back, too long, cut short, a descriptor too many, one too few.

use std::{
    collections::HashSet,
    fmt::Debug,
    io::IoSlice,
    mem::{Discriminant, MaybeUninit, discriminant},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::fd::{AsFd, OwnedFd},
};

use child_ipc::{
    Breach, Channel, MAX_FDS, Record, RecvError, SendError,
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
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

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

fn to_worker() -> Vec<monitor_worker::ToWorker> {
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

fn from_worker() -> Vec<monitor_worker::FromWorker> {
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

fn to_authd() -> Vec<monitor_authd::ToAuthd> {
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

fn from_authd() -> Vec<monitor_authd::FromAuthd> {
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

fn to_broker() -> Vec<monitor_broker::ToBroker> {
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

fn from_broker() -> Vec<monitor_broker::FromBroker> {
    use monitor_broker::*;
    vec![
        FromBroker::Ready(ready()),
        FromBroker::CannotStart(cannot()),
        FromBroker::Log(line()),
        FromBroker::WorkerBreach(WorkerId(1)),
    ]
}

fn to_config() -> Vec<monitor_config::ToConfig> {
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

fn from_config() -> Vec<monitor_config::FromConfig> {
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

fn accounts() -> Vec<monitor_config::Account> {
    use monitor_config::*;
    let ids = Some(Ids { uid: u32::MAX, gid: u32::MAX, groups: vec![u32::MAX; 32] });
    let home = format!("/{}", "h".repeat(4094)).into();
    vec![Account {
        name: user(),
        user: User { locked: true, ids, home, permissions: Permissions::ALL.bits(), tls_required: 2 },
    }]
}

fn worker_to_authd() -> Vec<worker_authd::ToAuthd> {
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

fn authd_to_worker() -> Vec<worker_authd::FromAuthd> {
    use worker_authd::*;
    vec![FromAuthd::Verdict(Verdict { session: SessionId(1), outcome: Outcome::Busy }), FromAuthd::Certificates]
}

fn to_keys() -> Vec<worker_keys::ToKeys> {
    use worker_keys::*;
    let message = Blob::new(&[b'm'; MESSAGE]).unwrap();
    vec![ToKeys::Sign(Sign { tag: u32::MAX, key: KeyName([0xff; 32]), scheme: u16::MAX, message })]
}

fn from_keys() -> Vec<worker_keys::FromKeys> {
    use worker_keys::*;
    vec![FromKeys::Signed(u32::MAX, Blob::new(&[b's'; SIGNATURE]).unwrap()), FromKeys::Refused(1)]
}

fn chains() -> Vec<worker_keys::Chain> {
    use worker_keys::*;
    let certificates = vec![Blob::new(&[b'c'; CERTIFICATE]).unwrap(); CHAIN];
    vec![Chain { key: KeyName([1; 32]), schemes: vec![u16::MAX; 16], certificates }]
}

fn asks() -> Vec<worker_broker::Ask> {
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

fn answers() -> Vec<worker_broker::Answer> {
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

fn requests() -> Vec<control::Request> {
    use control::*;
    [Command::Reload, Command::Status, Command::Kick(user())]
        .into_iter()
        .map(|command| Request { build: Build::THIS, command })
        .collect()
}

fn replies() -> Vec<control::Reply> {
    vec![control::Reply::Line(Blob::new(&[b'l'; 1536]).unwrap()), control::Reply::Done(true)]
}

fn a_descriptor() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

fn descriptors(count: usize) -> Vec<OwnedFd> {
    (0..count).map(|_| a_descriptor()).collect()
}

/// Sends raw bytes with descriptors, as a hostile process would.
fn send_raw(to: &OwnedFd, bytes: &[u8], fds: &[OwnedFd]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2 * MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    if !borrowed.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)));
    }
    sendmsg(to, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).unwrap();
}

fn receive_raw<R: Record>(bytes: &[u8], fds: &[OwnedFd]) -> Result<R, RecvError> {
    let (mut channel, peer) = Channel::<R, R>::pair().unwrap();
    send_raw(&peer, bytes, fds);
    channel.recv().map(|received| received.record)
}

fn encode<R: Record>(record: &R) -> Vec<u8> {
    let mut buffer = vec![0; R::CAP];
    child_ipc::wire::encode(record, &mut buffer).expect("the longest values fit the cap").to_vec()
}

fn breach<R: Record + Debug>(received: Result<R, RecvError>) -> Breach {
    match received {
        Err(RecvError::Breach(breach)) => breach,
        other => panic!("not a breach: {other:?}"),
    }
}

fn hold<R: Record + Debug>(samples: Vec<R>) {
    for record in samples {
        goes_there_and_back(&record);
        is_refused_cut_short_and_with_more_behind(&record);
        is_refused_with_the_wrong_number_of_descriptors(&record);
    }
    let too_long = vec![0; R::CAP + 1];
    assert_eq!(breach(receive_raw::<R>(&too_long, &[])), Breach::TooLong(R::CAP));
    let many = descriptors(2 * MAX_FDS);
    assert_eq!(breach(receive_raw::<R>(&[0], &many)), Breach::DescriptorsCut);
}

fn goes_there_and_back<R: Record + Debug>(record: &R) {
    for count in [*record.descriptors().start(), *record.descriptors().end()] {
        let (mut here, there) = Channel::<R, R>::pair().unwrap();
        let mut there = Channel::<R, R>::from_fd(there).unwrap();
        let fds = descriptors(count);
        let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        here.send(record, &borrowed).unwrap();
        let received = there.recv().unwrap();
        assert_eq!(format!("{record:?}"), format!("{:?}", received.record));
        assert_eq!(encode(record), encode(&received.record));
        assert_eq!(received.fds.len(), count);
    }
}

fn is_refused_cut_short_and_with_more_behind<R: Record + Debug>(record: &R) {
    let bytes = encode(record);
    let fds = descriptors(*record.descriptors().start());
    for cut in 1..bytes.len().min(64) {
        assert_eq!(breach(receive_raw::<R>(&bytes[..bytes.len() - cut], &fds)), Breach::Malformed);
    }
    let mut longer = bytes;
    longer.push(0);
    if longer.len() <= R::CAP {
        assert_eq!(breach(receive_raw::<R>(&longer, &fds)), Breach::LeftOver(1));
    }
}

fn is_refused_with_the_wrong_number_of_descriptors<R: Record + Debug>(record: &R) {
    let (least, most) = record.descriptors().into_inner();
    let bytes = encode(record);
    let mut wrong = vec![];
    if least > 0 {
        wrong.push(least - 1);
    }
    if most < MAX_FDS {
        wrong.push(most + 1);
    }
    for count in wrong {
        let fds = descriptors(count);
        assert!(matches!(breach(receive_raw::<R>(&bytes, &fds)), Breach::Descriptors { got, .. } if got == count));
        let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let (mut channel, _peer) = Channel::<R, R>::pair().unwrap();
        assert!(matches!(channel.send(record, &borrowed), Err(SendError::Contract(_))));
    }
}

fn variants<R>(samples: &[R]) -> usize {
    samples.iter().map(discriminant).collect::<HashSet<Discriminant<R>>>().len()
}

#[test]
fn every_record_of_the_monitor_worker_link_holds() {
    assert_eq!(variants(&to_worker()), 12);
    assert_eq!(variants(&from_worker()), 7);
    hold(to_worker());
    hold(from_worker());
}

#[test]
fn every_record_of_the_monitor_authd_link_holds() {
    assert_eq!(variants(&to_authd()), 7);
    assert_eq!(variants(&from_authd()), 6);
    hold(to_authd());
    hold(from_authd());
}

#[test]
fn every_record_of_the_monitor_broker_link_holds() {
    assert_eq!(variants(&to_broker()), 4);
    assert_eq!(variants(&from_broker()), 4);
    hold(to_broker());
    hold(from_broker());
}

#[test]
fn every_record_of_the_monitor_config_link_holds() {
    assert_eq!(variants(&to_config()), 2);
    assert_eq!(variants(&from_config()), 3);
    hold(to_config());
    hold(from_config());
    hold(accounts());
}

#[test]
fn every_record_of_the_worker_authd_link_holds() {
    hold(worker_to_authd());
    hold(authd_to_worker());
}

#[test]
fn every_record_of_the_worker_keys_link_holds() {
    hold(to_keys());
    hold(from_keys());
    hold(chains());
}

#[test]
fn every_record_of_the_worker_broker_link_holds() {
    hold(asks());
    hold(answers());
}

#[test]
fn every_record_of_the_control_link_holds() {
    hold(requests());
    hold(replies());
}

#[test]
fn a_refused_record_leaks_no_descriptor() {
    let (read, write) = std::io::pipe().unwrap();
    let fds = [OwnedFd::from(write)];
    assert!(receive_raw::<control::Reply>(&[0xff; 3], &fds).is_err());
    assert!(receive_raw::<control::Reply>(&encode(&control::Reply::Done(true)), &fds).is_err());
    drop(fds);
    // End of file: nobody holds the writing end any more. A leaked one would block here.
    rustix::io::ioctl_fionbio(&read, true).unwrap();
    assert_eq!(rustix::io::read(&read, &mut [0; 1]), Ok(0));
}

#[test]
fn a_link_of_another_build_is_refused_at_its_first_record() {
    let mut bytes = encode(&to_worker()[0]);
    bytes[1] ^= 1; // behind the variant: the build hash
    let received = receive_raw::<monitor_worker::ToWorker>(&bytes, &[]);
    assert_eq!(breach(received), Breach::Malformed);
}

#[test]
fn a_closed_link_says_so_and_an_empty_one_would_block() {
    let (mut here, there) = Channel::<control::Reply, control::Reply>::pair().unwrap();
    here.set_nonblocking(true);
    assert!(matches!(here.recv(), Err(RecvError::WouldBlock)));
    drop(there);
    assert!(matches!(here.recv(), Err(RecvError::Closed)));
    assert!(matches!(here.send(&control::Reply::Done(true), &[]), Err(SendError::Closed)));
}

#[test]
fn a_full_link_would_block_and_loses_nothing() {
    let (mut here, there) = Channel::<control::Reply, control::Reply>::pair().unwrap();
    let mut there = Channel::<control::Reply, control::Reply>::from_fd(there).unwrap();
    here.set_nonblocking(true);
    there.set_nonblocking(true);
    let mut sent = 0;
    while here.send(&control::Reply::Done(true), &[]).is_ok() {
        sent += 1;
    }
    assert!(matches!(here.send(&control::Reply::Done(true), &[]), Err(SendError::WouldBlock)));
    let mut received = 0;
    while there.recv().is_ok() {
        received += 1;
    }
    assert_eq!(sent, received);
}

#[test]
fn a_byte_stream_is_not_a_link() {
    let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(Channel::<control::Reply, control::Reply>::from_fd(stream.into()).is_err());
    assert!(Channel::<control::Reply, control::Reply>::from_fd(a_descriptor()).is_err());
}

#[test]
fn names_and_permissions_out_of_range_are_refused() {
    for bad in [&b""[..], b"a/b", b"a:b", b"a\nb", &[b'x'; 65]] {
        assert!(UserName::new(bad).is_none(), "{}", bad.escape_ascii());
    }
    assert_eq!(Permissions::from_bits(Permissions::ALL.bits()), Some(Permissions::ALL));
    assert_eq!(Permissions::from_bits(Permissions::ALL.bits() + 1), None);
}

#[test]
fn the_last_word_of_an_end_that_was_closed_unread_arrives_and_then_the_end() {
    let (mut monitor, theirs) = monitor_worker::MonitorEnd::pair().unwrap();
    let mut worker = monitor_worker::WorkerEnd::from_fd(theirs).unwrap();
    monitor.send(&monitor_worker::ToWorker::Stop, &[]).unwrap();
    let why = Blob::new(b"no threads").unwrap();
    worker.send(&monitor_worker::FromWorker::CannotStart(CannotStart { why: why.clone() }), &[]).unwrap();
    drop(worker);
    let last = monitor.recv().unwrap().record;
    assert!(matches!(last, monitor_worker::FromWorker::CannotStart(last) if last.why == why));
    assert!(matches!(monitor.recv(), Err(RecvError::Closed)));
}
