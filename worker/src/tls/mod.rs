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
    crypto::{GetRandomFailed, aws_lc_rs},
    server::{NoClientAuth, NoServerSessionStorage, ResolvesServerCert, danger::ClientCertVerifier},
};

use clients::Clients;
pub use connection::{Connection, Standing};
pub use outgoing::Outgoing;
pub use stream::Stream;
use tickets::Tickets;

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
    data: Arc<ServerConfig>,
    /// For data connections where nothing is resumed.
    unresumed: Arc<ServerConfig>,
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
        let (tickets, clients) = (Arc::new(Tickets::new()?), Arc::new(Clients::new()));
        let [control, asking, data, unresumed] = configs(&certificates, &tickets, &clients)?;
        Ok(Tls { control, asking, clients, data, unresumed, tickets, last: 0, handshakes: 0 })
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
        let config = if resumption == Resumption::Off { &self.unresumed } else { &self.data };
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

/// For control connections without and with certificates of clients, for data connections, and for those that resume nothing.
fn configs(
    certificates: &Arc<dyn ResolvesServerCert>,
    tickets: &Arc<Tickets>,
    clients: &Arc<Clients>,
) -> Result<[Arc<ServerConfig>; 4], Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = |alpn: &[&[u8]], count, clients: Arc<dyn ClientCertVerifier>| {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(Arc::clone(certificates));
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        config.send_tls13_tickets = count;
        if count > 0 {
            config.ticketer = tickets.clone();
            config.session_storage = tickets.clone();
        } else {
            config.session_storage = Arc::new(NoServerSessionStorage {});
        }
        Ok::<_, Error>(Arc::new(config))
    };
    // Clients that use ALPN on data connections say ftp-data there, which is not registered.
    let data: [&[u8]; 2] = [b"ftp-data", b"ftp"];
    let nobody = || Arc::new(NoClientAuth);
    Ok([
        config(&[b"ftp"], TICKETS.0, nobody())?,
        config(&[b"ftp"], TICKETS.0, clients.clone())?,
        config(&data, TICKETS.1, nobody())?,
        config(&data, 0, nobody())?,
    ])
}
