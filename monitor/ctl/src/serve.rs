//! Quick start: `caissond serve DIR` makes a configuration with one account, says how to connect, and becomes caissond with it.
//!
//! A front end of its own, so that the root process that stays never holds a password. Both files exist in memory only, under
//! descriptors that caissond inherits; nothing is written but what clients upload.

use std::{
    fs,
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    os::{fd::AsRawFd, fd::OwnedFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use lexopt::{Arg, Parser, ValueExt};
use nix::unistd::{Uid, User};
use rustix::{
    fs::{MemfdFlags, Mode, fchmod, memfd_create},
    process::{getegid, geteuid},
    rand::{GetRandomFlags, getrandom},
};

use crate::{become_program, find_program};

/// Uids of workers and authd where the system users are missing; of no distribution.
const STAND_INS: [(&str, &str, u32); 2] =
    [("worker_user", "_caisson", 61_198), ("authd_user", "_caisson-authd", 61_199)];
/// Letters that are hard to mistake for another; 32 of them, so that each byte's low bits choose one evenly.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// What to serve, and how.
#[derive(Debug)]
pub(crate) struct Serve {
    dir: PathBuf,
    ftp: SocketAddr,
    user: String,
    password_file: Option<PathBuf>,
    passive: String,
}

/// Parses the words behind `serve`.
pub(crate) fn parse(parser: &mut Parser) -> Result<Serve, lexopt::Error> {
    let mut serve = Serve {
        dir: PathBuf::new(),
        ftp: SocketAddr::from(([127, 0, 0, 1], 2121)),
        user: "caisson".to_owned(),
        password_file: None,
        passive: "50000-50999".to_owned(),
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Value(word) if serve.dir.as_os_str().is_empty() => serve.dir = word.into(),
            Arg::Long("ftp") => serve.ftp = parser.value()?.parse()?,
            Arg::Long("user") => serve.user = parser.value()?.string()?,
            Arg::Long("password-file") => serve.password_file = Some(parser.value()?.into()),
            Arg::Long("passive") => serve.passive = parser.value()?.string()?,
            Arg::Long(later @ ("ftps" | "sftp")) => return Err(format!("--{later}: not in this version").into()),
            other => return Err(other.unexpected()),
        }
    }
    if serve.dir.as_os_str().is_empty() {
        return Err("serve: expected a directory".into());
    }
    if !is_range(&serve.passive) {
        return Err("--passive: expected FIRST-LAST, ports from 1024 to 65535".into());
    }
    if ipc::types::UserName::new(serve.user.as_bytes()).is_none() {
        return Err("--user: expected 1 to 64 bytes without control bytes, / and :".into());
    }
    Ok(serve)
}

fn is_range(text: &str) -> bool {
    let ports = text.split_once('-').map(|(first, last)| (first.parse::<u16>(), last.parse::<u16>()));
    matches!(ports, Some((Ok(first), Ok(last))) if 1024 <= first && first <= last)
}

/// Becomes caissond; returns only to say why not.
pub(crate) fn run(serve: &Serve) -> String {
    match prepare(serve) {
        Ok((config, _users)) => {
            let file = format!("/proc/self/fd/{}", config.as_raw_fd());
            become_program("caissond", &["-r".into(), "-f".into(), file.into()])
        }
        Err(why) => why,
    }
}

/// Makes both files and says how to connect.
fn prepare(serve: &Serve) -> Result<(OwnedFd, OwnedFd), String> {
    let (home, uid, gid) = directory(&serve.dir)?;
    let password = match &serve.password_file {
        Some(file) => read_password(file)?,
        None => draw_password()?,
    };
    // caissond binds it; but here the option is known by its name.
    TcpListener::bind(serve.ftp)
        .map_err(|e| format!("--ftp: cannot listen on {}: {e}; choose another address or port", serve.ftp))?;
    let (user, hash, home) = (quote(&serve.user), quote(&hash(&password)?), quote(&home));
    let users = format!("[[user]]\nname = {user}\npassword = {hash}\nhome = {home}\nuid = {uid}\ngid = {gid}\n");
    let users = file_in_memory("users.toml", &users)?;
    let mut config = format!("users_file = \"/proc/self/fd/{}\"\ncontrol_socket = \"\"\n", users.as_raw_fd());
    for (keyword, name, uid) in STAND_INS {
        if !User::from_name(name).is_ok_and(|user| user.is_some()) {
            config += &format!("{keyword} = {uid}\n");
        }
    }
    config += &format!("passive_ports = {}\n[[listen]]\naddress = \"{}\"\n", quote(&serve.passive), serve.ftp);
    let config = file_in_memory("caisson.toml", &config)?;
    let how = how_to_connect(serve, serve.password_file.is_none().then_some(password.as_str()));
    io::stdout().write_all(how.as_bytes()).map_err(|e| format!("standard output: {e}"))?;
    Ok((config, users))
}

/// The directory, and whose its files are.
fn directory(dir: &Path) -> Result<(String, u32, u32), String> {
    let fail = |why: String| format!("serve: {}: {why}", dir.display());
    let home = fs::canonicalize(dir).map_err(|e| fail(e.to_string()))?;
    let found = fs::metadata(&home).map_err(|e| fail(e.to_string()))?;
    let name = home.to_str().ok_or_else(|| fail("expected a path in UTF-8".to_owned()))?.to_owned();
    if !found.is_dir() {
        return Err(fail("not a directory".to_owned()));
    }
    if !geteuid().is_root() {
        return Ok((name, geteuid().as_raw(), getegid().as_raw()));
    }
    if found.uid() == 0 {
        return Err(fail(format!("belongs to root, and no broker runs as root; give it an owner: chown USER {name}")));
    }
    let owner = User::from_uid(Uid::from_raw(found.uid())).ok().flatten();
    Ok((name, found.uid(), owner.map_or(found.gid(), |owner| owner.gid.as_raw())))
}

/// The first line of the file.
fn read_password(file: &Path) -> Result<String, String> {
    let fail = |why: &str| format!("--password-file: {}: {why}", file.display());
    let mut text = String::new();
    let open = fs::File::open(file).map_err(|e| fail(&e.to_string()))?;
    open.take(1024).read_to_string(&mut text).map_err(|e| fail(&e.to_string()))?;
    let line = text.lines().next().unwrap_or("");
    if line.is_empty() || line.len() > 512 {
        return Err(fail("expected a first line of 1 to 512 bytes"));
    }
    Ok(line.to_owned())
}

/// Sixteen letters, 80 bits.
fn draw_password() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom(&mut bytes, GetRandomFlags::empty()).map_err(|e| format!("getrandom: {e}"))?;
    Ok(bytes.iter().filter_map(|byte| LETTERS.get(usize::from(byte & 31))).map(|&letter| char::from(letter)).collect())
}

