//! Kinds of values: what a keyword accepts, in words and in code.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use ipc::{
    link::log::Level,
    types::{Blob, Permission, Permissions, UserName},
};
use toml::de::DeValue;

use super::{LogLevel, Ports};

/// What a keyword accepts. [`Kind::expected`] is the wording of errors and of the manual page.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// An integer in a range, both ends included.
    Number(u64, u64),
    /// A string that is one of these.
    OneOf(&'static [&'static str]),
    /// A string; the words say which.
    Text(&'static str),
    /// An integer or a string: an id or a name.
    Id(&'static str),
    /// An array of strings and integers; the words say which.
    List(&'static str),
}

/// A value of the right TOML type, within the range of its kind.
#[derive(Debug, Clone)]
pub enum Value {
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Number`] or [`Kind::Id`].
    Number(u64),
    /// Of every kind that is a string.
    Text(String),
    /// Of [`Kind::List`].
    List(Vec<Value>),
}

impl Kind {
    /// "an integer from 0 to 256", and so on.
    pub fn expected(&self) -> String {
        match self {
            Kind::Flag => "true or false".to_owned(),
            Kind::Number(least, most) => format!("an integer from {least} to {most}"),
            Kind::OneOf(words) => format!("\"{}\"", words.join("\" or \"")),
            Kind::Text(what) | Kind::Id(what) | Kind::List(what) => (*what).to_owned(),
        }
    }

    /// Checks type and range; `None` if the value is not of this kind.
    pub(super) fn accept(&self, value: &DeValue<'_>) -> Option<Value> {
        match (self, value) {
            (Kind::Flag, DeValue::Boolean(on)) => Some(Value::Flag(*on)),
            (Kind::Number(least, most), DeValue::Integer(_)) => match Value::scalar(value)? {
                Value::Number(n) if (*least..=*most).contains(&n) => Some(Value::Number(n)),
                _ => None,
            },
            (Kind::OneOf(words), DeValue::String(s)) => words.contains(&&**s).then(|| Value::Text(s.to_string())),
            (Kind::Text(_), DeValue::String(s)) => Some(Value::Text(s.to_string())),
            (Kind::Id(_), _) => Value::scalar(value),
            (Kind::List(_), DeValue::Array(all)) => {
                all.iter().map(|v| Value::scalar(v.get_ref())).collect::<Option<_>>().map(Value::List)
            }
            _ => None,
        }
    }
}

impl Value {
    fn scalar(value: &DeValue<'_>) -> Option<Value> {
        match value {
            DeValue::String(s) => Some(Value::Text(s.to_string())),
            DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok().map(Value::Number),
            _ => None,
        }
    }
}

/// Puts a value where it belongs; an error says what is wrong with it beyond type and range.
pub(super) fn put<T: FromValue>(slot: &mut T, value: &Value) -> Result<(), String> {
    *slot = T::from_value(value).ok_or_else(String::new)?;
    Ok(())
}

/// What can be made of a value; `None` if it is not of the form the kind's words ask for.
pub(super) trait FromValue: Sized {
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($type:ty: $pattern:pat => $make:expr;)+) => {
        $(impl FromValue for $type {
            fn from_value(value: &Value) -> Option<Self> {
                match value { $pattern => $make, _ => None }
            }
        })+
    };
}

from_value! {
    bool: Value::Flag(on) => Some(*on);
    u16: Value::Number(n) => u16::try_from(*n).ok();
    u32: Value::Number(n) => u32::try_from(*n).ok();
    u64: Value::Number(n) => Some(*n);
    String: Value::Text(s) => (s.len() <= 1024 && !s.contains(|c: char| c.is_control() && c != '\n')).then(|| s.clone());
    PathBuf: Value::Text(s) => absolute(s);
    Option<PathBuf>: Value::Text(s) => absolute(s).map(Some);
    Option<Ipv4Addr>: Value::Text(s) => s.parse().ok().map(Some);
    Option<SocketAddr>: Value::Text(s) => s.parse().ok().filter(|a: &SocketAddr| a.port() != 0).map(Some);
    Option<UserName>: Value::Text(s) => UserName::new(s.as_bytes()).map(Some);
    Option<Permissions>: Value::List(all) => permissions(all).map(Some);
    LogLevel: Value::Text(s) => level(s);
    Ports: Value::Text(s) => Ports::parse(s);
}

impl Ports {
    /// `FIRST-LAST`, both from 1024 to 65535, in this order.
    pub fn parse(text: &str) -> Option<Ports> {
        let (first, last) = text.split_once('-')?;
        let ports = Ports { first: first.parse().ok()?, last: last.parse().ok()? };
        (1024 <= ports.first && ports.first <= ports.last).then_some(ports)
    }
}

fn absolute(path: &str) -> Option<PathBuf> {
    (path.starts_with('/') && path.len() < 4096 && !path.contains('\0')).then(|| path.into())
}

fn level(word: &str) -> Option<LogLevel> {
    let level = match word {
        "error" => Level::Error,
        "warning" => Level::Warning,
        "info" => Level::Info,
        "debug" => Level::Debug,
        _ => return None,
    };
    Some(LogLevel(level))
}

fn permissions(words: &[Value]) -> Option<Permissions> {
    words.iter().try_fold(Permissions::NONE, |set, word| match word {
        Value::Text(word) if word == "all" => Some(Permissions::ALL),
        Value::Text(word) => {
            Permission::ALL.iter().find(|(name, _)| name == word).map(|&(_, permission)| set.with(permission))
        }
        _ => None,
    })
}

/// A uid: a number, or a name of passwd(5).
pub(super) fn uid(value: &Value) -> Result<Option<u32>, String> {
    match value {
        Value::Text(name) => match nix::unistd::User::from_name(name) {
            Ok(Some(user)) => Ok(Some(user.uid.as_raw())),
            Ok(None) => Err(format!("the system has no user {name:?}; create it (useradd), or give a number")),
            Err(errno) => Err(format!("the user {name:?} cannot be looked up: {errno}")),
        },
        _ => id(value),
    }
}

/// A gid: a number, or a name of group(5).
pub(super) fn gid(value: &Value) -> Result<Option<u32>, String> {
    match value {
        Value::Text(name) => match nix::unistd::Group::from_name(name) {
            Ok(Some(group)) => Ok(Some(group.gid.as_raw())),
            Ok(None) => Err(format!("the system has no group {name:?}; create it (groupadd), or give a number")),
            Err(errno) => Err(format!("the group {name:?} cannot be looked up: {errno}")),
        },
        _ => id(value),
    }
}

fn id(value: &Value) -> Result<Option<u32>, String> {
    // The last number is (uid_t)-1, which system calls take for "leave as it is".
    u32::from_value(value).filter(|&n| n != u32::MAX).map(Some).ok_or_else(String::new)
}

/// Supplementary groups: at most 32.
pub(super) fn groups(value: &Value) -> Result<Vec<u32>, String> {
    match value {
        Value::List(all) if all.len() <= 32 => all.iter().filter_map(|v| gid(v).transpose()).collect(),
        _ => Err(String::new()),
    }
}

/// An argon2id PHC string of at least the OWASP minimum; the hash is never part of an error.
pub(super) fn phc(value: &Value) -> Result<Option<Blob<512>>, String> {
    const FORM: &str = "not of the form $argon2id$v=19$m=…,t=…,p=…$salt$hash; `caissonctl hash-password` prints one";
    let Value::Text(text) = value else { return Err(String::new()) };
    let parts: Vec<&str> = text.split('$').collect();
    let ["", "argon2id", "v=19", costs, salt, hash] = parts[..] else { return Err(FORM.to_owned()) };
    let costs: Vec<Option<u32>> = costs
        .split(',')
        .zip(["m=", "t=", "p="])
        .map(|(cost, name)| cost.strip_prefix(name).and_then(|n| n.parse().ok()))
        .collect();
    let [Some(m), Some(t), Some(p)] = costs[..] else { return Err(FORM.to_owned()) };
    let base64 = |s: &str| s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/');
    if !base64(salt) || !base64(hash) || salt.len() < 11 || hash.len() < 22 || text.matches(',').count() != 2 {
        return Err(FORM.to_owned());
    }
    if m < 19_456 || t < 2 {
        return Err(
            "its cost is below m=19456 (KiB), t=2; hash the password anew with `caissonctl hash-password`".into()
        );
    }
    if m > 1_048_576 || t > 64 || !(1..=16).contains(&p) {
        return Err("its cost is above m=1048576 (KiB), t=64, p=16".into());
    }
    Blob::new(text.as_bytes()).map(Some).map_err(|_| FORM.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(costs: &str) -> Result<Option<Blob<512>>, String> {
        phc(&Value::Text(format!("$argon2id$v=19${costs}$c29tZXNhbHRzb21lc2FsdA$aGFzaGhhc2hoYXNoaGFzaGhhc2g")))
    }

    #[test]
    fn a_hash_of_the_owasp_minimum_is_accepted_and_less_is_not() {
        assert!(hash("m=19456,t=2,p=1").is_ok());
        assert!(hash("m=19455,t=2,p=1").unwrap_err().contains("below"));
        assert!(hash("m=19456,t=1,p=1").unwrap_err().contains("below"));
    }

    #[test]
    fn a_hash_that_would_take_all_memory_is_refused() {
        assert!(hash("m=4294967295,t=2,p=1").unwrap_err().contains("above"));
    }

    #[test]
    fn other_schemes_and_mangled_hashes_are_refused_without_showing_them() {
        for bad in
            ["$argon2i$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g", "$6$salt$hash", "secret", ""]
        {
            let error = phc(&Value::Text(bad.to_owned())).unwrap_err();
            assert!(error.contains("hash-password") && !error.contains("secret"), "{bad}");
        }
        assert!(hash("m=19456,t=2,p=1,x=1").is_err());
        assert!(hash("t=2,m=19456,p=1").is_err());
    }

    #[test]
    fn a_port_range_is_ordered_and_unprivileged() {
        assert_eq!(Ports::parse("50000-50009"), Some(Ports { first: 50000, last: 50009 }));
        for bad in ["50009-50000", "20-30", "50000", "50000-", "50000-70000", "a-b"] {
            assert_eq!(Ports::parse(bad), None, "{bad}");
        }
    }
}
