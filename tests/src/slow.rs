//! A file system whose disk is as slow as a scenario wants: one flat directory, served by this process over /dev/fuse.
//!
//! Reading, writing and syncing take as long as [`Slow::takes`] says, or until [`Slow::holds`] is taken back; everything
//! else is quick, unless it is [`Slow::gone`]. Only what the scenarios need of the protocol is here: include/uapi/linux/fuse.h, version 7.31.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use nix::{
    errno::Errno,
    mount::{MntFlags, MsFlags, mount, umount2},
};

const ROOT: u64 = 1;
/// `struct fuse_in_header`.
const HEADER: usize = 40;
/// Most bytes of one write, and a record's head.
const RECORD: usize = (128 << 10) + 4096;

/// The file system, while this lives.
#[derive(Debug)]
pub struct Slow {
    at: PathBuf,
    disk: Arc<Disk>,
}

#[derive(Debug, Default)]
struct Disk {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// By node: the first is node 2.
    files: Vec<Entry>,
    takes: Duration,
    holds: bool,
    dead: bool,
    /// Whether renames have no flags here.
    simple: bool,
    syncs: usize,
    sync_fails: bool,
    uid: u32,
}

#[derive(Debug)]
struct Entry {
    /// Two, once it has been linked; none, once it was replaced or removed.
    names: Vec<Vec<u8>>,
    content: Vec<u8>,
    mode: u32,
    /// The mode it was made with.
    made: u32,
}

impl Entry {
    fn new(name: Vec<u8>, mode: u32) -> Self {
        Entry { names: vec![name], content: Vec::new(), mode, made: mode }
    }
}

impl Slow {
    /// Mounts one for this user; `None`, saying so, where the machine has no FUSE.
    #[must_use]
    pub fn new(at: &Path, uid: u32) -> Option<Self> {
        let Ok(device) = File::options().read(true).write(true).open("/dev/fuse") else {
            crate::skipped(&format!("a slow disk at {}", at.display()), "needs /dev/fuse");
            return None;
        };
        let options = format!("fd={},rootmode=40755,user_id=0,group_id=0,allow_other", device.as_raw_fd());
        mount(Some("slow"), at, Some("fuse"), MsFlags::empty(), Some(options.as_str())).expect("mount");
        let disk = Arc::new(Disk::default());
        disk.state().uid = uid;
        let served = Arc::clone(&disk);
        thread::spawn(move || serve(device, &served));
        Some(Slow { at: at.to_owned(), disk })
    }

    /// Every read, write and sync takes so long from now on.
    pub fn takes(&self, time: Duration) {
        self.disk.state().takes = time;
    }

    /// Whether reads, writes and syncs wait from now on, until this is taken back.
    pub fn holds(&self, holds: bool) {
        self.disk.state().holds = holds;
        self.disk.changed.notify_all();
    }

    /// Nothing at all is answered while the result lives, as by a server that is gone.
    #[must_use]
    pub fn gone(&self) -> Gone<'_> {
        self.disk.state().dead = true;
        Gone(&self.disk)
    }

    /// It does not know the flags of renameat2(2), as NFS and most of FUSE.
    pub fn renames_simply(&self) {
        self.disk.state().simple = true;
    }

    /// Whether syncs fail from now on.
    pub fn fails_to_sync(&self, fails: bool) {
        self.disk.state().sync_fails = fails;
    }

    /// How many files were synced.
    #[must_use]
    pub fn syncs(&self) -> usize {
        self.disk.state().syncs
    }

    /// Puts a file there.
    pub fn put(&self, name: &str, content: &[u8]) {
        let content = content.to_vec();
        self.disk.state().files.push(Entry { content, ..Entry::new(name.into(), 0o644) });
    }

    /// The names it has.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let state = self.disk.state();
        let names = state.files.iter().flat_map(|file| &file.names);
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// What a file holds.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.disk.state();
        state.find(name.as_bytes()).map(|node| state.files[node].content.clone())
    }

    /// The mode bits a file was made with.
    #[must_use]
    pub fn made_with(&self, name: &str) -> Option<u32> {
        let state = self.disk.state();
        state.find(name.as_bytes()).map(|node| state.files[node].made)
    }
}

