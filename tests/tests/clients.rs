//! The clients people use: every byte comes back (issues 2 and 3, bars).
//!
//! Each of the first four uploads a tree of 500 files, lists, goes on with an upload and a download that were interrupted, renames, and
//! downloads the tree; at the root-started daemon, where files must belong to the account, and at an ordinary user's.
//! The others move a tree of small files there and back.

mod clients {
    pub mod basic_ftp;
    pub mod curl;
    pub mod ftplib;
    pub mod java;
    pub mod lftp;
    pub mod ncftp;
    pub mod openssl;
    pub mod rclone;
    pub mod small;
    pub mod stage;
    pub mod suppaftp;
    pub mod tnftp;
    pub mod wget;
}

use std::{collections::BTreeSet, fs, path::Path};

use clients::{
    small::{on_stage, there_and_back},
    stage::{Client, Reach, Stage},
};
use e2e::{Daemon, Site, root_or_skip, tree};

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
    as_root(&clients::curl::Curl(&[]));
}

#[test]
fn curl_gets_every_byte_back_from_an_ordinary_user_s_daemon() {
    as_ordinary_user(&clients::curl::Curl(&[]));
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

/// Under TLS, where every data connection has to resume the session of its control connection.
fn under_tls(client: &dyn Client, reach: Reach) {
    if root_or_skip(client.name()) {
        Stage::secured(Site::roomy(), reach).play(client);
    }
}

#[test]
fn curl_gets_every_byte_back_under_tls() {
    curl_under_tls(&[], Reach::Explicit, "if-offered");
}

#[test]
fn curl_gets_every_byte_back_under_tls_1_2_and_resumes_every_data_connection() {
    curl_under_tls(&["--tls-max", "1.2"], Reach::Explicit, "required");
}

#[test]
fn curl_gets_every_byte_back_under_tls_from_the_first_byte_on() {
    curl_under_tls(&[], Reach::Implicit, "if-offered");
}

#[test]
fn curl_resumes_downloads_in_a_row_by_tls_1_3() {
    clients::curl::downloads_in_a_row();
}

/// A smaller tree: it waits between files. Of TLS 1.3 it has one ticket for uploads in a row (caisson.toml(5),
/// `data_resumption`).
fn curl_under_tls(options: &'static [&'static str], reach: Reach, resumption: &str) {
    if !root_or_skip("curl under TLS") {
        return;
    }
    let curl = clients::curl::Curl(options);
    let mut site = Site::roomy();
    site.set("tls_required = \"data\"").set(&format!("data_resumption = \"{resumption}\""));
    let stage = Stage::under_tls(site, reach);
    on_stage(&stage, 88, |from| curl.upload(&stage, from), |to| curl.download(&stage, to));
    stage.go_on(&curl);
}

#[test]
fn lftp_gets_every_byte_back_under_tls() {
    under_tls(&clients::lftp::Lftp, Reach::Explicit);
}

#[test]
fn lftp_gets_every_byte_back_under_tls_from_the_first_byte_on() {
    under_tls(&clients::lftp::Lftp, Reach::Implicit);
}

#[test]
fn ftplib_gets_every_byte_back_under_tls_and_resumes_every_data_connection() {
    under_tls(&clients::ftplib::Ftplib, Reach::Explicit);
}

#[test]
fn curl_with_tls_on_the_control_connection_alone_is_served_where_the_policy_allows_it() {
    clients::curl::control_alone();
}

#[test]
fn curl_with_many_connections_at_once_is_served_under_tls_where_nothing_is_resumed() {
    clients::curl::in_parallel();
}

#[test]
fn curl_that_resumes_nothing_is_told_by_an_alert_where_it_has_to() {
    clients::curl::without_sessions();
}

#[test]
fn java_gets_every_byte_back_under_tls_and_resumes_every_data_connection() {
    clients::java::every_byte();
}

#[test]
fn openssl_s_client_shakes_hands_by_both_versions_and_is_answered() {
    clients::openssl::asks();
}

/// Some files in a directory of their own, some of which `*.txt` matches; fetched with that pattern.
fn mget(name: &str, get: impl Fn(&Stage, &str, &Path)) {
    if !root_or_skip(name) {
        return;
    }
    let stage = Stage::set(Daemon::start(Site::roomy()));
    let texts = ["one.txt", "two words.txt", "t.txt"];
    stage.daemon.mkdir("alice", "sub");
    for directory in ["", "sub/"] {
        for file in texts.iter().chain(&["one.bin", ".hidden.txt"]) {
            stage.daemon.put("alice", &format!("{directory}{file}"), format!("{directory}{file}").as_bytes());
        }
    }
    for (directory, pattern) in [("", "*.txt"), ("sub/", "/sub/*.txt"), ("", "[ot]*.t?t")] {
        let to = stage.work.join("got");
        fs::create_dir_all(to.join("sub")).expect("mkdir");
        get(&stage, pattern, &to);
        let got = tree::files(&to);
        let names: BTreeSet<_> = got.keys().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(names, BTreeSet::from(texts), "{name}: {pattern}");
        for path in got.keys() {
            let file = path.file_name().and_then(|name| name.to_str()).expect("a name");
            assert_eq!(fs::read_to_string(to.join(path)).expect("read"), format!("{directory}{file}"), "{name}");
        }
        fs::remove_dir_all(&to).expect("remove");
    }
}

#[test]
fn mget_of_tnftp_fetches_what_a_pattern_matches() {
    // It keeps the path, below where it stands.
    mget("tnftp mget", |stage, pattern, to| clients::tnftp::mget(stage, pattern.trim_start_matches('/'), to));
}

#[test]
fn ncftp_gets_what_a_pattern_matches() {
    mget("ncftp get with a pattern", clients::ncftp::mget);
}

#[test]
fn rclone_copies_two_thousand_files_both_ways_and_finds_no_difference() {
    there_and_back(&clients::rclone::Rclone, 2000);
}

#[test]
fn basic_ftp_of_node_gets_every_byte_back() {
    match clients::basic_ftp::modules() {
        Some(_) => there_and_back(&clients::basic_ftp::BasicFtp, 200),
        None => e2e::skipped("basic-ftp", "npm could not install it (tests/setup)"),
    }
}

#[test]
fn suppaftp_of_rust_gets_every_byte_back() {
    there_and_back(&clients::suppaftp::Suppaftp, 200);
}
