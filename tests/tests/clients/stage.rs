//! What every client has to do, and how it is judged.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use e2e::{Daemon, Site, tree, until};

/// A client program.
pub trait Client {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Whether it can upload and rename.
    fn writes(&self) -> bool {
        true
    }
    /// Uploads everything below `from` into the account's root.
    fn upload(&self, stage: &Stage, from: &Path);
    /// Downloads everything of the account into `to`.
    fn download(&self, stage: &Stage, to: &Path);
    /// The names of a directory, hidden ones left out.
    fn list(&self, stage: &Stage, dir: &str) -> Vec<String>;
    /// Renames a file.
    fn rename(&self, stage: &Stage, from: &str, to: &str);
    /// A command that uploads one file; slowly, or going on where it stopped.
    fn put(&self, stage: &Stage, from: &Path, to: &str, how: How) -> Command;
    /// A command that downloads one file.
    fn get(&self, stage: &Stage, from: &str, to: &Path, how: How) -> Command;
}

/// How one file is moved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// So slowly that it can be interrupted: [`RATE`].
    Slowly,
    /// Going on with what is there.
    GoingOn,
}

/// Bytes per second of [`How::Slowly`].
pub const RATE: u32 = 8_000_000;
/// The file that is interrupted, in bytes.
const BIG: u64 = 32 << 20;

/// How a client reaches the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// In clear.
    Clear,
    /// Under TLS, behind AUTH; data connections too.
    Explicit,
    /// Under TLS from the first byte on.
    Implicit,
}

/// A daemon and a client's own directory.
pub struct Stage {
    /// How clients reach it.
    pub reach: Reach,
    address: SocketAddr,
    /// The daemon.
    pub daemon: Daemon,
    /// The client's directory.
    pub work: PathBuf,
}

impl Stage {
    pub fn set(daemon: Daemon) -> Self {
        let work = daemon.site.dir.join("client");
        fs::create_dir(&work).expect("mkdir");
        Stage { reach: Reach::Clear, address: daemon.address(), daemon, work }
    }

    /// With a daemon that refuses whatever is not under TLS, and data connections that do not resume.
    pub fn secured(mut site: Site, reach: Reach) -> Self {
        site.set("data_resumption = \"required\"").set("tls_required = \"data\"");
        Self::under_tls(site, reach)
    }

    /// With a daemon that speaks TLS, by what its site says.
    pub fn under_tls(mut site: Site, reach: Reach) -> Self {
        site.certify();
        let implicit = site.listen_implicitly();
        let address = if reach == Reach::Implicit { implicit } else { site.address };
        Stage { reach, address, ..Self::set(Daemon::start(site)) }
    }

    /// The certificate to trust.
    pub fn certificate(&self) -> Option<PathBuf> {
        (self.reach != Reach::Clear).then(|| self.daemon.site.certificate())
    }