/// How long a disk is gone.
#[derive(Debug)]
pub struct Gone<'s>(&'s Disk);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.state().dead = false;
        self.0.changed.notify_all();
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.holds(false);
        let _ = umount2(&self.at, MntFlags::MNT_DETACH);
    }
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as the disk takes.
    fn spin(&self) {
        let takes = self.state().takes;
        thread::sleep(takes);
        drop(self.changed.wait_while(self.state(), |state| state.holds));
    }
}

impl State {
    fn find(&self, name: &[u8]) -> Option<usize> {
        self.files.iter().position(|file| file.names.iter().any(|known| known == name))
    }

    /// Takes a name from the file that has it, and tells which that is.
    fn unname(&mut self, name: &[u8]) -> Option<usize> {
        let place = self.find(name)?;
        self.files[place].names.retain(|known| known != name);
        Some(place)
    }

    fn file(&mut self, node: u64) -> Result<&mut Entry, Errno> {
        let place = usize::try_from(node).ok().and_then(|node| node.checked_sub(2)).ok_or(Errno::EISDIR)?;
        self.files.get_mut(place).ok_or(Errno::ENOENT)
    }

    /// `struct fuse_attr`.
    fn attributes(&mut self, node: u64) -> Result<Vec<u8>, Errno> {
        let (mode, size, links) = match node {
            ROOT => (0o040_755, 0, 1),
            node => {
                let file = self.file(node)?;
                (0o100_000 | file.mode, file.content.len() as u64, file.names.len() as u32)
            }
        };
        let mut out = words(&[node, size, size.div_ceil(512), 0, 0, 0]);
        for word in [0, 0, 0, mode, links, self.uid, self.uid, 0, 4096, 0] {
            out.extend_from_slice(&u32::to_ne_bytes(word));
        }
        Ok(out)
    }

    /// `struct fuse_entry_out`, valid for no time at all.
    fn entry(&mut self, place: usize) -> Result<Vec<u8>, Errno> {
        let node = place as u64 + 2;
        Ok([words(&[node, 0, 0, 0, 0]), self.attributes(node)?].concat())
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |word| u64::from_ne_bytes(word.try_into().expect("8 bytes")))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |word| u32::from_ne_bytes(word.try_into().expect("4 bytes")))
}

fn name(bytes: &[u8], at: usize) -> Vec<u8> {
    bytes.get(at..).unwrap_or_default().split(|&b| b == 0).next().unwrap_or_default().to_vec()
}

/// Answers until the file system is gone. What waits for the disk gets a thread of its own.
fn serve(mut device: File, disk: &Arc<Disk>) {
    let mut record = vec![0; RECORD];
    loop {
        let got = match device.read(&mut record) {
            Ok(got) => got,
            Err(error) if [Some(libc::EINTR), Some(libc::ENOENT)].contains(&error.raw_os_error()) => continue,
            Err(_) => return,
        };
        let ask = record[..got].to_vec();
        let apart = is_slow(half(&ask, 4)) || disk.state().dead;
        let (device, disk) = (device.try_clone().expect("dup"), Arc::clone(disk));
        let answer = move || {
            if let Some(answer) = answer(&ask, &disk) {
                let (errno, body) = match answer {
                    Ok(body) => (0, body),
                    Err(errno) => (-(errno as i32), Vec::new()),
                };
                let length = u32::try_from(16 + body.len()).expect("short");
                let head = [length.to_ne_bytes(), errno.to_ne_bytes()].concat();
                // Fails when the asking thread was killed.
                let _ = (&device).write_all(&[head, word(&ask, 8).to_ne_bytes().to_vec(), body].concat());
            }
        };
        if apart {
            thread::spawn(answer);
        } else {
            answer();
        }
    }
}

/// READ, WRITE, FSYNC.
fn is_slow(opcode: u32) -> bool {
    matches!(opcode, 15 | 16 | 20)
}

