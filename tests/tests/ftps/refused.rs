//! Data connections that are refused do no harm to files: what was there is as it was, what is new is empty, and who writes to it
//! meanwhile loses nothing.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::unix::fs::{chown, symlink},
    path::Path,
    sync::Arc,
};

use e2e::{Daemon, until};
use rustls::{ClientConfig, SupportedProtocolVersion};

use super::wire::{BOTH, Session, over, trusting};
use crate::site;

/// Who comes to the data connection of an upload.
#[derive(Debug, Clone, Copy)]
enum Who {
    /// A client that resumes nothing.
    Stranger,
    /// One with a ticket of another session.
    Another,
    /// One that does not speak TLS.
    InClear,
    /// One that closes at once.
    Nobody,
    /// One that closes in the middle of its handshake, and the session with it.
    Gone,
}

const ALL: [Who; 5] = [Who::Stranger, Who::Another, Who::InClear, Who::Nobody, Who::Gone];

/// Everything in a home: names, and what is in them.
fn content(home: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(home).expect("list").map(|entry| entry.expect("an entry"));
    entries.map(|e| (e.file_name().into_string().expect("UTF-8"), fs::read(e.path()).unwrap_or_default())).collect()
}

/// An upload that is refused.
fn refuse(daemon: &Daemon, version: &'static SupportedProtocolVersion, who: Who, lines: &[&str]) {
    let mut session = Session::login(&daemon.site, "alice", &[version]);
    let another: Arc<ClientConfig> = match who {
        Who::Another => Session::login(&daemon.site, "alice", &[version]).config,
        _ => trusting(&daemon.site, &[version]),
    };
    let mut data = session.control.passive();
    let (last, first) = lines.split_last().expect("a line");
    first.iter().for_each(|line| drop(session.control.expect(line, &[350])));
    session.control.expect(last, &[150, 125]);
    match who {
        Who::Stranger | Who::Another => {
            let mut data = over(&another, data);
            let _ = data.write_all(b"poison");
            drop(data);
        }
        Who::InClear => {
            let _ = data.write_all(b"poison in clear");
            drop(data);
        }
        Who::Nobody => drop(data),
        Who::Gone => {
            let mut hello = Vec::new();
            over(&another, data.try_clone().expect("dup")).conn.write_tls(&mut hello).expect("a vector");
            data.write_all(&hello[..hello.len() / 2]).expect("send");
            drop(session);
            return;
        }
    }
    session.control.expect_reply(&[522]);
    session.control.in_step();
}

#[test]
fn an_upload_that_is_refused_changes_no_file_and_fills_none() {
    for atomic in [false, true] {
        let Some(mut site) = site("refused uploads") else { return };
        site.set("data_resumption = \"required\"").set(&format!("atomic_uploads = {atomic}"));
        let daemon = Daemon::start(site);
        let kept = daemon.put("alice", "kept", b"as it was");
        let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(&kept).expect("stat"));
        let home = daemon.home("alice", "");
        symlink("kept", home.join("link")).expect("symlink");
        std::os::unix::fs::lchown(home.join("link"), Some(owner), None).expect("lchown");
        fs::create_dir(home.join("sub")).expect("mkdir");
        chown(home.join("sub"), Some(owner), None).expect("chown");
        let before = content(&home);
        let uploads: [&[&str]; 9] = [
            &["STOR new"],
            &["APPE new"],
            &["STOU new"],
            &["STOU"],
            &["STOR kept"],
            &["APPE kept"],
            &["STOU kept"],
            &["REST 3", "STOR kept"],
            &["STOR link"],
        ];
        for (version, who) in BOTH.into_iter().flat_map(|version| ALL.map(|who| (version, who))) {
            for lines in uploads {
                refuse(&daemon, version, who, lines);
                let what = format!("{lines:?} by {who:?}, {version:?}, atomic_uploads = {atomic}, does no harm");
                let no_new = atomic && lines == ["STOR new"];
                until(&what, || {
                    let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) =
                        content(&home).into_iter().partition(|(name, _)| before.contains_key(name));
                    let harmless = old == before && new.values().all(|bytes| bytes.is_empty() && !no_new);
                    harmless.then_some(())
                });
                content(&home).into_keys().filter(|name| !before.contains_key(name)).for_each(|name| {
                    fs::remove_file(home.join(name)).expect("remove");
                });
            }
        }
        let mut session = Session::login(&daemon.site, "alice", &BOTH);
        for line in ["STOR new", "APPE appended", "STOR link"] {
            assert_eq!(session.store(line, b"content").1.code, 226);
        }
        for name in ["new", "appended", "kept"] {
            assert_eq!(fs::read(home.join(name)).expect("read"), b"content");
        }
    }
}

#[test]
fn whoever_writes_to_a_file_that_a_refused_upload_has_made_loses_nothing() {
    let Some(mut site) = site("uploads of one name") else { return };
    site.set("data_resumption = \"required\"");
    let daemon = Daemon::start(site);
    let home = daemon.home("alice", "");
    for line in ["STOR new", "APPE new"] {
        let mut refused = Session::login(&daemon.site, "alice", &BOTH);
        let data = refused.control.passive();
        refused.control.expect("STOR new", &[150, 125]);
        // By its path and not through the daemon, as another account's broker or a program of this machine would.
        let mut other = fs::OpenOptions::new().append(true).open(home.join("new")).expect("it is there");
        let mut session = Session::login(&daemon.site, "alice", &BOTH);
        drop(data);
        refused.control.expect_reply(&[522]);
        refused.control.in_step();
        assert_eq!(session.store(line, b"content").1.code, 226);
        other.write_all(b" and more").expect("write");
        assert_eq!(fs::read(home.join("new")).expect("read"), b"content and more", "{line}");
        fs::remove_file(home.join("new")).expect("remove");
    }
}
