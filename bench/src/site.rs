//! The place of a run: a folder on tmpfs, three system users, one PAM file. Made and removed by the keeper.
//!
//! One run at a time: a lock says so, and what a killed run left behind is removed by the next.
//! None of the users can log in to the machine: their shell refuses, and the one password is drawn anew for every run.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::error::{Call, Error, Result};
use crate::machine;
use crate::plan::{MIB, Plan};
use crate::proc;

/// The system user the servers act for.
pub const USER: &str = "caisson-bench";
/// The system user of Caisson's workers during the run.
pub const WORKER_USER: &str = "caisson-bench-worker";
/// The system user of Caisson's authd during the run.
pub const AUTHD_USER: &str = "caisson-bench-authd";
const DIR: &str = "/dev/shm/caisson-bench";
const LOCK: &str = "/run/caisson-bench.lock";
/// The PAM service that vsftpd is told to ask.
pub const PAM_SERVICE: &str = "caisson-bench";
const PAM_FILE: &str = "/etc/pam.d/caisson-bench";
const PAM_TEXT: &str = "auth required pam_unix.so\naccount required pam_unix.so\n";

/// Removes everything again when dropped.
#[derive(Debug)]
pub struct Site {
    _lock: File,
}

impl Site {
    /// Makes folder, users and PAM file.
    ///
    /// # Errors
    /// Not root, another run is going on, or one of them cannot be made.
    pub fn make() -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::Other(
                "needs root: the servers change their uid, and a user is added for the run".into(),
            ));
        }
        let lock = File::create(LOCK).call(|| format!("create {LOCK}"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| Error::Other(format!("another run holds {LOCK}")))?;
        remove();
        let site = Self { _lock: lock };
        fs::create_dir(DIR).call(|| format!("mkdir {DIR}"))?;
        for folder in ["conf", "log", "empty", "data"] {
            let path = Path::new(DIR).join(folder);
            fs::create_dir(&path).call(|| format!("mkdir {}", path.display()))?;
        }
        fs::set_permissions(Path::new(DIR).join("conf"), Permissions::from_mode(0o711)).call(|| "chmod conf".into())?;
        make_users()?;
        fs::write(PAM_FILE, PAM_TEXT).call(|| format!("write {PAM_FILE}"))?;
        Ok(site)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        remove();
        let _ = fs::remove_file(LOCK);
    }
}

