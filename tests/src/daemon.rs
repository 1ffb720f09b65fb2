//! One running daemon: started, watched until it is ready, and ended with everything it started.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use nix::sys::signal::Signal;

use crate::{
    ftp::Client,
    procs::{self, Process},
    programs,
    site::{self, Site},
    wait::{until, within},
};

/// A daemon under test.
#[derive(Debug)]
pub struct Daemon {
    /// Its place.
    pub site: Site,
    /// The monitor.
    pub monitor: Process,
    child: Child,
    log: Log,
    ended: bool,
}

impl Daemon {
    /// Starts `caissond -f` as we are and waits until it is ready.
    #[must_use]
    pub fn start(site: Site) -> Self {
        site.write();
        let mut command = Command::new(site.programs.join("caissond"));
        command.arg("-f").arg(site.config());
        Self::run(site, command)
    }

    /// Starts `caissond serve` as an ordinary user, by copies of the programs that user may execute, and waits until
    /// it is ready. The account is called `alice` and has alice's password and home.
    #[must_use]
    pub fn serve_as_ordinary_user(mut site: Site) -> Self {
        let copies = site.dir.join("programs");
        programs::copy(&site.programs, &copies);
        site.programs = copies;
        let account = site.account_mut("alice");
        account.uid = ordinary_uid();
        let (home, password) = (account.home.clone(), account.password);
        let file = site.dir.join("password");
        site::write_private(&file, &format!("{password}\n"));
        site::give(&file, ordinary_uid());
        site::give(&home, ordinary_uid());
        let mut command = Command::new(site.programs.join("caissond"));
        command.arg("serve").arg(&home).arg("--ftp").arg(site.address.to_string());
        command.arg("--user").arg("alice").arg("--password-file").arg(&file);
        command.arg("--passive").arg(format!("{}-{}", site.passive.0, site.passive.1));
        if nix::unistd::Uid::effective().is_root() {
            command.uid(ordinary_uid()).gid(ordinary_uid());
        }
        command.current_dir(&home);
        Self::run(site, command)
    }

    /// Runs a command that becomes a monitor, and waits until it is ready.
    #[must_use]
    pub fn run(site: Site, command: Command) -> Self {
        let mut daemon = Self::spawn(site, command);
        let log = daemon.log.clone();
        let ready = within(Duration::from_secs(30), || {
            let ended = daemon.child.try_wait().expect("wait for the monitor").is_some();
            (ended || log.tells_ready()).then_some(!ended)
        });
        assert!(ready == Some(true), "the daemon did not become ready; it said:\n{}", daemon.log.text());
        daemon
    }

    /// Runs a command that becomes a monitor.
    fn spawn(site: Site, mut command: Command) -> Self {
        // One for the tests themselves is not for it.
        if !command.get_envs().any(|(name, _)| name == "NOTIFY_SOCKET") {
            command.env_remove("NOTIFY_SOCKET");
        }
        // Whatever the monitor leaves behind becomes our child, so it can be found and ended.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).expect("become subreaper");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|cause| panic!("start {command:?}: {cause}"));
        let log = Log::default();
        log.follow(child.stdout.take().expect("piped"));
        log.follow(child.stderr.take().expect("piped"));
        let monitor = Process::of(child.id()).expect("a child not yet reaped");
        Daemon { site, monitor, child, log, ended: false }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.site.address
    }

    /// A client that has been greeted.
    #[must_use]
    pub fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// The text a new client is greeted with.
    #[must_use]
    pub fn connect_greeting(&self) -> String {
        let mut client = Client::connect_silently(self.address());
        format!("{:?}", client.expect_reply(&[220]))
    }

    /// A client that is logged in as `name`.
    #[must_use]
    pub fn login(&self, name: &str) -> Client {
        let mut client = self.connect();
        client.login(name, self.site.account(name).password);
        client
    }

    /// A path in the home of `name`.
    #[must_use]
    pub fn home(&self, name: &str, path: &str) -> PathBuf {
        self.site.account(name).home.join(path)
    }

    /// Puts a file into the home of `name`, as its own.
    pub fn put(&self, name: &str, path: &str, content: &[u8]) -> PathBuf {
        let file = self.home(name, path);
        fs::write(&file, content).unwrap_or_else(|cause| panic!("write {}: {cause}", file.display()));
        site::give(&file, self.site.account(name).uid);
        file
    }

    /// Makes a directory in the home of `name`, as its own.
    pub fn mkdir(&self, name: &str, path: &str) -> PathBuf {
        let dir = self.home(name, path);
        fs::create_dir(&dir).unwrap_or_else(|cause| panic!("mkdir {}: {cause}", dir.display()));
        site::give(&dir, self.site.account(name).uid);
        dir
    }

    /// The living workers, oldest first.
    #[must_use]
    pub fn workers(&self) -> Vec<Process> {
        self.children("caisson-worker")
    }

    /// authd.
    #[must_use]
    pub fn authd(&self) -> Process {
        let found = self.children("caisson-authd");
        *found.first().expect("no authd")
    }

    /// The living brokers, oldest first.
    #[must_use]
    pub fn brokers(&self) -> Vec<Process> {
        self.children("caisson-broker")
    }

