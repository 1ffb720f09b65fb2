//! Single values: what a string stands for. `None`, or an empty error, means that it is not of the form its keyword asks for.

use std::{
    fs::File,
    io::Read,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use child_ipc::link::{
    log::Level,
    monitor_config::Ports,
    settings::{Require, Resumption},
    user_record::{CERTIFICATES, CertificateLogin, Fingerprint},
};
use child_ipc::types::{Blob, HostName, Network, NoNetwork, Permission, Permissions};
use nix::unistd::{Group, User};

use crate::Security;

/// `FIRST-LAST`, both from 1024 to 65535, in this order.
pub(crate) fn ports(text: &str) -> Option<Ports> {
    let (first, last) = text.split_once('-')?;
    let ports = Ports { first: first.parse().ok()?, last: last.parse().ok()? };
    (1024 <= ports.first && ports.first <= ports.last).then_some(ports)
}

/// Puts a value in its place, if there is one.
pub(crate) fn set<V>(slot: &mut V, value: Option<V>) -> Result<(), String> {
    *slot = value.ok_or_else(String::new)?;
    Ok(())
}

pub(crate) fn absolute(path: &str) -> Option<PathBuf> {
    (path.starts_with('/') && path.len() < 4096 && !path.contains(char::is_control)).then(|| path.into())
}

/// The file of a certificate or key.
pub(crate) fn file(path: &str) -> Option<PathBuf> {
    absolute(path).filter(|_| path.len() < 1024)
}

pub(crate) fn security(word: &str) -> Option<Security> {
    let words = [("no", Security::No), ("explicit", Security::Explicit), ("implicit", Security::Implicit)];
    words.iter().find(|(name, _)| *name == word).map(|&(_, security)| security)
}

pub(crate) fn require(word: &str) -> Option<Require> {
    let words = [("no", Require::No), ("login", Require::Login), ("data", Require::Data)];
    words.iter().find(|(name, _)| *name == word).map(|&(_, require)| require)
}

pub(crate) fn resumption(word: &str) -> Option<Resumption> {
    use Resumption::{IfOffered, Off, Required};
    let words = [("required", Required), ("if-offered", IfOffered), ("off", Off)];
    words.iter().find(|(name, _)| *name == word).map(|&(_, resumption)| resumption)
}

pub(crate) fn address(text: &str) -> Option<SocketAddr> {
    text.parse().ok().filter(|address: &SocketAddr| address.port() != 0)
}

/// Networks, 1 to 64 of them.
pub(crate) fn networks(texts: &[String]) -> Result<Vec<Network>, String> {
    if !(1..=64).contains(&texts.len()) {
        return Err(String::new());
    }
    let network = |text: &String| {
        text.parse().map_err(|why| match why {
            NoNetwork::Form => String::new(),
            NoNetwork::Within(network) => format!("{text} has bits behind its prefix; did you mean {network}?"),
        })
    };
    texts.iter().map(network).collect()
}

pub(crate) fn banner(text: &str) -> Option<Blob<1024>> {
    let printable = !text.contains(|c: char| c.is_control() && c != '\n');
    Blob::new(text.as_bytes()).ok().filter(|_| printable)
}

pub(crate) fn level(word: &str) -> Option<Level> {
    let levels = [("error", Level::Error), ("warning", Level::Warning), ("info", Level::Info), ("debug", Level::Debug)];
    levels.iter().find(|(name, _)| *name == word).map(|&(_, level)| level)
}

/// A set of permissions, as the number that goes to the account's broker.
pub(crate) fn permissions(words: &[String]) -> Option<u16> {
    let granted = words.iter().try_fold(Permissions::NONE, |granted, word| match word.as_str() {
        "all" => Some(Permissions::ALL),
        _ => Permission::ALL.iter().find(|(name, _)| name == word).map(|&(_, permission)| granted.with(permission)),
    });
    granted.map(Permissions::bits)
}

/// Names of hosts, at most 16.
pub(crate) fn hosts(names: &[String]) -> Option<Vec<HostName>> {
    names.iter().map(|name| HostName::new(name.as_bytes())).collect::<Option<_>>().filter(|_| names.len() <= 16)
}

pub(crate) fn certificate_login(word: &str) -> Option<CertificateLogin> {
    use CertificateLogin::{Login, No, SecondFactor};
    let words = [("no", No), ("second-factor", SecondFactor), ("login", Login)];
    words.iter().find(|(name, _)| *name == word).map(|&(_, login)| login)
}

/// Fingerprints of certificates, as openssl-x509(1) prints them or without colons; each once.
pub(crate) fn fingerprints(texts: &[String]) -> Result<Vec<Fingerprint>, String> {
    let mut all = Vec::new();
    for text in texts {
        let wrong =
            || format!("\"{text:.128}\" is no SHA-256 fingerprint: openssl x509 -noout -fingerprint -sha256 -in FILE");
        let fingerprint = fingerprint(text).ok_or_else(wrong)?;
        if all.contains(&fingerprint) {
            return Err(format!("\"{text:.128}\" is listed twice"));
        }
        all.push(fingerprint);
    }
    if all.len() <= CERTIFICATES { Ok(all) } else { Err(String::new()) }
}

/// 64 hexadecimal digits, perhaps with a colon between each two and the next.
fn fingerprint(text: &str) -> Option<Fingerprint> {
    let mut bytes = Fingerprint::default();
    let digits = match text.len() {
        64 => text.as_bytes().chunks_exact(2).collect::<Vec<_>>(),
        95 => text.as_bytes().split(|&b| b == b':').collect(),
        _ => return None,
    };
    if digits.len() != bytes.len() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(digits) {
        let [high, low] = digits else { return None };
        let digit = |of: u8| char::from(of).to_digit(16);
        *byte = u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?;
    }
    Some(bytes)
}

/// A uid: a number, or a name of passwd(5).
pub(crate) fn uid(text: &str) -> Result<Option<u32>, String> {
    id(text, "user", |name| User::from_name(name).map(|found| found.map(|user| user.uid.as_raw())))
}

/// A gid: a number, or a name of group(5).
pub(crate) fn gid(text: &str) -> Result<Option<u32>, String> {
    id(text, "group", |name| Group::from_name(name).map(|found| found.map(|group| group.gid.as_raw())))
}

/// Supplementary groups: at most 32.
pub(crate) fn gids(texts: &[String]) -> Result<Vec<u32>, String> {
    if texts.len() > 32 {
        return Err(String::new());
    }
    texts.iter().filter_map(|text| gid(text).transpose()).collect()
}

/// The file that describes a time zone (tzfile(5)); `None` for UTC.
pub(crate) fn zone(name: &str) -> Result<Option<PathBuf>, String> {
    let word = |word: &str| {
        let known = |b: u8| b.is_ascii_alphanumeric() || b"+-_".contains(&b);
        !word.is_empty() && word.bytes().all(known)
    };
    let path = match name {
        "utc" => return Ok(None),
        "local" => PathBuf::from("/etc/localtime"),
        name if name.len() <= 64 && name.split('/').all(word) => Path::new("/usr/share/zoneinfo").join(name),
        _ => return Err(String::new()),
    };
    let mut begin = [0; 4];
    match File::open(&path).and_then(|mut file| file.read_exact(&mut begin)) {
        Ok(()) if begin == *b"TZif" => Ok(Some(path)),
        Ok(()) => Err(format!("{} describes no time zone; name another, or set \"utc\"", path.display())),
        Err(e) => Err(format!("{}: {e}; install tzdata, name another zone, or set \"utc\"", path.display())),
    }
}

/// Has the C library load its modules for users and groups, by asking for what nobody has.
pub(crate) fn load_name_service() {
    const NOBODY: &str = "caisson-nobody-has-this";
    let _ = (User::from_name(NOBODY), Group::from_name(NOBODY));
}

fn id(text: &str, kind: &str, look_up: impl Fn(&str) -> nix::Result<Option<u32>>) -> Result<Option<u32>, String> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        // The last number is (uid_t)-1, which system calls take for "leave as it is".
        return text.parse().ok().filter(|&id| id != u32::MAX).map(Some).ok_or_else(String::new);
    }
    match look_up(text) {
        Ok(Some(id)) => Ok(Some(id)),
        Ok(None) => Err(format!("the system has no {kind} {text:?}; create it ({kind}add --system), or give a number")),
        Err(errno) => Err(format!("the {kind} {text:?} cannot be looked up: {errno}")),
    }
}

