//! Quick start: `caissond serve DIR` makes a configuration with one user and says how to connect. No file is read or written
//! but the password file.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{fs, io};

use ipc::types::{Blob, Ids, Permissions};
use nix::unistd::User as SystemUser;
use rustix::process::{getegid, geteuid};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::config::{Config, Listen, User, Users, system_ids};
use crate::{args::Serve, spawn::Programs, start};

/// Uids of workers and authd where the system users are missing; of no distribution.
const STAND_INS: [u32; 2] = [61_198, 61_199];
/// Letters that are hard to mistake for another; 32 of them, so that each byte's low bits choose one evenly.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

pub(crate) fn run(serve: Serve) -> Result<ExitCode, String> {
    let (home, ids) = directory(&serve.dir)?;
    let password = match &serve.password_file {
        Some(file) => read_password(file)?,
        None => draw_password()?,
    };
    let hash = hash(&password)?;
    let user = User { hash: Some(hash), ids: Some(ids), home, permissions: Permissions::ALL, ..User::default() };
    let mut config = Config::defaults();
    config.listen = vec![Listen { address: Some(serve.ftp), place: "--ftp".to_owned() }];
    config.passive_ports = serve.passive;
    config.fixed.control_socket = None;
    if geteuid().is_root() {
        config.fixed.worker_ids = Some(stand_in(&config.fixed.worker_user, STAND_INS[0]));
        config.fixed.authd_ids = Some(stand_in(&config.fixed.authd_user, STAND_INS[1]));
    }
    let users = Users::from([(serve.user.clone(), user)]);
    let how = how_to_connect(&serve, (serve.password_file.is_none()).then_some(password.as_str()));
    start::run(config, users, None, |m| {
        let weaker: String = m.weaker.iter().map(|what| format!("  weaker    {what}\n")).collect();
        let _ = writeln!(io::stdout(), "{how}{weaker}ready");
        let _ = io::stdout().flush();
    })
}

/// The directory, and whose its files are.
fn directory(dir: &Path) -> Result<(PathBuf, Ids), String> {
    let fail = |e: io::Error| format!("serve: {}: {e}", dir.display());
    let dir = fs::canonicalize(dir).map_err(fail)?;
    let found = fs::metadata(&dir).map_err(fail)?;
    if !found.is_dir() {
        return Err(format!("serve: {} is not a directory", dir.display()));
    }
    let ids = if !geteuid().is_root() {
        Ids { uid: geteuid().as_raw(), gid: getegid().as_raw(), groups: Vec::new() }
    } else if found.uid() == 0 {
        let name = dir.display();
        return Err(format!(
            "serve: {name} belongs to root, and no broker runs as root; give it an owner: chown USER {name}"
        ));
    } else {
        let owner = SystemUser::from_uid(found.uid().into()).ok().flatten();
        let gid = owner.map_or(found.gid(), |owner| owner.gid.as_raw());
        Ids { uid: found.uid(), gid, groups: Vec::new() }
    };
    Ok((dir, ids))
}

fn stand_in(name: &str, number: u32) -> Ids {
    system_ids(name).unwrap_or(Ids { uid: number, gid: number, groups: Vec::new() })
}

/// The first line of the file.
fn read_password(file: &Path) -> Result<String, String> {
    let fail = |why: String| format!("--password-file: {}: {why}", file.display());
    let mut text = String::new();
    let open = fs::File::open(file).map_err(|e| fail(e.to_string()))?;
    open.take(1024).read_to_string(&mut text).map_err(|e| fail(e.to_string()))?;
    let line = text.lines().next().unwrap_or("");
    if line.is_empty() || line.len() > 512 {
        return Err(fail("expected a first line of 1 to 512 bytes".to_owned()));
    }
    Ok(line.to_owned())
}

/// Sixteen letters, 80 bits.
fn draw_password() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom(&mut bytes, GetRandomFlags::empty()).map_err(|e| format!("getrandom: {e}"))?;
    Ok(bytes.iter().filter_map(|byte| LETTERS.get(usize::from(byte & 31))).map(|&letter| char::from(letter)).collect())
}

/// Has caisson-authd hash the password: no hash is computed in root's address space.
fn hash(password: &str) -> Result<Blob<512>, String> {
    let program = Programs::find(None)?.authd;
    let fail = |why: String| format!("{} hash-password: {why}", program.display());
    let (stdin, stdout) = (Stdio::piped(), Stdio::piped());
    let child = Command::new(&program).arg("hash-password").env_clear().stdin(stdin).stdout(stdout).spawn();
    let mut child = child.map_err(|e| fail(e.to_string()))?;
    if let Some(mut pipe) = child.stdin.take() {
        writeln!(pipe, "{password}").map_err(|e| fail(e.to_string()))?;
    }
    let done = child.wait_with_output().map_err(|e| fail(e.to_string()))?;
    if !done.status.success() {
        return Err(fail(done.status.to_string()));
    }
    Blob::new(done.stdout.trim_ascii()).map_err(|_| fail("printed more than a hash".to_owned()))
}

/// What a person sees first. A password of their own choosing is not repeated.
fn how_to_connect(serve: &Serve, password: Option<&str>) -> String {
    let mut address = serve.ftp;
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    let user = &serve.user;
    let (shown, curl, lftp) = match password {
        Some(password) => (password, format!("{user}:{password}"), format!("{user},{password}")),
        None => ("as in the password file", user.to_string(), user.to_string()),
    };
    format!(
        "Serving {dir}, until Ctrl-C.\n\
         \x20 address   ftp://{address}/\n\
         \x20 user      {user}\n\
         \x20 password  {shown}\n\
         \x20 list      curl -u '{curl}' ftp://{address}/\n\
         \x20 upload    curl -u '{curl}' -T FILE ftp://{address}/\n\
         \x20 browse    lftp -u '{lftp}' ftp://{address}/\n",
        dir = serve.dir.display(),
    )
}

/// For tests: where a client finds the server.
#[cfg(test)]
fn shown(ftp: std::net::SocketAddr) -> String {
    let user = ipc::types::UserName::new(b"caisson").unwrap();
    let passive = crate::config::Ports::parse("50000-50009").unwrap();
    how_to_connect(&Serve { dir: "/srv".into(), ftp, user, password_file: None, passive }, Some("secret"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_shown_can_be_pasted() {
        let text = shown("0.0.0.0:2121".parse().unwrap());
        assert!(text.contains("curl -u 'caisson:secret' ftp://127.0.0.1:2121/\n"), "{text}");
        assert!(shown("[::]:2121".parse().unwrap()).contains("ftp://[::1]:2121/"));
    }

    #[test]
    fn a_drawn_password_has_sixteen_letters_and_is_not_the_last_one() {
        let (one, other) = (draw_password().unwrap(), draw_password().unwrap());
        assert!(one.len() == 16 && one.bytes().all(|b| LETTERS.contains(&b)) && one != other);
    }
}
