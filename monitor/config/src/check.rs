//! Reads both files and judges them as a whole. All or nothing: one wrong entry, and nothing is loaded.

use std::thread::available_parallelism;

use child_ipc::link::monitor_config::{Listen, User};
use child_ipc::link::places::{Door, Host, MOST, OfNetwork, Passive, Places};
use child_ipc::link::settings::{Require, pack};
use child_ipc::link::user_record::CertificateLogin;
use child_ipc::types::{Ids, UserName};
use rustix::process::geteuid;

use crate::keywords::{CONFIG, REPEATED, USER};
use crate::parse::{Found, Source, defaults};
use crate::value::uid;
use crate::{Entry, Judged, Part, Security, Settings, Users};

/// As many accounts as authd takes.
const MOST_USERS: usize = 131_072;
/// Certificates, so that all their files go to authd in one record.
const MOST_CERTIFICATES: usize = 16;

/// What an account lacks that cannot do without TLS.
const CERTIFICATE: &str = "a section [[certificate]] in caisson.toml(5); caissonctl make-certificate makes one";

/// Judges caisson.toml(5); `root`: caissond was started by root.
///
/// # Errors
/// One line with the place.
pub fn settings(source: &Source, root: bool) -> Result<Settings, String> {
    let mut settings: Settings = defaults(CONFIG);
    for found in source.read(CONFIG, REPEATED, &mut settings)? {
        let (key, offset) = (found.section, found.offset);
        add(found, source, &mut settings)
            .map_err(|(name, why)| source.error(offset, format!("{key}.{name}: {why}")))?;
        if !settings.ftp.places.fit() {
            let text = "expected less in repeated sections: addresses, names and banners together take more than";
            return Err(source.error(offset, format!("{key}: {text} {MOST} bytes")));
        }
    }
    settings.hosts = settings.ftp.places.hosts.iter().map(|host| host.name.clone()).collect();
    fill_in(&mut settings);
    secure(&mut settings).map_err(|(offset, why)| source.error(offset, why))?;
    if !(1..=16).contains(&settings.config.listen.len()) {
        let message = "listen.address: expected 1 to 16 sections, as in [[listen]] address = \"0.0.0.0:21\"";
        return Err(source.error(0, message));
    }
    if root {
        let of = |name: &str, key: &str| system_ids(name).map_err(|why| source.error(0, format!("{key}: {why}")));
        settings.config.fixed.worker_ids = Some(of(&settings.worker_user, "worker_user")?);
        settings.config.fixed.authd_ids = Some(of(&settings.authd_user, "authd_user")?);
        if settings.worker_user == settings.authd_user {
            return Err(source.error(0, "authd_user: expected another user than worker_user"));
        }
    }
    hand_on(&mut settings)
        .ok_or_else(|| source.error(0, "listing_time: expected a shorter path of the time zone's file"))?;
    Ok(settings)
}

/// What the monitor looks at itself, and what it hands on unread.
fn hand_on(Settings { config, ftp, brokers, .. }: &mut Settings) -> Option<()> {
    (config.max_sessions, config.active, config.log_level) = (ftp.max_sessions, ftp.active, ftp.log_level);
    // The places, which alone can be long, have been found to fit.
    (config.workers, config.brokers) = (pack(ftp)?, pack(brokers)?);
    Some(())
}

/// Workers ask clients for certificates where an account has some; otherwise no client is bothered. `None`: it does not fit
/// what workers are told, which cannot be.
pub fn ask_for_certificates(settings: &mut Settings, users: &Users) -> Option<()> {
    if let Some(tls) = &mut settings.ftp.tls {
        tls.asks_certificates = users.values().any(|user| !user.certificates.is_empty());
    }
    hand_on(settings)
}