/// A hash as authd takes it, judged by the parser authd uses. The hash is never part of an error.
pub(crate) fn hash(text: &str) -> Result<Option<Blob<512>>, String> {
    let remedy = |why| format!("expected an argon2id hash: {why}; make one with caissonctl hash-password");
    stored_hash::Stored::parse(text.as_bytes()).map_err(|stored_hash::Unusable(why)| remedy(why))?;
    Blob::new(text.as_bytes()).map(Some).map_err(|_| remedy("longer than any"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_hash_authd_takes_is_accepted() {
        let cost = stored_hash::Cost { memory: 1_048_576, passes: 64, lanes: 16 };
        let longest = stored_hash::Stored::new(cost, &[7; 48], &[7; 64]).unwrap().to_string();
        assert_eq!(hash(&longest).unwrap().unwrap().as_bytes(), longest.as_bytes());
    }

    #[test]
    fn a_zone_is_utc_local_or_a_name_below_zoneinfo_and_describes_a_zone() {
        assert_eq!(zone("utc"), Ok(None));
        assert_eq!(zone("Europe/Berlin"), Ok(Some("/usr/share/zoneinfo/Europe/Berlin".into())));
        for name in ["", "/etc/localtime", "../../../etc/passwd", "Europe/../Europe/Berlin", "Europe//Berlin", "a b"] {
            assert_eq!(zone(name), Err(String::new()), "{name}");
        }
        assert!(zone("Atlantis/Poseidonis").unwrap_err().contains("install tzdata"));
        assert!(zone("tzdata.zi").is_err() && zone("zone1970+tab").is_err() && zone("Europe").is_err());
    }

    #[test]
    fn a_fingerprint_is_taken_with_colons_and_without_and_only_whole() {
        let plain = "00ff".repeat(16);
        let colons = vec!["00:FF"; 16].join(":");
        let expected: Fingerprint = std::array::from_fn(|n| if n % 2 == 0 { 0 } else { 0xff });
        assert_eq!(fingerprints(std::slice::from_ref(&plain)), Ok(vec![expected]));
        assert_eq!(fingerprints(std::slice::from_ref(&colons)), Ok(vec![expected]));
        assert!(fingerprints(&[plain.clone(), colons.clone()]).unwrap_err().ends_with("is listed twice"));
        let many = |count: usize| (0..count).map(|n| format!("{n:064x}")).collect::<Vec<_>>();
        assert_eq!(fingerprints(&many(8)).map(|all| all.len()), Ok(8));
        assert_eq!(fingerprints(&many(9)), Err(String::new()));
        let doubled = colons.replacen(':', "", 1) + ":";
        for bad in
            ["", &plain[1..], &plain.replacen("ff", "fg", 1), &colons[1..], &doubled, &plain.replacen("ff", "+f", 1)]
        {
            assert!(fingerprints(&[bad.to_owned()]).unwrap_err().contains("openssl x509"), "{bad}");
        }
    }

    #[test]
    fn what_is_no_hash_is_refused_without_being_shown() {
        for bad in
            ["$argon2i$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGg", "$6$salt$secret", "secret", ""]
        {
            let error = hash(bad).unwrap_err();
            assert!(error.contains("hash-password") && !error.contains("secret"), "{bad}");
        }
    }

    #[test]
    fn a_port_range_is_ordered_and_unprivileged() {
        assert_eq!(ports("50000-50009"), Some(Ports { first: 50000, last: 50009 }));
        for bad in ["50009-50000", "20-30", "50000", "50000-", "50000-70000", "a-b"] {
            assert_eq!(ports(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_id_that_means_leave_as_it_is_is_refused() {
        assert_eq!(uid("4294967295"), Err(String::new()));
        assert_eq!(gid("4294967296"), Err(String::new()));
        assert_eq!(uid("0"), Ok(Some(0)));
        assert!(gid("no-such-group").unwrap_err().contains("groupadd"));
    }
}
