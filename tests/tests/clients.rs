//! The clients people use: every byte comes back (issues 2 and 3, bars).
//!
//! Each of the first four uploads a tree of 500 files, lists, goes on with an upload and a download that were interrupted, renames, and
//! downloads the tree; at the root-started daemon, where files must belong to the account, and at an ordinary user's.
//! The others move a tree of small files there and back.

mod clients {
    pub mod basic_ftp;
    pub mod curl;
    pub mod ftplib;
    pub mod lftp;
    pub mod ncftp;
    pub mod rclone;
    pub mod small;
    pub mod stage;
    pub mod suppaftp;
    pub mod tnftp;
    pub mod wget;
}

use clients::{
    small::there_and_back,
    stage::{Client, Stage},
};
use e2e::{Daemon, Site, root_or_skip};

fn as_root(client: &dyn Client) {
    if root_or_skip(client.name()) {
        Stage::set(Daemon::start(Site::roomy())).play(client);
    }
}

fn as_ordinary_user(client: &dyn Client) {
    Stage::set(Daemon::serve_as_ordinary_user(Site::roomy())).play(client);
}

#[test]
fn curl_gets_every_byte_back_from_a_daemon_started_by_root() {
    as_root(&clients::curl::Curl);
}

#[test]
fn curl_gets_every_byte_back_from_an_ordinary_user_s_daemon() {
    as_ordinary_user(&clients::curl::Curl);
}

#[test]
fn lftp_gets_every_byte_back_from_a_daemon_started_by_root() {
    as_root(&clients::lftp::Lftp);
}

#[test]
fn lftp_gets_every_byte_back_from_an_ordinary_user_s_daemon() {
    as_ordinary_user(&clients::lftp::Lftp);
}

#[test]
fn ftplib_gets_every_byte_back_from_a_daemon_started_by_root() {
    as_root(&clients::ftplib::Ftplib);
}

#[test]
fn ftplib_gets_every_byte_back_from_an_ordinary_user_s_daemon() {
    as_ordinary_user(&clients::ftplib::Ftplib);
}

#[test]
fn wget_gets_every_byte_from_a_daemon_started_by_root() {
    as_root(&clients::wget::Wget);
}

#[test]
fn wget_gets_every_byte_from_an_ordinary_user_s_daemon() {
    as_ordinary_user(&clients::wget::Wget);
}

#[test]
fn ncftp_gets_every_byte_back() {
    there_and_back(&clients::ncftp::Ncftp, 200);
}

#[test]
fn tnftp_gets_every_byte_back() {
    there_and_back(&clients::tnftp::Tnftp, 200);
}

#[test]
fn rclone_copies_two_thousand_files_both_ways_and_finds_no_difference() {
    there_and_back(&clients::rclone::Rclone, 2000);
}

#[test]
fn basic_ftp_of_node_gets_every_byte_back() {
    match clients::basic_ftp::modules() {
        Some(_) => there_and_back(&clients::basic_ftp::BasicFtp, 200),
        None => eprintln!("skipped: basic-ftp (npm could not install it: tests/setup)"),
    }
}

#[test]
fn suppaftp_of_rust_gets_every_byte_back() {
    there_and_back(&clients::suppaftp::Suppaftp, 200);
}