/// Puts a repeated section where it belongs, or says which keyword is wrong.
fn add(found: Found<Part>, source: &Source, settings: &mut Settings) -> Result<(), (&'static str, String)> {
    let Found { section, holds: part, offset } = found;
    let (config, places) = (&mut settings.config, &mut settings.ftp.places);
    if section == "passive" {
        places.passive.push(Passive { clients: part.clients, address: part.external });
    } else if section == "network" {
        if part.require.is_some_and(|require| require != Require::No) {
            settings.wants_certificate.get_or_insert((offset, "network.tls_required"));
        }
        of_network(part, places)?;
    } else if let Some(name) = part.name {
        if places.host(&name).is_some() {
            return Err(("name", "listed twice".to_owned()));
        }
        places.hosts.push(Host { name, banner: part.banner });
    } else if let (Some(certificate), Some(key)) = (part.certificate, part.key) {
        if config.certificates.len() == 2 * MOST_CERTIFICATES {
            return Err(("certificate", format!("expected at most {MOST_CERTIFICATES} sections")));
        }
        config.certificates.extend([certificate, key]);
    } else if let Some(address) = part.address {
        if config.listen.iter().any(|other| other.address == address) {
            return Err(("address", "listed twice".to_owned()));
        }
        let proxied = !part.proxies.is_empty();
        match part.tls {
            Some(Security::No) => settings.tls.plain.push(address),
            Some(Security::Implicit) => settings.tls.implicit.push(address),
            Some(Security::Explicit) | None => {}
        }
        if part.tls.is_some_and(|tls| tls != Security::No) {
            settings.wants_certificate = Some((offset, "listen.tls"));
        }
        config.listen.push(Listen { address, place: source.line_and_column(offset), proxied });
        if proxied {
            places.doors.push(Door { address, proxies: part.proxies });
        }
    }
    Ok(())
}

/// A `[[network]]`. One that stands in two of them would leave open which counts.
fn of_network(part: Part, places: &mut Places) -> Result<(), (&'static str, String)> {
    let Part { clients, require, resumption, .. } = part;
    let before = places.networks.iter().flat_map(|of| &of.clients);
    for (at, network) in clients.iter().enumerate() {
        if before.clone().chain(clients.iter().take(at)).any(|other| other == network) {
            return Err(("clients", format!("{network} is listed twice")));
        }
    }
    if require.is_none() && resumption.is_none() {
        return Err(("clients", "nothing is said of them; expected tls_required or data_resumption".to_owned()));
    }
    places.networks.push(OfNetwork { clients, require, resumption });
    Ok(())
}

/// TLS where there is a certificate; where there is none, nothing may ask for it.
fn secure(settings: &mut Settings) -> Result<(), (usize, String)> {
    let tls = &settings.tls;
    if !settings.config.certificates.is_empty() {
        settings.ftp.tls = Some(tls.clone());
        return Ok(());
    }
    let required = (tls.require != Require::No).then_some((0, "tls_required"));
    let why =
        |key| format!("{key}: needs a section [[certificate]]; caissonctl make-certificate makes one to begin with");
    settings.wants_certificate.or(required).map_or(Ok(()), |(offset, key)| Err((offset, why(key))))
}

/// The numbers that depend on the machine.
fn fill_in(settings: &mut Settings) {
    let config = &mut settings.config;
    let cpus = available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    let or_cpus = |number: u32, most: u32| if number == 0 { cpus.min(most) } else { number };
    config.fixed.workers = or_cpus(config.fixed.workers, 128);
    config.authd.max_concurrent_password_checks = or_cpus(config.authd.max_concurrent_password_checks, 64);
    settings.ftp.buffer_pool_bytes /= u64::from(config.fixed.workers);
}

/// Ids of a system user that runs a process of ours, by name or uid: its primary group only.
fn system_ids(text: &str) -> Result<Ids, String> {
    let uid = uid(text)?.filter(|uid| *uid != 0).ok_or("expected a user without root's rights")?;
    let gid = primary_group(uid).unwrap_or(uid);
    Ok(Ids { uid, gid, groups: Vec::new() })
}

fn primary_group(uid: u32) -> Option<u32> {
    nix::unistd::User::from_uid(uid.into()).ok().flatten().map(|user| user.gid.as_raw())
}

