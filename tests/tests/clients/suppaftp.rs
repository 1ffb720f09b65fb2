//! suppaftp, the client of Rust programs.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::Path,
};

use e2e::tree;
use suppaftp::{FtpStream, list::ListParser, types::FileType};

use super::{small::Mover, stage::Stage};

pub struct Suppaftp;

fn log_in(stage: &Stage) -> FtpStream {
    let mut ftp = FtpStream::connect(stage.address()).expect("connect");
    ftp.login("alice", stage.password()).expect("log in");
    ftp.transfer_type(FileType::Binary).expect("TYPE I");
    ftp
}

fn download(ftp: &mut FtpStream, remote: &str, to: &Path) {
    fs::create_dir_all(to).expect("mkdir");
    for line in ftp.mlsd(Some(remote)).expect("MLSD") {
        let entry = ListParser::parse_mlsd(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"));
        let (path, local) = (format!("{remote}/{}", entry.name()), to.join(entry.name()));
        if entry.is_directory() {
            // Itself and its parent are in the listing (RFC 3659 section 7).
            if !line.contains("type=cdir") && !line.contains("type=pdir") {
                download(ftp, &path, &local);
            }
        } else {
            let mut bytes = ftp.retr_as_buffer(&path).unwrap_or_else(|why| panic!("RETR {path:?}: {why}"));
            std::io::copy(&mut bytes, &mut File::create(local).expect("make a file")).expect("write");
        }
    }
}

impl Mover for Suppaftp {
    fn name(&self) -> &'static str {
        "suppaftp"
    }

    fn upload(&self, stage: &Stage, from: &Path) {
        let mut ftp = log_in(stage);
        let files = tree::files(from);
        // Above comes before below.
        let folders: BTreeSet<&Path> = files.keys().flat_map(|file| file.ancestors().skip(1)).collect();
        for folder in folders.iter().filter(|folder| !folder.as_os_str().is_empty()) {
            ftp.mkdir(folder.to_str().expect("UTF-8")).expect("MKD");
        }
        for file in files.keys() {
            let mut content = File::open(from.join(file)).expect("open");
            let sent = ftp.put_file(file.to_str().expect("UTF-8"), &mut content).expect("STOR");
            assert_eq!(sent, files[file], "{file:?}");
        }
        ftp.quit().expect("QUIT");
    }

    fn download(&self, stage: &Stage, to: &Path) {
        let mut ftp = log_in(stage);
        download(&mut ftp, "", to);
        ftp.quit().expect("QUIT");
    }
}
