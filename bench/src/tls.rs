//! The client's side of TLS: one connection over a blocking socket, with as few calls as there can be.
//!
//! Every server meets the same client: TLS 1.3 (1.2 for unFTP, which knows no other), one cipher, its certificate taken as it is (its signature is not
//! checked either: that would be the client's work, and the same for all). A ticket is used once (RFC 8446 C.4).
//! Not here: what is said over it (client.rs).

use std::fmt;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, DigitallySignedStruct, HandshakeKind, SignatureScheme};

use crate::error::{Call, Error, Result};

/// Bytes received at once, at most: more than two of the longest records.
const ROOM: usize = 40 << 10;
/// Plain text in a record at most (RFC 8446 section 5.1), and what a record adds to it.
const RECORD: (usize, usize) = (16 << 10, 64);

/// How every client of one session speaks: they share its tickets, and no other session's.
///
/// # Errors
/// The library refuses its own cipher suite.
pub fn config(resumes: bool) -> Result<Arc<ClientConfig>> {
    let provider = CryptoProvider {
        cipher_suites: vec![
            aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
            aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        ],
        ..aws_lc_rs::default_provider()
    };
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(fault)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    config.resumption = if resumes { Resumption::in_memory_sessions(4) } else { Resumption::disabled() };
    Ok(Arc::new(config))
}

/// One connection.
pub struct Wire {
    tls: UnbufferedClientConnection,
    /// What came; the first `filled` bytes count.
    incoming: Vec<u8>,
    filled: usize,
    outgoing: Vec<u8>,
    ended: bool,
}

impl Wire {
    /// Does the handshake.
    ///
    /// # Errors
    /// There is none, or the socket's time limit.
    pub fn shake(mut socket: &TcpStream, config: &Arc<ClientConfig>) -> Result<Self> {
        let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
        let tls = UnbufferedClientConnection::new(Arc::clone(config), name).map_err(fault)?;
        let mut wire = Wire { tls, incoming: vec![0; ROOM], filled: 0, outgoing: Vec::new(), ended: false };
        loop {
            wire.step(&mut |_| {}, None)?;
            socket.write_all(&wire.outgoing).call(|| "send a handshake".into())?;
            wire.outgoing.clear();
            if !wire.tls.is_handshaking() {
                return Ok(wire);
            }
            if wire.fill(socket)? == 0 {
                return Err(Error::Other("the server closed a connection in its handshake".into()));
            }
        }
    }

    /// Whether the server took a ticket.
    pub fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Sends all of `plain`.
    ///
    /// # Errors
    /// As write(2), or the connection is over.
    pub fn send(&mut self, mut socket: &TcpStream, plain: &[u8]) -> Result<()> {
        self.step(&mut |_| {}, Some(Saying::Bytes(plain)))?;
        socket.write_all(&self.outgoing).call(|| "send records".into())?;
        self.outgoing.clear();
        Ok(())
    }

    /// Says close_notify.
    ///
    /// # Errors
    /// As [`Wire::send`].
    pub fn close(&mut self, mut socket: &TcpStream) -> Result<()> {
        self.step(&mut |_| {}, Some(Saying::Nothing))?;
        socket.write_all(&self.outgoing).call(|| "send close_notify".into())?;
        self.outgoing.clear();
        Ok(())
    }

    /// Receives once; false when the server has said close_notify, or has closed.
    ///
    /// # Errors
    /// As read(2), or what came is no TLS.
    pub fn receive(&mut self, socket: &TcpStream, mut give: impl FnMut(&[u8])) -> Result<bool> {
        // What came with the end of the handshake is still to be opened.
        let mut gave = false;
        let mut noted = |plain: &[u8]| {
            gave = true;
            give(plain);
        };
        self.step(&mut noted, None)?;
        if gave && !self.ended {
            return Ok(true);
        }
        if self.ended || self.fill(socket)? == 0 {
            return Ok(false);
        }
        self.step(&mut give, None)?;
        Ok(!self.ended)
    }

    fn fill(&mut self, mut socket: &TcpStream) -> Result<usize> {
        let got = socket.read(&mut self.incoming[self.filled..]).call(|| "receive records".into())?;
        self.filled += got;
        Ok(got)
    }

    /// Goes on until more has to come, or `saying` is said.
    fn step(&mut self, give: &mut dyn FnMut(&[u8]), mut saying: Option<Saying<'_>>) -> Result<()> {
        let mut start = 0;
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.tls.process_tls_records(&mut self.incoming[start..self.filled]);
            let mut rests = false;
            match state.map_err(fault)? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(fault)?;
                        discard += record.discard;
                        give(record.payload);
                    }
                }
                ConnectionState::EncodeTlsData(mut data) => append(&mut self.outgoing, 1024, |room| {
                    data.encode(room).map_err(|error| match error {
                        EncodeError::InsufficientSize(size) => Some(size.required_size),
                        EncodeError::AlreadyEncoded => None,
                    })
                })?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.ended = true,
                ConnectionState::WriteTraffic(mut traffic) => {
                    let needed = |error| match error {
                        EncryptError::InsufficientSize(size) => Some(size.required_size),
                        EncryptError::EncryptExhausted => None,
                    };
                    match saying.take() {
                        Some(Saying::Bytes(plain)) => {
                            let room = plain.len() + (plain.len() / RECORD.0 + 1) * RECORD.1;
                            append(&mut self.outgoing, room, |room| traffic.encrypt(plain, room).map_err(needed))?;
                        }
                        Some(Saying::Nothing) => append(&mut self.outgoing, RECORD.1, |room| {
                            traffic.queue_close_notify(room).map_err(needed)
                        })?,
                        None => rests = true,
                    }
                }
                _ => rests = true,
            }
            start += discard;
            if rests {
                break;
            }
        }
        self.incoming.copy_within(start..self.filled, 0);
        self.filled -= start;
        if saying.is_some() { Err(Error::Other("a connection under TLS is over".into())) } else { Ok(()) }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("filled", &self.filled).field("ended", &self.ended).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy)]
enum Saying<'a> {
    Bytes(&'a [u8]),
    /// close_notify.
    Nothing,
}

/// Appends what `put` writes, in so much room as it takes.
fn append(
    to: &mut Vec<u8>,
    mut room: usize,
    mut put: impl FnMut(&mut [u8]) -> std::result::Result<usize, Option<usize>>,
) -> Result<()> {
    let filled = to.len();
    loop {
        to.resize(filled + room, 0);
        match put(&mut to[filled..]) {
            Ok(written) => {
                to.truncate(filled + written);
                return Ok(());
            }
            Err(Some(needed)) if needed > room => room = needed,
            Err(_) => return Err(Error::Other("nothing more can be said under TLS".into())),
        }
    }
}

fn fault(error: rustls::Error) -> Error {
    Error::Other(format!("TLS: {error}"))
}

/// Takes every certificate: who the server is, the bench knows.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