/// Judges caisson-users(5), and the anonymous accounts of caisson.toml, which is `config`.
///
/// # Errors
/// One line with the place.
pub fn accounts(source: &Source, config: &Source, settings: &Settings) -> Result<Users, String> {
    let mut users = Users::new();
    for Found { holds: entry, offset, .. } in source.read(&[], USER, &mut ())? {
        let user = judge(&entry, settings).map_err(|(key, why)| source.error(offset, format!("user.{key}: {why}")))?;
        let name = entry.name.ok_or_else(|| source.error(offset, "user.name: missing"))?;
        if users.insert(name.clone(), user).is_some() {
            return Err(source.error(offset, format!("user.name: \"{name}\" is listed twice")));
        }
    }
    if settings.anonymous {
        let account = judge(&settings.anonymous_account, settings)
            .map_err(|(key, why)| format!("{}: anonymous.{key}: {why}", config.file))?;
        for name in ["anonymous", "ftp"].iter().filter_map(|name| UserName::new(name.as_bytes())) {
            users.entry(name).or_insert(Judged { any_password: true, ..account.clone() });
        }
    }
    if users.len() > MOST_USERS {
        return Err(source.error(0, format!("user: expected at most {MOST_USERS} accounts")));
    }
    Ok(users)
}

/// Makes an account of an entry, or says which keyword is wrong.
fn judge(entry: &Entry, settings: &Settings) -> Result<Judged, (&'static str, String)> {
    let fixed = &settings.config.fixed;
    // They are looked up only where caissond was started by root.
    let own = [&fixed.worker_ids, &fixed.authd_ids];
    let (root, me) = (fixed.worker_ids.is_some(), geteuid().as_raw());
    let uid = entry.uid.ok_or(("uid", "missing; expected whom the account's files belong to".to_owned()))?;
    let wrong = if entry.account.user.home.as_os_str().is_empty() {
        Some(("home", "missing; expected the directory the account sees as /".to_owned()))
    } else if uid == 0 && !settings.config.allow_root_accounts {
        Some(("uid", "0 is root; refused unless allow_root_accounts = true in caisson.toml(5)".to_owned()))
    } else if own.into_iter().flatten().any(|ids| ids.uid == uid) {
        Some(("uid", format!("{uid} is worker_user or authd_user, which no account may share")))
    } else if !root && me != uid {
        Some(("uid", format!("caissond was not started by root and can serve its own uid only, {me}")))
    } else {
        None
    };
    wrong.map_or(Ok(()), Err)?;
    if let Some(host) = entry.account.hosts.iter().find(|host| !settings.hosts.contains(host)) {
        return Err(("hosts", format!("\"{host}\" is the name of no [[host]] in caisson.toml(5)")));
    }
    certificates(&entry.account, settings)?;
    if entry.account.user.tls_required != Require::No.number() && settings.ftp.tls.is_none() {
        return Err(("tls_required", format!("needs TLS: {CERTIFICATE}")));
    }
    let gid = entry.gid.or_else(|| primary_group(uid));
    let gid = gid.ok_or_else(|| ("gid", format!("missing; the system has no user {uid} to take it from")))?;
    let ids = Some(Ids { uid, gid, groups: entry.groups.clone() });
    Ok(Judged { user: User { ids, ..entry.account.user.clone() }, ..entry.account.clone() })
}

/// Refuses what an admin may take for protection and is none.
fn certificates(of: &Judged, settings: &Settings) -> Result<(), (&'static str, String)> {
    use CertificateLogin::{Login, No, SecondFactor};
    let wrong = match (of.certificate_login, of.certificates.is_empty(), of.hash.is_some()) {
        (No, true, _) => return Ok(()),
        (No, false, _) => ("certificate_login", "certificates are listed; expected \"second-factor\" or \"login\""),
        (_, true, _) => ("certificates", "missing; certificate_login needs at least one"),
        (Login, _, true) => {
            ("password", "is never asked for with certificate_login = \"login\"; take one of the two out")
        }
        (SecondFactor, _, false) => ("password", "missing; certificate_login = \"second-factor\" needs one"),
        _ if settings.ftp.tls.is_none() => return Err(("certificates", format!("need TLS: {CERTIFICATE}"))),
        _ => return Ok(()),
    };
    Err((wrong.0, wrong.1.to_owned()))
}
