//! Settings of caisson.toml(5) that other processes than root's obey.
//!
//! caisson-config packs them, the monitor hands them on unread, and those whom they concern unpack them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{log::Level, monitor_broker, monitor_worker, places::Places};
use crate::call::Record;
use crate::types::Blob;
use crate::wire::{self, Breach};

/// Settings of caisson.toml(5) that a worker of role `ftp` obeys. Times in seconds, 0 is off.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FtpSettings {
    /// `log_level`: lines below it need not be sent.
    pub log_level: Level,
    /// `banner`: text of the 220 greeting, printable, lines joined by `\n`.
    pub banner: Blob<1024>,
    /// `login_timeout_secs`.
    pub login_timeout_secs: u32,
    /// `idle_timeout_secs`: silence on control while no transfer runs (RFC 1123 4.1.3.2).
    pub idle_timeout_secs: u32,
    /// `data_connect_timeout_secs`: from PASV or PORT and a transfer command to the data connection.
    pub data_connect_timeout_secs: u32,
    /// `stall_timeout_secs`: a transfer that moves no byte.
    pub stall_timeout_secs: u32,
    /// `session_timeout_secs`: a session from its connection on, whatever it does.
    pub session_timeout_secs: u32,
    /// `max_login_failures`: close after that many.
    pub max_login_failures: u32,
    /// `active`: whether PORT and EPRT are allowed.
    pub active: bool,
    /// `passive_address`: what 227 tells the client instead of the local address.
    pub passive_address: Option<Ipv4Addr>,
    /// What depends on where clients come from.
    pub places: Places,
    /// `max_sessions`: of all workers together, logged in or not; more are told 421.
    pub max_sessions: u32,
    /// `max_sessions_per_address`: of them, from one address; 0 is off.
    pub max_sessions_per_address: u32,
    /// `address_prefix_ipv4` and `address_prefix_ipv6`: leading bits of an address that count for that, at most 32 and 128.
    pub address_prefixes: (u8, u8),
    /// `sync_uploads`: fsync(2) before an upload is acknowledged.
    pub sync_uploads: bool,
    /// `[performance] sendfile`.
    pub sendfile: bool,
    /// `[performance] splice`.
    pub splice: bool,
    /// `[performance] buffer_pool_bytes`, this worker's part.
    pub buffer_pool_bytes: u64,
    /// `[performance] transfer_chunk_bytes`.
    pub transfer_chunk_bytes: u32,
    /// `None` without any `[[certificate]]`.
    pub tls: Option<Tls>,
}

/// TLS, where there is a certificate.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// Listeners with `tls = "implicit"`: TLS from the first byte on.
    pub implicit: Vec<SocketAddr>,
    /// Listeners with `tls = "no"`: AUTH is refused there.
    pub plain: Vec<SocketAddr>,
    /// `tls_required`, for clients of no network that says otherwise ([`FtpSettings::require`]).
    pub require: Require,
    /// `data_resumption`, likewise ([`FtpSettings::resumption`]).
    pub resumption: Resumption,
    /// Some account has `certificates`: clients are asked for theirs.
    pub asks_certificates: bool,
}

/// What may not be done without TLS.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Require {
    /// Everything may.
    #[default]
    No,
    /// Logging in.
    Login,
    /// Logging in, and data connections.
    Data,
}

impl FtpSettings {
    /// What a client with this address may not do without TLS, whoever it logs in as.
    pub fn require(&self, client: IpAddr) -> Require {
        let by_network = || self.places.of_client(client, |network| network.require);
        self.tls.as_ref().map_or(Require::No, |tls| by_network().unwrap_or(tls.require))
    }

    /// Whether its data connections must resume the TLS session of its control connection.
    pub fn resumption(&self, client: IpAddr) -> Resumption {
        let by_network = || self.places.of_client(client, |network| network.resumption);
        self.tls.as_ref().map_or(Resumption::default(), |tls| by_network().unwrap_or(tls.resumption))
    }
}

impl Require {
    /// As the monitor hands it on with an account.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Back from it; the strictest of all for what is no such number.
    pub fn of(number: u8) -> Self {
        [Require::No, Require::Login].into_iter().find(|known| known.number() == number).unwrap_or(Require::Data)
    }
}

/// Whether a data connection must resume the TLS session of its control connection.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resumption {
    /// One that does not is refused.
    Required,
    /// One that offers to resume must resume that session; a full handshake will do.
    #[default]
    IfOffered,
    /// Nothing can be resumed.
    Off,
}

/// Settings of caisson.toml(5) that a broker obeys from its start to its end.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerSettings {
    /// `umask`: file mode creation mask, 0 to 0o777.
    pub umask: u16,
    /// `atomic_uploads`: whole files are uploaded under a hidden name and published at the end.
    pub atomic_uploads: bool,
    /// `listing_time`: the file that describes the zone (tzfile(5)), read before the broker is confined; `None`: UTC.
    pub listing_zone: Option<PathBuf>,
}