/// Has caisson-authd hash the password.
fn hash(password: &str) -> Result<String, String> {
    let program = find_program("caisson-authd")?;
    let fail = |why: String| format!("{} hash-password: {why}", program.display());
    let child = Command::new(&program).arg("hash-password").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|e| fail(e.to_string()))?;
    if let Some(mut pipe) = child.stdin.take() {
        writeln!(pipe, "{password}").map_err(|e| fail(e.to_string()))?;
    }
    let done = child.wait_with_output().map_err(|e| fail(e.to_string()))?;
    if !done.status.success() {
        return Err(fail(done.status.to_string()));
    }
    Ok(String::from_utf8_lossy(done.stdout.trim_ascii()).into_owned())
}

/// A TOML string.
fn quote(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

/// A file without a name, that a program we become can open under /proc/self/fd.
fn file_in_memory(name: &str, text: &str) -> Result<OwnedFd, String> {
    let make = || -> io::Result<OwnedFd> {
        let mut file = fs::File::from(memfd_create(name, MemfdFlags::empty())?);
        fchmod(&file, Mode::RUSR | Mode::WUSR)?;
        file.write_all(text.as_bytes())?;
        Ok(file.into())
    };
    make().map_err(|e| format!("memfd {name}: {e}"))
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
        None => ("as in the password file", user.clone(), user.clone()),
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

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn parsed(line: &str) -> Result<Serve, String> {
        parse(&mut Parser::from_args(line.split_whitespace().map(OsString::from))).map_err(|e| e.to_string())
    }

    #[test]
    fn options_stand_on_either_side_of_the_directory() {
        let serve = parsed("--ftp [::1]:2100 /srv --user bob --passive 2000-2009").unwrap();
        assert_eq!((serve.ftp.port(), &*serve.user, &*serve.passive), (2100, "bob", "2000-2009"));
        assert_eq!(serve.dir, Path::new("/srv"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, wrong) in [
            ("", "directory"),
            ("/ --ftp x", "x"),
            ("/ --passive 10-20", "--passive"),
            ("/ --user a/b", "--user"),
            ("/ --sftp 127.0.0.1:22", "--sftp: not in this version"),
            ("/ /srv", "/srv"),
        ] {
            assert!(parsed(line).is_err_and(|why| why.contains(wrong)), "{line}");
        }
    }

    #[test]
    fn the_commands_shown_can_be_pasted() {
        let text = how_to_connect(&parsed("/srv --ftp 0.0.0.0:2121").unwrap(), Some("secret"));
        assert!(text.contains("curl -u 'caisson:secret' ftp://127.0.0.1:2121/\n"), "{text}");
        let text = how_to_connect(&parsed("/srv --ftp [::]:2121").unwrap(), None);
        assert!(text.contains("ftp://[::1]:2121/") && text.contains("curl -u 'caisson' "), "{text}");
    }

    #[test]
    fn a_drawn_password_has_sixteen_letters_and_is_not_the_last_one() {
        let (one, other) = (draw_password().unwrap(), draw_password().unwrap());
        assert!(one.len() == 16 && one.bytes().all(|b| LETTERS.contains(&b)) && one != other);
    }

    #[test]
    fn awkward_paths_are_quoted() {
        assert_eq!(quote("/a \"b\\c\n"), "\"/a \\\"b\\\\c\\u000A\"");
    }
}
