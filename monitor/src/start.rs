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
use ipc::link::monitor_config::Config;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

use crate::monitor::{AUTHD, Monitor, SIGNALS, Stage};
use crate::timer::{Alarm, Timers};
use crate::{certificates, config::Users, control::Control, log::Log, notify, reap, reload, reload::Reloads, spawn};

/// How long all processes together may take to be ready.
const START: Duration = Duration::from_secs(15);
/// Why nothing was started, if nothing went wrong.
const STOPPED: &str = "told to stop while starting";
/// Descriptors wanted: two a session in a worker, and passive sockets.
const DESCRIPTORS: u64 = 1 << 18;

/// Starts everything and serves until told to stop; `check`: only judges the configuration; `report`: says on standard output
/// what is weaker, and `ready`.
pub(crate) fn run(file: PathBuf, check: bool, report: bool) -> Result<(), String> {
    let mut m = prepare(file)?;
    let started = configure(&mut m, check).and_then(|()| if check { Ok(()) } else { start(&mut m) });
    if check || started.is_err() {
        reap::kill_everybody(&mut m, "the start failed");
        m.stage = Stage::Stopping;
        while !reap::nobody_left(&m) {
            m.turn();
        }
        return started;
    }
    if report {
        let weaker: String = m.log.weaker.iter().map(|weaker| format!("  weaker    {weaker}\n")).collect();
        let _ = writeln!(io::stdout(), "{weaker}ready");
    }
    m.stage = Stage::Serving;
    m.log.begin();
    m.log.own(Level::Info, Event::Process, "ready");
    reload::next(&mut m);
    certificates::look(&mut m);
    notify::send("READY=1");
    while m.stage != Stage::Stopping || !reap::nobody_left(&m) {
        m.turn();
    }
    m.log.own(Level::Info, Event::Process, "stopped");
    Ok(())
}

/// A monitor without a configuration.
fn prepare(file: PathBuf) -> Result<Monitor, String> {
    umask(Mode::from_raw_mode(0o077));
    raise_descriptors();
    let (epoll, signals) = events().map_err(|e| format!("epoll or signalfd: {e}"))?;
    Ok(Monitor {
        log: Log::new(Level::default()),
        deaths: Vec::new(),
        last_id: AUTHD,
        config: Config::default(),
        users: Users::default(),
        hashes: None,
        file,
        reloads: Reloads::default(),
        asked: None,
        listeners: Vec::new(),
        ledger: Default::default(),
        control: None,
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

/// Reads the configuration, and does everything that can be refused before a process is started; `check`: no more than says so.
fn configure(m: &mut Monitor, check: bool) -> Result<(), String> {
    reload::ask(m, None);
    while m.reloads.first.is_none() && m.stage == Stage::Starting {
        m.turn();
    }
    let fresh = m.reloads.first.take().unwrap_or_else(|| Err(STOPPED.to_owned()))?;
    if check {
        let (file, listeners, users) = (m.file.display(), fresh.config.listen.len(), fresh.users.len());
        fresh.warnings.iter().for_each(|warning| eprintln!("{file}: warning: {warning}"));
        println!("{file}: listeners: {listeners}, users: {users}: valid");
        return Ok(());
    }
    let fixed = fresh.config.fixed.clone();
    for name in ["caisson-authd", "caisson-worker", "caisson-broker"] {
        spawn::find(name, fixed.program_dir.as_deref(), spawn::LIBEXEC)?;
    }
    m.deaths = vec![0; fixed.workers as usize + 1];
    m.ledger.make(&fresh.config).map_err(|e| format!("memfd_create or /proc/self/fd: {e}; mount /proc"))?;
    reload::swap(m, fresh)?;
    m.control = fixed.control_socket.as_deref().map(|path| Control::bind(path, &m.epoll)).transpose()?;
    Ok(())
}

/// Starts authd and the workers, confines the monitor, and waits until everybody is ready.
fn start(m: &mut Monitor) -> Result<(), String> {
    std::env::set_current_dir("/").map_err(|e| format!("chdir /: {e}"))?;
    m.start_authd().map_err(|e| format!("caisson-authd: {e}"))?;
    for slot in 1..=m.config.fixed.workers as usize {
        m.start_worker(slot).map_err(|e| format!("caisson-worker: {e}"))?;
    }
    m.timers.set(START, Alarm::StartOver);
    match sandbox::confine_monitor() {
        Err(sandbox::Error::Unenforced { what, why }) if m.config.fixed.best_effort => {
            m.log.note_weaker(&format!("{what} not enforced: {why}"));
        }
        confined => confined.map_err(|e| e.to_string())?,
    }
    while m.failure.is_none() && m.stage == Stage::Starting {
        let ready = m.authd.as_ref().is_some_and(|authd| authd.ready) && m.workers.values().all(|w| w.child.ready);
        if ready && m.asked.is_none() {
            return Ok(());
        }
        m.turn();
    }
    Err(m.failure.take().unwrap_or_else(|| STOPPED.to_owned()))
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
    let raise = |limit| setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit });
    let _ = raise(most.map(|most| most.max(DESCRIPTORS))).or_else(|_| raise(most));
}