impl Record for FtpSettings {
    const CAP: usize = monitor_worker::SETTINGS;
}

impl Record for BrokerSettings {
    const CAP: usize = monitor_broker::SETTINGS;
}

/// For the monitor to hand on; `None` when it is longer than `MOST`.
pub fn pack<R: Record, const MOST: usize>(settings: &R) -> Option<Blob<MOST>> {
    let mut buffer = vec![0; MOST];
    wire::encode(settings, &mut buffer).and_then(|bytes| Blob::new(bytes).ok())
}

/// Back from it.
///
/// # Errors
/// When it has not been packed by this build.
pub fn unpack<R: Record, const MOST: usize>(packed: &Blob<MOST>) -> Result<R, Breach> {
    wire::decode(packed.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_and_nothing_else_is() {
        let settings = BrokerSettings { umask: 0o027, listing_zone: Some("/z".into()), ..BrokerSettings::default() };
        let packed: Blob<99> = pack(&settings).unwrap();
        assert_eq!(unpack(&packed), Ok(settings));
        let other = |bytes: &[u8]| unpack::<BrokerSettings, 99>(&Blob::cut(bytes));
        assert_eq!(other(&[packed.as_bytes(), b"x"].concat()), Err(Breach::LeftOver(1)));
        assert_eq!(other(&packed.as_bytes()[1..]), Err(Breach::Malformed));
        assert_eq!(other(b""), Err(Breach::Malformed));
    }

    #[test]
    fn an_accounts_requirement_comes_back_from_its_number_and_no_number_makes_it_weaker() {
        for require in [Require::No, Require::Login, Require::Data] {
            assert_eq!(Require::of(require.number()), require);
        }
        assert_eq!(Require::of(u8::MAX), Require::Data);
    }

    #[test]
    fn the_top_of_the_file_counts_where_no_network_says_otherwise_and_nothing_without_a_certificate() {
        use super::super::places::OfNetwork;
        let network = |clients: &str, require, resumption| OfNetwork {
            clients: vec![clients.parse().unwrap()],
            require,
            resumption,
        };
        let networks = vec![
            network("10.0.0.0/8", Some(Require::No), Some(Resumption::Off)),
            network("10.1.0.0/16", None, Some(Resumption::Required)),
        ];
        let tls = Tls { require: Require::Login, ..Tls::default() };
        let places = Places { networks, ..Places::default() };
        let settings = FtpSettings { places, tls: Some(tls), ..FtpSettings::default() };
        let of = |client: [u8; 4]| (settings.require(client.into()), settings.resumption(client.into()));
        assert_eq!(of([192, 0, 2, 1]), (Require::Login, Resumption::IfOffered));
        assert_eq!(of([10, 2, 0, 1]), (Require::No, Resumption::Off));
        assert_eq!(of([10, 1, 0, 1]), (Require::No, Resumption::Required));
        let none = FtpSettings { tls: None, ..settings };
        assert_eq!(none.require([192, 0, 2, 1].into()), Require::No);
    }

    #[test]
    fn the_longest_there_can_be_fit() {
        use super::super::places::{Host, MOST};
        use crate::types::HostName;
        let name = |n: usize| HostName::new(format!("{n}.{}", "h".repeat(60)).as_bytes()).unwrap();
        let hosts = |most| Places {
            hosts: (0..most).map(|n| Host { name: name(n), banner: None }).collect(),
            ..Places::default()
        };
        let most = (1..MOST).take_while(|&n| hosts(n).fit()).last().unwrap();
        let settings = FtpSettings {
            banner: Blob::new(&[b'b'; 1024]).unwrap(),
            passive_address: Some(Ipv4Addr::LOCALHOST),
            places: hosts(most),
            login_timeout_secs: u32::MAX,
            idle_timeout_secs: u32::MAX,
            data_connect_timeout_secs: u32::MAX,
            stall_timeout_secs: u32::MAX,
            session_timeout_secs: u32::MAX,
            max_sessions: u32::MAX,
            buffer_pool_bytes: u64::MAX,
            tls: Some(Tls { implicit: vec![(Ipv6Addr::from(u128::MAX), u16::MAX).into(); 16], ..Tls::default() }),
            ..FtpSettings::default()
        };
        assert!(pack::<_, { monitor_worker::SETTINGS }>(&settings).is_some());
        let zone = Some(format!("/{}", "z".repeat(4094)).into());
        let settings = BrokerSettings { umask: 0o777, atomic_uploads: true, listing_zone: zone };
        assert!(pack::<_, { monitor_broker::SETTINGS }>(&settings).is_some());
    }
}