    fn children(&self, name: &str) -> Vec<Process> {
        // comm holds 15 bytes
        procs::children(self.monitor.pid)
            .into_iter()
            .filter(|(_, comm)| name.starts_with(comm))
            .map(|(p, _)| p)
            .collect()
    }

    /// The monitor and all its children.
    #[must_use]
    pub fn everybody(&self) -> Vec<Process> {
        let children = procs::children(self.monitor.pid).into_iter().map(|(process, _)| process);
        std::iter::once(self.monitor).chain(children).collect()
    }

    /// The proportional set size of all its processes together, in bytes.
    #[must_use]
    pub fn pss(&self) -> u64 {
        self.everybody().iter().map(|p| p.memory("Pss")).sum()
    }

    /// The worker that holds this client's control connection.
    #[must_use]
    pub fn worker_of(&self, client: &Client) -> Process {
        let inode = procs::socket_between(self.address(), client.local()).expect("the client's connection");
        let socket = format!("socket:[{inode}]");
        let holder = self.workers().into_iter().find(|w| w.descriptors().contains(&socket));
        holder.unwrap_or_else(|| panic!("no worker holds {socket}"))
    }

    /// Two clients, logged in as `name`, that are served by different workers.
    #[must_use]
    pub fn login_at_two_workers(&self, name: &str) -> (Client, Client) {
        let first = self.login(name);
        let there = self.worker_of(&first);
        // A worker that does not wait for clients leaves them to the other one.
        there.halt();
        let second = self.login(name);
        there.signal(Signal::SIGCONT);
        assert_ne!(self.worker_of(&second), there);
        (first, second)
    }

    /// What it has printed and logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits until a log line holds all `words`, and returns it.
    pub fn logged(&self, words: &[&str]) -> String {
        let line = within(Duration::from_secs(10), || self.log.line_with(words));
        line.unwrap_or_else(|| panic!("no log line with {words:?}:\n{}", self.log.text()))
    }

    /// Sends the monitor a signal.
    pub fn signal(&self, signal: Signal) {
        self.monitor.signal(signal);
    }

    /// Waits until the monitor has ended and checks that nothing is left running.
    pub fn wait(&mut self) -> ExitStatus {
        let status = until("the monitor has ended", || self.child.try_wait().expect("wait for the monitor"));
        self.ended = true;
        let left = within(Duration::from_secs(5), || procs::orphans().is_empty().then_some(()));
        if left.is_none() {
            let orphans = procs::orphans();
            orphans.iter().for_each(|o| o.signal(Signal::SIGKILL));
            panic!("left running: {orphans:?}\n{}", self.log.text());
        }
        status
    }

    /// Ends it by SIGTERM.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        self.wait()
    }

    fn end_by_force(&mut self) {
        let family = self.everybody();
        family.iter().for_each(|p| p.signal(Signal::SIGKILL));
        let _ = self.child.wait();
        let _ = within(Duration::from_secs(5), || family.iter().all(|p| !p.is_alive()).then_some(()));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if thread::panicking() {
            self.end_by_force();
            eprintln!("--- the daemon said at last:\n{}", self.log.tail(40));
            return;
        }
        if !self.ended {
            self.stop();
        }
        let text = self.log.text();
        assert!(!text.contains("panicked at"), "a process panicked:\n{text}");
    }
}

/// What a command that must end says, and how it ends.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// Both outputs, standard error first.
    pub said: String,
}

/// Runs a command that becomes a monitor and must end by itself; checks that nothing is left running.
#[must_use]
pub fn run_to_end(site: Site, command: Command) -> Ended {
    let mut daemon = Daemon::spawn(site, command);
    let status = daemon.wait();
    // The readers see the end of the pipes once the last holder has ended.
    let said = until("its output is read", || daemon.log.complete());
    Ended { status, said }
}

fn ordinary_uid() -> u32 {
    let uid = nix::unistd::Uid::effective();
    if uid.is_root() { site::ORDINARY_UID } else { uid.as_raw() }
}

/// Lines collected from a pipe by a thread.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    lines: Vec<String>,
    open: usize,
}

impl Log {
    fn lock(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, pipe: impl Read + Send + 'static) {
        self.lock().open += 1;
        let log = self.clone();
        thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                log.lock().lines.push(String::from_utf8_lossy(&line).into_owned());
            }
            log.lock().open -= 1;
        });
    }

    /// `serve` prints a line of its own; by a configuration file, it is logged.
    fn tells_ready(&self) -> bool {
        self.lock().lines.iter().any(|l| l == "ready" || l.ends_with(" monitor: process ready"))
    }

    fn line_with(&self, words: &[&str]) -> Option<String> {
        self.lock().lines.iter().find(|l| words.iter().all(|w| l.contains(w))).cloned()
    }

    fn text(&self) -> String {
        self.lock().lines.join("\n")
    }

    fn tail(&self, count: usize) -> String {
        let lines = self.lock();
        lines.lines[lines.lines.len().saturating_sub(count)..].join("\n")
    }

    fn complete(&self) -> Option<String> {
        let lines = self.lock();
        (lines.open == 0).then(|| lines.lines.join("\n"))
    }
}
