//! Per role: what the role needs still works after the seal, in a child of a sealed monitor.

mod common;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use child_sandbox::Role;
use common::{End, Place, Start, start};

fn said(end: End) -> String {
    match end {
        End::Said(said) => said,
        other => panic!("{other:?}"),
    }
}

fn a_worker_serves_a_client(role: Role) {
    for begun in Start::possible() {
        let place = Place::new();
        let worker = start(begun, "under-monitor", role, "none", "works", &place);
        let ready = worker.hear();
        assert_eq!(ready.trim_end() == "ready", begun == Start::AsRoot, "{ready}");
        let bytes = vec![7; 3_000_000];
        fs::write(place.dir.join("download"), &bytes).expect("a file");
        let download = File::open(place.dir.join("download")).expect("a file");
        let upload =
            File::options().read(true).write(true).create_new(true).open(place.dir.join("upload")).expect("a file");
        common::send(&worker.link, &[download.as_fd(), upload.as_fd()]);
        let mut client = TcpStream::connect(place.listener.local_addr().expect("an address")).expect("the worker");
        // Longer than any machine takes; a worker that dies leaves its client in the backlog.
        client.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
        let mut got = vec![0; bytes.len()];
        client.read_exact(&mut got).expect("the download");
        assert!(got == bytes);
        client.write_all(&bytes).expect("the upload");
        client.shutdown(Shutdown::Write).expect("the end of the upload");
        assert_eq!(client.read(&mut [0]).expect("the worker's end"), 0);
        assert_eq!(said(worker.end()), "done");
        let stored = fs::read(place.dir.join("upload")).expect("the upload");
        assert!(stored == bytes);
    }
}

#[test]
fn an_ftp_worker_accepts_sends_and_stores() {
    a_worker_serves_a_client(Role::WorkerFtp);
}

#[test]
fn an_ssh_worker_accepts_sends_and_stores() {
    a_worker_serves_a_client(Role::WorkerSsh);
}

#[test]
fn authd_reads_its_table_from_a_descriptor() {
    for begun in Start::possible() {
        let place = Place::new();
        let authd = start(begun, "under-monitor", Role::Authd, "none", "works", &place);
        assert!(authd.hear().starts_with("ready"));
        let table = rustix::fs::memfd_create("table", rustix::fs::MemfdFlags::CLOEXEC).expect("a memfd");
        rustix::io::write(&table, b"table").expect("a table");
        common::send(&authd.link, &[table.as_fd()]);
        assert_eq!(said(authd.end()), "done");
    }
}

#[test]
fn the_reader_of_the_configuration_looks_names_up() {
    for begun in Start::possible() {
        let place = Place::new();
        let reader = start(begun, "under-monitor", Role::Config, "none", "works", &place);
        assert!(reader.hear().starts_with("ready"));
        assert_eq!(said(reader.end()), "done", "{begun:?}");
    }
}

#[test]
fn a_broker_does_every_operation_beneath_its_root() {
    for begun in Start::possible() {
        let place = Place::new();
        let broker = start(begun, "under-monitor", Role::Broker, "all", "works", &place);
        assert!(broker.hear().starts_with("ready"));
        assert_eq!(said(broker.end()), "done", "{begun:?}");
    }
}

#[test]
fn a_broker_of_an_account_that_may_only_read_changes_nothing() {
    for begun in Start::possible() {
        let place = Place::new();
        let broker = start(begun, "under-monitor", Role::Broker, "read", "works", &place);
        assert!(broker.hear().starts_with("ready"));
        assert_eq!(said(broker.end()), "done", "{begun:?}");
        assert_eq!(fs::read(place.dir.join("account/file")).expect("the file"), b"in the account");
    }
}
