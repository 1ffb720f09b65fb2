//! The clients people use, with a tree of 500 files: every byte comes back (issue 2, bars).
//!
//! Each client uploads the tree, lists, goes on with an upload and a download that were interrupted, renames, and
//! downloads the tree; at the root-started daemon, where files must belong to the account, and at an ordinary user's.

mod clients {
    pub mod curl;
    pub mod ftplib;
    pub mod lftp;
    pub mod stage;
    pub mod wget;
}

use clients::stage::{Client, Stage};
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
