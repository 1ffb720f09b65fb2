//! TLS (RFC 8446, RFC 5246) on control and data connections: what a worker shares, and one connection of it.
//!
//! Reads from: clients (hostile), by way of rustls. Touches no socket: bytes in, bytes out. Private keys are not here: a
//! certificate comes with a signer (`ResolvesServerCert`), and whoever made that knows where the key is.
//!
//! | file | what |
//! |---|---|
//! | `clients` | certificates of clients |
//! | `connection` | one connection, sans-io |
//! | `keys` | certificates, and signatures from authd |
//! | `outgoing` | records that wait to be sent |
//! | `tickets` | resumption, bound to one control connection |
//! | `stream` | a data connection's handshake and the bytes it holds |
//!
//! Not here: what AUTH, PBSZ and PROT mean (ftp/), the control connection's turns (session/secured.rs), the data paths
//! (transfer/secured.rs).

mod clients;
pub mod connection;
pub mod keys;
pub mod outgoing;
pub mod stream;
#[cfg(test)]
mod tests;
mod tickets;

use std::sync::Arc;

use child_ipc::link::settings::Resumption;
use rustls::{
    Error, ServerConfig,
    crypto::{
        GetRandomFailed,
        aws_lc_rs::{self, Ticketer},
    },
    server::{
        NoClientAuth, NoServerSessionStorage, ResolvesServerCert, StoresServerSessions, danger::ClientCertVerifier,
    },
};

use clients::Clients;
pub use connection::{Connection, Standing};
pub use outgoing::Outgoing;
pub use stream::Stream;
use tickets::{Guarded, Resumed, Tickets};

/// The longest record on the wire in bytes: RFC 8446 5.2 and RFC 5246 6.2.3, with its header.
pub const LONGEST_RECORD: usize = 5 + (16 << 10) + 2048;
/// Control connections of a worker that may be in their handshake at once.
const MOST_HANDSHAKES: usize = 1024;
/// Tickets for a client that has just connected, and for each data connection: a client may use each for one connection
/// only (RFC 8446 C.4), and may lose one with a transfer that fails.
const TICKETS: (usize, usize) = (4, 2);

/// Names one control connection of this worker: tickets are good for its own data connections alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner(u64);

/// What all TLS connections of a worker share.
#[derive(Debug)]
pub struct Tls {
    control: Arc<ServerConfig>,
    /// For control connections where some account has certificates.
    asking: Arc<ServerConfig>,
    clients: Arc<Clients>,
    /// For data connections.
    data: DataConfigs,
    tickets: Arc<Tickets>,
    last: u64,
    handshakes: usize,
}

impl Tls {
    /// With these certificates; who holds them may change them meanwhile.
    ///
    /// # Errors
    /// When random numbers for ticket keys are not to be had.
    pub fn new(certificates: Arc<dyn ResolvesServerCert>) -> Result<Self, Error> {
        Self::with(&certificates, Tickets::new(Ticketer::new()?))
    }

    fn with(certificates: &Arc<dyn ResolvesServerCert>, tickets: Tickets) -> Result<Self, Error> {
        let (tickets, clients) = (Arc::new(tickets), Arc::new(Clients::new()));
        let config = |served| config(certificates, &tickets, &clients, served);
        let (control, asking) = (config(Served::Control { asks: false })?, config(Served::Control { asks: true })?);
        let [required, offered, off] =
            [Resumption::Required, Resumption::IfOffered, Resumption::Off].map(|how| config(Served::Data(how)));
        let data = DataConfigs { required: required?, offered: offered?, off: off? };
        Ok(Tls { control, asking, clients, data, tickets, last: 0, handshakes: 0 })
    }

    /// Whether a client may begin a handshake on its control connection now.
    pub fn has_room(&self) -> bool {
        self.handshakes < MOST_HANDSHAKES
    }

    /// A client begins its handshake on the control connection, and is asked for a certificate or not; [`Tls::settled`] is due
    /// for each. It has no ticket that it could resume anything with here, so nobody goes on without showing a certificate anew.
    ///
    /// # Errors
    /// When rustls has no memory or random numbers for it.
    pub fn accept(&mut self, asks: bool) -> Result<(Connection, Owner), Error> {
        self.last += 1;
        let owner = Owner(self.last);
        let config = if asks { &self.asking } else { &self.control };
        let connection = Connection::new(config, &self.tickets, owner)?.asks(asks.then(|| Arc::clone(&self.clients)));
        let connection = connection.keeps();
        self.handshakes += 1;
        Ok((connection, owner))
    }

    /// A handshake on a control connection has ended, one way or the other.
    pub fn settled(&mut self) {
        self.handshakes = self.handshakes.saturating_sub(1);
    }

    /// A data connection of this client is to be secured.
    ///
    /// # Errors
    /// As [`Tls::accept`].
    pub fn secure(&self, owner: Owner, receives: bool, resumption: Resumption) -> Result<Stream, Error> {
        let config = match resumption {
            Resumption::Required => &self.data.required,
            Resumption::IfOffered => &self.data.offered,
            Resumption::Off => &self.data.off,
        };
        let connection = Connection::new(config, &self.tickets, owner)?;
        Ok(Stream::new(connection, receives, resumption))
    }
}

/// Draws a random number, before the seal: aws-lc looks once whether this is a virtual machine that may be copied
/// (`/dev/sysgenid`), and may name no path behind the seal.
///
/// # Errors
/// When there are no random numbers.
pub fn prepare() -> Result<(), GetRandomFailed> {
    aws_lc_rs::default_provider().secure_random.fill(&mut [0; 1])
}

/// For data connections, by what they are to resume.
#[derive(Debug)]
struct DataConfigs {
    required: Arc<ServerConfig>,
    offered: Arc<ServerConfig>,
    off: Arc<ServerConfig>,
}

/// What a configuration is for.
#[derive(Debug, Clone, Copy)]
enum Served {
    /// Control connections, where clients are asked for certificates or not.
    Control { asks: bool },
    /// Data connections.
    Data(Resumption),
}

fn config(
    certificates: &Arc<dyn ResolvesServerCert>,
    tickets: &Arc<Tickets>,
    clients: &Arc<Clients>,
    served: Served,
) -> Result<Arc<ServerConfig>, Error> {
    let clients: Arc<dyn ClientCertVerifier> = match served {
        Served::Control { asks: true } => clients.clone(),
        _ => Arc::new(NoClientAuth),
    };
    // Clients that use ALPN on data connections say ftp-data there, which is not registered.
    let (certificates, alpn): (Arc<dyn ResolvesServerCert>, &[&[u8]]) = match served {
        Served::Control { .. } => (certificates.clone(), &[b"ftp"]),
        Served::Data(resumption) => {
            let (certificates, tickets) = (certificates.clone(), tickets.clone());
            (Arc::new(Guarded { certificates, tickets, resumption }), &[b"ftp-data", b"ftp"])
        }
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(certificates);
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let (count, sessions): (_, Arc<dyn StoresServerSessions>) = match served {
        Served::Control { .. } => (TICKETS.0, tickets.clone()),
        Served::Data(Resumption::Off) => (0, Arc::new(NoServerSessionStorage {})),
        Served::Data(_) => (TICKETS.1, Arc::new(Resumed(tickets.clone()))),
    };
    (config.send_tls13_tickets, config.session_storage) = (count, sessions);
    if count > 0 {
        config.ticketer = tickets.clone();
    }
    Ok(Arc::new(config))
}
