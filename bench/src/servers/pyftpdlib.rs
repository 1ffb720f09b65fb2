//! pyftpdlib (from PyPI, in a Python environment of its own): one process, one event loop, passwords compared in clear.

use std::path::PathBuf;
use std::process::Command;

use super::{Kind, Ports, Role, missing_file, program};
use crate::error::Result;
use crate::site::{Place, USER, run};

pub(super) const KIND: Kind = Kind {
    name: "pyftpdlib",
    role: Role::Peer,
    missing: |place| missing_file(python(place), "not fetched: bench/run does that"),
    version,
    command,
    speaks: (true, true),
    only: None,
    idle_most: 10_000,
    idle_reason: "",
};

const SCRIPT: &str = r"
import logging, sys
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler, TLS_FTPHandler
from pyftpdlib.servers import FTPServer

port, first, last, user, home, secret, pair = sys.argv[1:]
if pair:
    TLS_FTPHandler.certfile = pair
    FTPHandler = TLS_FTPHandler
logging.basicConfig(level=logging.ERROR)
authorizer = DummyAuthorizer()
authorizer.add_user(user, open(secret).read(), home, perm='elradfmwMT')
FTPHandler.authorizer = authorizer
FTPHandler.timeout = 3600
FTPHandler.use_sendfile = True
FTPHandler.passive_ports = range(int(first), int(last) + 1)
FTPServer.max_cons = 20000
FTPServer.max_cons_per_ip = 0
FTPServer(('127.0.0.1', int(port)), FTPHandler, backlog=1024).serve_forever()
";

fn python(place: &Place) -> PathBuf {
    place.peers.join("python/bin/python")
}

fn version(place: &Place) -> String {
    let words = "import platform, pyftpdlib; print(f'{pyftpdlib.__ver__} (PyPI, Python {platform.python_version()})')";
    run(Command::new(python(place)).args(["-c", words]), "").unwrap_or_else(|_| "unknown".into())
}

fn command(place: &Place, ports: &Ports) -> Result<Command> {
    let script = place.write("serve_pyftpdlib.py", SCRIPT)?;
    let mut command = program(python(place));
    command
        .arg(script)
        .args([ports.control, ports.first, ports.last].map(|p| p.to_string()))
        .arg(USER)
        .arg(&place.data)
        .arg(place.conf.join("password"))
        .arg(if ports.secured { place.conf.join("pair.pem").into_os_string() } else { "".into() });
    Ok(command)
}
