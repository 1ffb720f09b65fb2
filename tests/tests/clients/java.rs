//! Java's own TLS (JSSE), which FTP clients in Java speak: tickets are used once, and kept by host and port.

use std::{fs, path::Path, process::Command};

use e2e::{Site, root_or_skip, tree};

use super::stage::{Reach, Stage, finish};

pub fn every_byte() {
    if !root_or_skip("Java") {
        return;
    }
    if !Command::new("javac").arg("-version").output().is_ok_and(|output| output.status.success()) {
        return e2e::skipped("Java", "no JDK (tests/setup)");
    }
    for version in ["TLSv1.3", "TLSv1.2"] {
        let stage = Stage::secured(Site::new(), Reach::Explicit);
        let (from, back) = (stage.work.join("from"), stage.work.join("back"));
        fs::create_dir_all(&from).and_then(|()| fs::create_dir(&back)).expect("mkdir");
        for (number, size) in [0, 1, 16_384, 65_537, 3 << 20, 200, 100_000, 5, 40_000, 7].into_iter().enumerate() {
            tree::write(&from.join(format!("file {number}")), size, number as u64);
        }
        let mut command = Command::new("java");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/Resuming.java"));
        command.arg(stage.daemon.address().ip().to_string()).arg(stage.daemon.address().port().to_string());
        command.arg("alice").arg(stage.password()).arg(version).args([&stage.daemon.site.certificate(), &from, &back]);
        let said = String::from_utf8_lossy(&finish(command)).into_owned();
        assert_eq!(said.trim(), "done", "{version}");
        tree::assert_same(&from, &stage.home());
        tree::assert_same(&from, &back);
        stage.assert_owned();
    }
}