/// What a record is answered, if it is.
fn answer(ask: &[u8], disk: &Disk) -> Option<Result<Vec<u8>, Errno>> {
    let (opcode, node, body) = (half(ask, 4), word(ask, 16), ask.get(HEADER..).unwrap_or_default());
    if is_slow(opcode) {
        disk.spin();
    }
    let mut state = disk.changed.wait_while(disk.state(), |state| state.dead).unwrap_or_else(PoisonError::into_inner);
    Some(match opcode {
        // FORGET, INTERRUPT, BATCH_FORGET
        2 | 36 | 42 => return None,
        // INIT
        26 => Ok(init(half(body, 8))),
        // LOOKUP
        1 => state.find(&name(body, 0)).ok_or(Errno::ENOENT).and_then(|place| state.entry(place)),
        // GETATTR
        3 => state.attributes(node).map(|attributes| [words(&[0, 0]), attributes].concat()),
        // SETATTR: size and mode
        4 => set(&mut state, node, body).map(|attributes| [words(&[0, 0]), attributes].concat()),
        // OPEN, OPENDIR
        14 | 27 => Ok(words(&[0, 0])),
        // READ
        15 => state.file(node).map(|file| part(&file.content, word(body, 8), half(body, 16))),
        // WRITE
        16 => state.file(node).map(|file| write(&mut file.content, word(body, 8), body.get(40..).unwrap_or_default())),
        // UNLINK
        10 => state.unname(&name(body, 0)).map(|_| Vec::new()).ok_or(Errno::ENOENT),
        // LINK: node, name
        13 if state.find(&name(body, 8)).is_some() => Err(Errno::EEXIST),
        13 => state.file(word(body, 0)).map(|file| file.names.push(name(body, 8))).and_then(|()| {
            let place = state.find(&name(body, 8)).ok_or(Errno::ENOENT)?;
            state.entry(place)
        }),
        // RENAME, RENAME2: the directory they go to, flags or none, both names
        12 => rename(&mut state, body, 8, 0),
        45 if state.simple => Err(Errno::ENOSYS),
        45 => rename(&mut state, body, 16, half(body, 8)),
        // STATFS
        17 => Ok(words(&[1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 4096 | 255 << 32, 4096, 0, 0, 0])),
        // FSYNC
        20 if state.sync_fails => Err(Errno::EIO),
        20 => {
            state.syncs += 1;
            Ok(Vec::new())
        }
        // RELEASE, FLUSH, RELEASEDIR, FSYNCDIR
        18 | 25 | 29 | 30 => Ok(Vec::new()),
        // CREATE
        35 => {
            state.files.push(Entry::new(name(body, 16), half(body, 4) & 0o7777));
            let place = state.files.len() - 1;
            state.entry(place).map(|entry| [entry, words(&[0, 0])].concat())
        }
        _ => Err(Errno::ENOSYS),
    })
}

/// `struct fuse_init_out`.
fn init(readahead: u32) -> Vec<u8> {
    const ASYNC_READ: u32 = 1;
    const BIG_WRITES: u32 = 1 << 5;
    let flags = ASYNC_READ | BIG_WRITES;
    let mut out: Vec<u8> =
        [7, 31, readahead, flags, 0, 128 << 10, 1].iter().flat_map(|w| u32::to_ne_bytes(*w)).collect();
    out.resize(64, 0);
    out
}

fn set(state: &mut State, node: u64, body: &[u8]) -> Result<Vec<u8>, Errno> {
    const MODE: u32 = 1;
    const SIZE: u32 = 1 << 3;
    if half(body, 0) & MODE != 0 {
        state.file(node)?.mode = half(body, 68) & 0o7777;
    }
    if half(body, 0) & SIZE != 0 {
        let size = usize::try_from(word(body, 16)).map_err(|_| Errno::EFBIG)?;
        state.file(node)?.content.resize(size, 0);
    }
    state.attributes(node)
}

fn part(content: &[u8], offset: u64, size: u32) -> Vec<u8> {
    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
    content[from..content.len().min(from + size as usize)].to_vec()
}

fn write(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) -> Vec<u8> {
    let from = usize::try_from(offset).expect("a small file");
    let to = from + bytes.len();
    if content.len() < to {
        content.resize(to, 0);
    }
    content[from..to].copy_from_slice(bytes);
    words(&[bytes.len() as u64])
}

fn rename(state: &mut State, body: &[u8], at: usize, flags: u32) -> Result<Vec<u8>, Errno> {
    let from = name(body, at);
    let to = name(body, at + from.len() + 1);
    if flags & libc::RENAME_NOREPLACE != 0 && state.find(&to).is_some() {
        return Err(Errno::EEXIST);
    }
    let place = state.unname(&from).ok_or(Errno::ENOENT)?;
    state.unname(&to);
    state.files[place].names.push(to);
    Ok(Vec::new())
}