fn remove() {
    let _ = fs::remove_dir_all(DIR);
    let _ = fs::remove_file(PAM_FILE);
    for name in [USER, WORKER_USER, AUTHD_USER] {
        let Ok(Some(user)) = nix::unistd::User::from_name(name) else { continue };
        proc::end_all_of(user.uid.as_raw());
        // userdel refuses while a process of the user is there.
        let mut tries = 0;
        while let Err(fault) = run(Command::new("userdel").arg(name), "") {
            tries += 1;
            if tries == 20 {
                eprintln!("bench: the user {name} is left behind: {fault}");
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn make_user(name: &str, home: &str) -> Result<()> {
    let mut command = Command::new("useradd");
    command.args(["--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin"]);
    run(command.args(["--home-dir", home, name]), "").map(drop)
}

fn make_users() -> Result<()> {
    let data = format!("{DIR}/data");
    make_user(USER, &data)?;
    make_user(WORKER_USER, "/nonexistent")?;
    make_user(AUTHD_USER, "/nonexistent")?;
    let mut seed = [0_u8; 16];
    File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut seed)).call(|| "read /dev/urandom".into())?;
    let password: String = seed.iter().map(|b| format!("{b:02x}")).collect();
    // md5crypt: the cheapest hash that all of the peers take, so a login costs them as little as it can.
    let script = r#"chomp(my $p = <STDIN>); print crypt($p, '$1$caisson$')"#;
    let hash = run(Command::new("perl").args(["-e", script]), &format!("{password}\n"))?;
    run(Command::new("chpasswd").arg("-e"), &format!("{USER}:{hash}\n"))?;
    for (name, text) in [("password", &password), ("hash", &hash)] {
        let path = format!("{DIR}/conf/{name}");
        fs::write(&path, text).call(|| format!("write {path}"))?;
        fs::set_permissions(&path, Permissions::from_mode(0o600)).call(|| format!("chmod {path}"))?;
    }
    make_certificate()?;
    let user = account()?;
    chown(&data, Some(user.uid.as_raw()), Some(user.gid.as_raw())).call(|| format!("chown {data}"))
}

/// One certificate for all servers: `certificate.pem`, `key.pem`, and both in `pair.pem`.
fn make_certificate() -> Result<()> {
    let [certificate, key, pair] = ["certificate", "key", "pair"].map(|name| format!("{DIR}/conf/{name}.pem"));
    let mut command = Command::new("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "30",
    ]);
    run(command.args(["-subj", "/CN=localhost", "-keyout", &key, "-out", &certificate]), "")?;
    let read = |path: &str| fs::read_to_string(path).call(|| format!("read {path}"));
    fs::write(&pair, read(&key)? + &read(&certificate)?).call(|| format!("write {pair}"))?;
    for path in [&key, &pair] {
        fs::set_permissions(path, Permissions::from_mode(0o600)).call(|| format!("chmod {path}"))?;
    }
    Ok(())
}

fn account() -> Result<nix::unistd::User> {
    nix::unistd::User::from_name(USER)
        .call(|| format!("look up {USER}"))?
        .ok_or_else(|| Error::Other(format!("the user {USER} does not exist")))
}

/// Runs a program with `input` on its standard input; what it printed.
///
/// # Errors
/// It cannot be started or did not succeed; the error carries its standard error.
pub fn run(command: &mut Command, input: &str) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .call(|| format!("start {name}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).call(|| format!("write to {name}"))?;
    }
    let output = child.wait_with_output().call(|| format!("wait for {name}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::Other(format!("{name} failed ({}): {words}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The measurer's view of the place.
#[derive(Debug)]
pub struct Place {
    /// Configuration files of the servers.
    pub conf: PathBuf,
    /// What the servers print.
    pub log: PathBuf,
    /// An empty folder that nobody may write.
    pub empty: PathBuf,
    /// The home of the user: the files that are moved.
    pub data: PathBuf,
    /// The user's numbers.
    pub uid: u32,
    /// The user's group.
    pub gid: u32,
    /// Its password of this run.
    pub password: String,
    /// The password in crypt(5) form.
    pub hash: String,
    /// Where the peers were unpacked.
    pub peers: PathBuf,
    /// Where Caisson's programs are.
    pub programs: PathBuf,
}

impl Place {
    /// Finds what the keeper made.
    ///
    /// # Errors
    /// There is no such place: the measurer was started by hand.
    pub fn find(peers: &Path, programs: &Path) -> Result<Self> {
        let dir = Path::new(DIR);
        let user = account()?;
        let read = |name: &str| {
            let path = dir.join("conf").join(name);
            fs::read_to_string(&path).call(|| format!("read {}", path.display()))
        };
        let absolute = |path: &Path| std::path::absolute(path).call(|| format!("resolve {}", path.display()));
        Ok(Self {
            conf: dir.join("conf"),
            log: dir.join("log"),
            empty: dir.join("empty"),
            data: dir.join("data"),
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            password: read("password")?,
            hash: read("hash")?,
            peers: absolute(peers)?,
            programs: absolute(programs)?,
        })
    }

    /// Writes a server's configuration file, readable by root only.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.conf.join(name);
        let what = || format!("write {}", path.display());
        fs::write(&path, text).call(what)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600)).call(what)?;
        Ok(path)
    }

    /// Makes the files that are downloaded: `big.bin`, `part.bin`, `crowd.bin`, `s0000.bin` and so on; and the
    /// directory `list`, whose files have sizes but no bytes.
    ///
    /// # Errors
    /// They cannot be written: most likely /dev/shm is too small.
    pub fn fill(&self, plan: &Plan) -> Result<()> {
        let mut block = vec![0_u8; usize::try_from(MIB).unwrap_or(1 << 20)];
        File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut block)).call(|| "read /dev/urandom".into())?;
        self.file("big.bin", plan.big, &block)?;
        self.file("part.bin", plan.part, &block)?;
        for number in 0..plan.small {
            self.file(&small_name('s', number), plan.small_len, &block)?;
        }
        self.file("crowd.bin", plan.crowd_len, &block)?;
        let list = self.data.join("list");
        fs::create_dir(&list).call(|| format!("mkdir {}", list.display()))?;
        for number in 0..plan.entries {
            let path = list.join(format!("entry-{number:05}.bin"));
            let made = File::create(&path).and_then(|file| file.set_len(37 * number as u64));
            made.and_then(|()| chown(&path, Some(self.uid), Some(self.gid)))
                .call(|| format!("write {}", path.display()))?;
        }
        chown(&list, Some(self.uid), Some(self.gid)).call(|| format!("chown {}", list.display()))
    }

    /// Bytes that can still be stored: tmpfs takes them from memory.
    ///
    /// # Errors
    /// statvfs(3) fails.
    pub fn room(&self) -> Result<u64> {
        let found = rustix::fs::statvfs(&self.data).call(|| format!("statvfs {}", self.data.display()))?;
        Ok((found.f_bavail * found.f_frsize).min(machine::memory_available()))
    }

    fn file(&self, name: &str, len: u64, block: &[u8]) -> Result<()> {
        let path = self.data.join(name);
        let what = || format!("write {}", path.display());
        let mut file = File::create(&path).call(what)?;
        let mut left = len;
        while left > 0 {
            let piece = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
            file.write_all(&block[..piece]).call(what)?;
            left -= piece as u64;
        }
        chown(&path, Some(self.uid), Some(self.gid)).call(what)
    }

    /// Removes an uploaded file if it is there.
    pub fn forget(&self, name: &str) {
        let _ = fs::remove_file(self.data.join(name));
    }

    /// Checks that an upload arrived whole.
    ///
    /// # Errors
    /// It is missing or has another size.
    pub fn expect(&self, name: &str, len: u64) -> Result<()> {
        let found = fs::metadata(self.data.join(name)).call(|| format!("stat {name}"))?.size();
        if found == len { Ok(()) } else { Err(Error::Other(format!("{name} has {found} bytes, expected {len}"))) }
    }
}

/// The name of the small file `number`; `kind` is `s` for those that are downloaded, `u` for uploads.
pub fn small_name(kind: char, number: usize) -> String {
    format!("{kind}{number:04}.bin")
}
