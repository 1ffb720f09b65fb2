//! A strict client: rustls, which checks the certificate, uses each ticket once and takes new ones from every connection.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
};

use e2e::{
    Site,
    ftp::{Client, Reply, connect_from},
};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned, SupportedProtocolVersion,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
    version::{TLS12, TLS13},
};

/// Both versions there are.
pub const BOTH: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// A connection under TLS.
pub type Wire = StreamOwned<ClientConnection, TcpStream>;

/// A client that trusts the certificate of this site, with a store of tickets of its own.
pub fn trusting(site: &Site, versions: &[&'static SupportedProtocolVersion]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(site.certificate()).expect("PEM")).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config = config.with_protocol_versions(versions).expect("versions");
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}

/// Goes on under TLS on a socket; the handshake follows with the first bytes.
pub fn over(config: &Arc<ClientConfig>, socket: TcpStream) -> Wire {
    let name = ServerName::from(socket.peer_addr().expect("getpeername").ip());
    StreamOwned::new(ClientConnection::new(Arc::clone(config), name).expect("a client"), socket)
}

/// Makes the handshake, and reads nothing behind it.
pub fn shake(wire: &mut Wire) -> std::io::Result<()> {
    while wire.conn.is_handshaking() {
        wire.conn.complete_io(&mut wire.sock)?;
    }
    Ok(())
}

/// A session under TLS, with data connections under TLS.
pub struct Session {
    /// Its control connection.
    pub control: Client,
    /// What it trusts, and its tickets.
    pub config: Arc<ClientConfig>,
}

impl Session {
    /// AUTH TLS, and the handshake.
    pub fn begin(mut control: Client, config: Arc<ClientConfig>) -> Self {
        control.expect("AUTH TLS", &[234]);
        control.over_wire(|socket| Box::new(over(&config, socket)));
        Session { control, config }
    }

    /// A session of this account.
    pub fn login(site: &Site, name: &str, versions: &[&'static SupportedProtocolVersion]) -> Self {
        let mut session = Self::begin(Client::connect(site.address), trusting(site, versions));
        session.control.login(name, site.account(name).password);
        session.protect();
        session
    }

    /// PBSZ 0 and PROT P.
    pub fn protect(&mut self) {
        self.control.expect("PBSZ 0", &[200]);
        self.control.expect("PROT P", &[200]);
    }

    /// EPSV, and a connection to its port that will be under TLS.
    pub fn data(&mut self) -> Wire {
        let socket = self.data_in_clear();
        over(&self.config, socket)
    }

    /// EPSV, and a connection to its port from the address of the control connection.
    pub fn data_in_clear(&mut self) -> TcpStream {
        let (own, address) = (self.control.local().ip(), self.control.epsv());
        connect_from(&own.to_string(), address)
    }

    /// Downloads; what came, how the handshake went, and the final reply.
    pub fn fetch(&mut self, line: &str) -> (Vec<u8>, Option<HandshakeKind>, Reply) {
        let mut data = self.data();
        self.control.expect(line, &[150, 125]);
        let mut bytes = Vec::new();
        // Without close_notify this is an error: the end may be missing.
        let read = data.read_to_end(&mut bytes);
        let reply = self.control.reply();
        assert!(read.is_ok() || !reply.is(2), "{line}: {read:?} with {reply:?}");
        (bytes, data.conn.handshake_kind(), reply)
    }

    /// Uploads, up to the end of both directions; how the handshake went, and the final reply.
    pub fn store(&mut self, line: &str, content: &[u8]) -> (Option<HandshakeKind>, Reply) {
        let mut data = self.data();
        self.control.expect(line, &[150, 125]);
        let sent = data.write_all(content).and_then(|()| {
            data.conn.send_close_notify();
            data.flush()
        });
        let rest = data.read_to_end(&mut Vec::new());
        let reply = self.control.reply();
        assert!((sent.is_ok() && rest.is_ok()) || !reply.is(2), "{line}: {sent:?}, {rest:?} with {reply:?}");
        (data.conn.handshake_kind(), reply)
    }
}