    /// `ADDRESS:PORT`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The password of alice.
    pub fn password(&self) -> &'static str {
        self.daemon.site.account("alice").password
    }

    /// The home of alice.
    pub fn home(&self) -> PathBuf {
        self.daemon.site.account("alice").home.clone()
    }

    pub fn play(&self, client: &dyn Client) {
        let source = self.work.join("source");
        tree::make(&source, true);
        if client.writes() {
            client.upload(self, &source);
            tree::assert_same(&source, &self.home());
            self.assert_owned();
            self.lists_and_renames(client);
            self.interrupted_upload(client);
        } else {
            copy_tree(&source, &self.home(), self.daemon.site.account("alice").uid);
        }
        let back = self.work.join("back");
        client.download(self, &back);
        tree::assert_same(&source, &back);
        self.interrupted_download(client);
    }

    /// An upload and a download that are interrupted, and gone on with.
    pub fn go_on(&self, client: &dyn Client) {
        self.interrupted_upload(client);
        self.interrupted_download(client);
    }

    /// Everything uploaded belongs to the account, on disk.
    pub fn assert_owned(&self) {
        let uid = self.daemon.site.account("alice").uid;
        for path in tree::files(&self.home()).keys() {
            let meta = fs::symlink_metadata(self.home().join(path)).expect("stat");
            assert_eq!((meta.uid(), meta.gid()), (uid, uid), "{path:?}");
        }
    }

    fn lists_and_renames(&self, client: &dyn Client) {
        let mut listed = client.list(self, "with space");
        listed.sort();
        let on_disk = fs::read_dir(self.home().join("with space")).expect("list");
        let names = on_disk.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|n| !n.starts_with('.')).collect();
        names.sort();
        assert_eq!(listed, names, "{}", client.name());
        let (old, new) = ("plain/file-0.bin", "with space/new \"name\" [1].bin");
        client.rename(self, old, new);
        assert!(!self.home().join(old).exists() && self.home().join(new).exists());
        client.rename(self, new, old);
        assert!(self.home().join(old).exists());
    }

    fn interrupted_upload(&self, client: &dyn Client) {
        let (from, to) = (self.work.join("big"), self.home().join("big up"));
        tree::write(&from, BIG, 77);
        interrupt(client.put(self, &from, "big up", How::Slowly), &to);
        // What was under way when the client died still arrives.
        until("the server has noticed", || self.nobody_writes(&to).then_some(()));
        assert!(fs::metadata(&to).expect("stat").len() < BIG, "it was not interrupted");
        finish(client.put(self, &from, "big up", How::GoingOn));
        assert!(tree::same_bytes(&from, &to), "{} goes on with an upload", client.name());
        fs::remove_file(&to).expect("remove");
    }

    fn interrupted_download(&self, client: &dyn Client) {
        let (from, to) = (self.home().join("big down"), self.work.join("big down"));
        tree::write(&from, BIG, 78);
        e2e::site::give(&from, self.daemon.site.account("alice").uid);
        interrupt(client.get(self, "big down", &to, How::Slowly), &to);
        assert!(fs::metadata(&to).expect("stat").len() < BIG, "it was not interrupted");
        finish(client.get(self, "big down", &to, How::GoingOn));
        assert!(tree::same_bytes(&from, &to), "{} goes on with a download", client.name());
    }

    fn nobody_writes(&self, file: &Path) -> bool {
        let file = file.display().to_string();
        // A broker's view of the path begins at the account's root.
        let name = file.rsplit('/').next().unwrap_or_default();
        !self.daemon.workers().iter().any(|w| w.descriptors().iter().any(|d| d.ends_with(&format!("/{name}"))))
    }
}

/// Runs a slow transfer until a part of the file is there, and kills it.
fn interrupt(mut command: Command, file: &Path) {
    let mut child: Child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start the client");
    until("a part of the file is there", || {
        let there = fs::metadata(file).is_ok_and(|m| m.len() > 1 << 20);
        (there || child.try_wait().expect("wait").is_some()).then_some(())
    });
    let _ = child.kill();
    child.wait().expect("wait");
}

/// Runs a client to its end, which must be a good one; what it printed.
pub fn finish(mut command: Command) -> Vec<u8> {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|cause| panic!("start {command:?}: {cause}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?} ended with {}:\n{}", command.get_program(), output.status, tail(&said));
    output.stdout
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// A path as a URL spells it.
pub fn percent(path: &[u8]) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~".contains(&b);
    path.iter().map(|&b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn copy_tree(from: &Path, to: &Path, uid: u32) {
    for path in tree::files(from).keys() {
        let target = to.join(path);
        let mut made = target.parent().expect("below the top").to_path_buf();
        fs::create_dir_all(&made).expect("mkdir");
        fs::copy(from.join(path), &target).expect("copy");
        e2e::site::give(&target, uid);
        while made != to {
            e2e::site::give(&made, uid);
            made.pop();
        }
    }
}
