//! The client and the floor against each other: the real program, no privilege needed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use bench::client::{Session, source};
use bench::crowd::{Crowd, Job, stored_name};
use bench::error::Error;

struct Floor {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Floor {
    fn start(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let program = env!("CARGO_BIN_EXE_bench");
        let child = Command::new(program).arg("floor").arg(port.to_string()).arg(&folder).spawn().unwrap();
        let floor = Self { child, port, folder };
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
        floor
    }

    fn session(&self) -> Session {
        let mut session = Session::connect(self.port, Instant::now() + Duration::from_secs(30)).unwrap();
        session.login("anybody", "anything").unwrap();
        session
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn files_of_every_size_arrive_whole_in_both_directions() {
    let floor = Floor::start("whole");
    let bytes: Vec<u8> = (0..5_000_003_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    let path = floor.folder.join("source.bin");
    fs::write(&path, &bytes).unwrap();
    let file = source(&path).unwrap();
    let mut session = floor.session();
    for len in [0, 1, 16 << 10, 64 << 10, (64 << 10) + 1, bytes.len()] {
        session.upload("up.bin", &file, len as u64).unwrap();
        assert!(fs::read(floor.folder.join("up.bin")).unwrap() == bytes[..len], "{len} bytes up");
        assert_eq!(session.download("up.bin").unwrap(), len as u64, "{len} bytes down");
    }
    session.quit().unwrap();
}

#[test]
fn more_sessions_than_threads_are_served_at_once() {
    let floor = Floor::start("many");
    let sessions: Vec<_> = (0..50).map(|_| floor.session()).collect();
    for session in sessions.into_iter().rev() {
        session.quit().unwrap();
    }
}

#[test]
fn a_crowd_loses_nobody_and_every_file_arrives_whole() {
    let floor = Floor::start("crowd");
    let path = floor.folder.join("source.bin");
    fs::write(&path, vec![7_u8; 300_001]).unwrap();
    let file = source(&path).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut crowd = Crowd::new(10, 40).unwrap();
    let len = 300_001;
    for job in [
        Job::Login { port: floor.port, user: "anybody", password: "anything" },
        Job::Retr { name: "source.bin", len },
        Job::Stor { source: &file, len },
        Job::Quit,
    ] {
        crowd.run(&job, deadline).unwrap();
        assert_eq!(crowd.lost, 0, "{job:?}: {:?}", crowd.fault);
    }
    assert_eq!(crowd.received, 40 * len);
    for number in 10..50 {
        assert_eq!(fs::metadata(floor.folder.join(stored_name(number))).unwrap().len(), len);
    }
}

#[test]
fn clients_of_a_crowd_that_are_answered_out_of_the_ordinary_are_lost_and_counted() {
    let floor = Floor::start("lost");
    let deadline = Instant::now() + Duration::from_secs(30);
    let login = Job::Login { port: floor.port, user: "anybody", password: "anything" };
    let mut crowd = Crowd::new(0, 5).unwrap();
    crowd.run(&login, deadline).unwrap();
    crowd.run(&Job::Retr { name: "none", len: 1 }, deadline).unwrap();
    assert_eq!(crowd.lost, 5);
    assert!(matches!(crowd.fault.take(), Some(Error::Reply { .. })));
    crowd.replace_lost(&login, 2, deadline).unwrap();
    crowd.run(&Job::Quit, deadline).unwrap();
    assert_eq!(crowd.lost, 5);
}

#[test]
fn a_name_outside_the_folder_is_refused() {
    let floor = Floor::start("outside");
    for name in ["../outside/x", "/etc/passwd", ".hidden", "none"] {
        assert!(matches!(floor.session().download(name), Err(Error::Reply { .. })), "{name}");
    }
}

#[test]
fn a_line_without_an_end_closes_the_session_and_nothing_else() {
    let floor = Floor::start("endless");
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, floor.port)).unwrap();
    let _ = stream.write_all(&[b'a'; 4096]);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    floor.session().quit().unwrap();
}
