//! The start-up ladder, in order: configuration judged → sockets bound → children started → own sandbox → everybody ready → loop.
//!
//! What fails before `ready` is one line naming setting and remedy, exit status 1, and nothing left running.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use ipc::link::log::{Event, Level};
use ipc::types::ListenerId;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};
use sandbox::{Confinement, Enforcement, Rights, Role, Root};

use crate::config::{Config, Users};
use crate::listen::{self, Listening};
use crate::monitor::{Monitor, SIGNALS, Stage};
use crate::timer::{Alarm, Timers};
use crate::{control::Control, log::Log, notify, reap, spawn::Programs};

/// How long all processes together may take to be ready.
const START: Duration = Duration::from_secs(15);
/// Descriptors wanted: two a session in a worker, and passive sockets.
const DESCRIPTORS: u64 = 1 << 18;

/// Starts everything and serves until told to stop; `report`: says on standard output what is weaker, and `ready`.
pub(crate) fn run(config: Config, users: Users, file: PathBuf, report: bool) -> Result<(), String> {
    let mut m = prepare(config, users, file)?;
    if let Err(why) = start(&mut m) {
        reap::kill_everybody(&mut m, "the start failed");
        m.stage = Stage::Stopping;
        while !reap::nobody_left(&m) {
            m.turn();
        }
        return Err(why);
    }
    if report {
        let weaker: String = m.log.weaker.iter().map(|weaker| format!("  weaker    {weaker}\n")).collect();
        let _ = writeln!(io::stdout(), "{weaker}ready");
    }
    m.stage = Stage::Serving;
    m.log.begin();
    m.log.own(Level::Info, Event::Process, "ready");
    notify::send("READY=1");
    while m.stage != Stage::Stopping || !reap::nobody_left(&m) {
        m.turn();
    }
    m.log.own(Level::Info, Event::Process, "stopped");
    Ok(())
}

/// Everything that can be refused before a process is started.
fn prepare(config: Config, users: Users, file: PathBuf) -> Result<Monitor, String> {
    umask(Mode::from_raw_mode(0o077));
    raise_descriptors();
    let programs = Programs::find(config.fixed.program_dir.as_deref())?;
    let (epoll, signals) = events().map_err(|e| format!("epoll or signalfd: {e}"))?;
    let mut listeners = Vec::new();
    for (listen, id) in config.listen.iter().zip(1..) {
        if let Some(address) = listen.address {
            let socket = Some(listen::listener(address, &listen.place)?);
            listeners.push(Listening { id: ListenerId(id), address, socket });
        }
    }
    let control = config.fixed.control_socket.as_deref().map(|path| Control::bind(path, &epoll)).transpose()?;
    Ok(Monitor {
        log: Log::new(config.log_level),
        deaths: vec![0; config.fixed.workers as usize + 1],
        // Listeners have the first ones.
        last_id: 100,
        config,
        users,
        file,
        programs,
        listeners,
        control,
        epoll,
        signals,
        timers: Timers::default(),
        stage: Stage::Starting,
        authd: None,
        workers: BTreeMap::new(),
        brokers: BTreeMap::new(),
        failure: None,
    })
}

/// Starts authd and the workers, confines the monitor, and waits until everybody is ready.
fn start(m: &mut Monitor) -> Result<(), String> {
    std::env::set_current_dir("/").map_err(|e| format!("chdir /: {e}"))?;
    m.start_authd().map_err(|e| format!("{}: {e}", m.programs.authd.display()))?;
    for slot in 1..=m.config.fixed.workers as usize {
        m.start_worker(slot).map_err(|e| format!("{}: {e}", m.programs.worker.display()))?;
    }
    m.timers.set(START, Alarm::StartOver);
    let enforcement = if m.config.fixed.best_effort { Enforcement::BestEffort } else { Enforcement::Required };
    let order = Confinement { role: Role::Monitor, ids: None, root: Root::Keep, rights: Rights::NONE, enforcement };
    let report = sandbox::confine(&order).and_then(sandbox::Confined::seal).map_err(|e| e.to_string())?;
    report.weaker.iter().for_each(|weaker| m.log.note_weaker(weaker));
    while m.failure.is_none() && m.stage == Stage::Starting {
        let ready = m.authd.as_ref().is_some_and(|authd| authd.ready) && m.workers.values().all(|w| w.child.ready);
        if ready {
            return Ok(());
        }
        m.turn();
    }
    Err(m.failure.take().unwrap_or_else(|| "told to stop while starting".to_owned()))
}

/// What is waited on. Signals become events; children inherit that, so that a Ctrl-C on the terminal reaches the monitor alone.
fn events() -> io::Result<(Rc<OwnedFd>, SignalFd)> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM] {
        signals.add(signal);
    }
    signals.thread_block()?;
    let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &signals, EventData::new_u64(SIGNALS.into()), EventFlags::IN)?;
    Ok((Rc::new(epoll), signals))
}

/// As many descriptors as we may have, for workers inherit the limit.
fn raise_descriptors() {
    let most = getrlimit(Resource::Nofile).maximum;
    for limit in [most.map(|most| most.max(DESCRIPTORS)), most] {
        if setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit }).is_ok() {
            break;
        }
    }
}
