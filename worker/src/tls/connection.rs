//! One TLS connection: bytes of the client to plain text, plain text to bytes for the client. Sans-io.
//!
//! Keeps nothing but rustls' state: the bytes of an unfinished record are the caller's to keep, and what is to be sent
//! goes to the caller's buffer. rustls bounds what it takes of handshake messages, alerts and key updates.

use std::{fmt, sync::Arc};

use child_ipc::link::{settings::Resumption, worker_authd::Possession};
use rustls::{
    Error, HandshakeKind, InvalidMessage, PeerIncompatible, ProtocolVersion, ServerConfig,
    server::{ServerConnectionData, UnbufferedServerConnection},
    unbuffered::{ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError, UnbufferedStatus},
};
use zeroize::Zeroize;

use super::{
    Outgoing, Owner,
    clients::Clients,
    keys::NoSignature,
    tickets::{Keep, Tickets, refusal},
};

/// What a record adds to its plain text, at most: header, tag, and nonce or type.
const RECORD_OVERHEAD: usize = 64;
/// Plain text in a record, at most (RFC 8446 5.1).
const FRAGMENT: usize = 16 << 10;
/// A fatal alert of TLS 1.2 in clear (RFC 5246 7.2).
const HANDSHAKE_FAILURE: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The handshake goes on.
    Handshake,
    /// Plain text goes both ways.
    Open,
    /// The client has said close_notify: nothing comes any more, but something may still go.
    Ended,
}

/// One connection.
pub struct Connection {
    tls: Box<UnbufferedServerConnection>,
    tickets: Arc<Tickets>,
    owner: Owner,
    /// While the client may show a certificate.
    clients: Option<Arc<Clients>>,
    /// The one it has shown.
    possession: Option<Box<Possession>>,
    /// The client has offered somebody else's ticket.
    foreign: bool,
    /// Of a control connection, what data connections resume.
    keep: Option<Keep>,
    ended: bool,
    closed: bool,
    /// Nothing can be sent any more.
    failed: bool,
    /// Bytes of whole records that rustls has seen and wants to see again, in front of what comes: parts of a message of the
    /// handshake. It looks for their end even where nothing is to be read, and panics when they are not there.
    seen: usize,
}

impl Connection {
    pub(super) fn new(config: &Arc<ServerConfig>, tickets: &Arc<Tickets>, owner: Owner) -> Result<Self, Error> {
        let tls = Box::new(UnbufferedServerConnection::new(Arc::clone(config))?);
        let tickets = Arc::clone(tickets);
        let (clients, possession, foreign, keep, ended, closed, failed, seen) = Default::default();
        Ok(Connection { tls, tickets, owner, clients, possession, foreign, keep, ended, closed, failed, seen })
    }

    /// The same, where its configuration asks for certificates.
    pub(super) fn asks(self, clients: Option<Arc<Clients>>) -> Self {
        Connection { clients, ..self }
    }

    /// The same, for a control connection: what it leaves for data connections to resume is kept while it is there.
    pub(super) fn keeps(mut self) -> Self {
        self.keep = Some(self.tickets.keep(self.owner));
        self
    }

    /// The certificate that the client has shown, with the proof that it is its own, once the handshake is over; then it is no
    /// longer here. One that comes without a proof authd could judge (TLS 1.2) is none.
    pub fn take_possession(&mut self) -> Option<Box<Possession>> {
        if self.tls.is_handshaking() { None } else { self.possession.take() }
    }

    /// Takes whole records from the front of `incoming`, which is written over; `give` gets their plain text and says
    /// whether it takes more. What is to be sent is appended to `out`.
    ///
    /// Tells how many bytes were taken, whatever else has come of it, and how far the connection is. Plain text that is `secret`
    /// is wiped where rustls had it.
    ///
    /// # Errors
    /// The client broke the protocol, or the certificate's signer did not sign; `out` has an alert for the client.
    pub fn take(
        &mut self,
        incoming: &mut [u8],
        out: &mut Outgoing,
        secret: bool,
        mut give: impl FnMut(&[u8]) -> bool,
    ) -> (usize, Result<Standing, Error>) {
        let handshake = self.tls.is_handshaking();
        if handshake {
            self.tickets.serve(self.owner);
        }
        let taken = self.take_records(incoming, out, secret, &mut give);
        self.foreign |= handshake && self.tickets.foreign();
        if handshake {
            self.possession = self.clients.as_ref().and_then(|clients| clients.shown()).or(self.possession.take());
            self.clients.take_if(|_| !self.tls.is_handshaking());
        }
        taken
    }

    fn take_records(
        &mut self,
        incoming: &mut [u8],
        out: &mut Outgoing,
        secret: bool,
        give: &mut impl FnMut(&[u8]) -> bool,
    ) -> (usize, Result<Standing, Error>) {
        let mut taken = 0;
        // rustls moves the parts of a message together, over the headers of those it has seen.
        let seen = std::mem::take(&mut self.seen).min(incoming.len());
        let whole = seen + whole_records(incoming.get(seen..).unwrap_or_default());
        loop {
            let rest = incoming.get_mut(taken..).unwrap_or_default();
            let UnbufferedStatus { mut discard, state } = self.tls.process_tls_records(rest);
            let (mut goes_on, mut waits, mut longest) = (true, false, 0);
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(Ok(record)) = traffic.next_record() {
                        discard += record.discard;
                        longest = longest.max(record.payload.len());
                        goes_on &= give(record.payload);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => encode(&mut data, out),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.ended = true,
                Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_) | ConnectionState::Closed) => {
                    (goes_on, waits) = (false, true);
                }
                // Early data is never allowed, and there are no other states in this version.
                Ok(_) => return (taken + discard, Err(Error::General("early data".into()))),
                Err(error) => {
                    self.drain(&error, out);
                    return (taken + discard, Err(error));
                }
            }
            if secret {
                wipe_freed(longest);
            }
            taken += discard;
            if !goes_on {
                // What waits behind a reader that has enough was not looked at.
                self.seen = if waits { whole.saturating_sub(taken) } else { 0 };
                return (taken, Ok(self.standing()));
            }
        }
    }

    /// How far it is.
    pub fn standing(&self) -> Standing {
        match (self.ended, self.tls.is_handshaking()) {
            (true, _) => Standing::Ended,
            (false, true) => Standing::Handshake,
            (false, false) => Standing::Open,
        }
    }

    /// Whether the handshake goes on.
    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Why a data connection is not acceptable whose client has to show, by a ticket, that it is the one of the control connection.
    pub fn refusal(&self, resumption: Resumption) -> Option<&'static str> {
        refusal(resumption, self.tls.handshake_kind() == Some(HandshakeKind::Resumed), self.foreign)
    }

    /// Whether this is TLS 1.3.
    pub fn is_newest(&self) -> bool {
        self.tls.protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    /// Version and cipher suite, for the log.
    pub fn names(&self) -> (&'static str, &'static str) {
        let version = if self.is_newest() { "1.3" } else { "1.2" };
        let suite = self.tls.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
        (version, suite.unwrap_or("unknown"))
    }

    /// Appends `plain` to `out`, in records; false while that is not possible (before the end of the handshake, or
    /// when the keys are worn out).
    pub fn seal(&mut self, plain: &[u8], out: &mut Outgoing) -> bool {
        let room = plain.len() + (plain.len() / FRAGMENT + 1) * RECORD_OVERHEAD;
        self.write(out, room, |traffic, room| traffic.encrypt(plain, room))
    }

    /// Appends close_notify to `out`, once: the client knows then that nothing is missing (RFC 8446 6.1).
    pub fn close(&mut self, out: &mut Outgoing) {
        if !std::mem::replace(&mut self.closed, true) {
            self.write(out, RECORD_OVERHEAD, |traffic, room| traffic.queue_close_notify(room));
        }
    }

    /// Whether close_notify has been sealed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    fn write(
        &mut self,
        out: &mut Outgoing,
        mut room: usize,
        mut put: impl FnMut(&mut WriteTraffic<'_>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> bool {
        if self.failed {
            return false;
        }
        let mut seen = vec![0; self.seen];
        loop {
            match self.tls.process_tls_records(&mut seen).state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => match put(&mut traffic, out.room(room)) {
                    Ok(written) => {
                        out.fill(written);
                        return true;
                    }
                    // Something else is to be sent first, of which rustls has told only now.
                    Err(EncryptError::InsufficientSize(InsufficientSizeError { required_size }))
                        if required_size > room =>
                    {
                        room = required_size;
                    }
                    Err(_) => return false,
                },
                Ok(ConnectionState::EncodeTlsData(mut data)) => encode(&mut data, out),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.ended = true,
                Ok(_) | Err(_) => return false,
            }
        }
    }

    /// What rustls wants sent after it has failed: an alert. It is asked for nothing else: it would look at what made it fail again.
    fn drain(&mut self, error: &Error, out: &mut Outgoing) {
        self.failed = true;
        // Without a signature it has no word for a client of TLS 1.2; nothing is encrypted there yet.
        let unsigned = matches!(error, Error::General(_) | Error::Other(_)) && self.tls.is_handshaking();
        if unsigned && self.tls.protocol_version() == Some(ProtocolVersion::TLSv1_2) {
            out.push(&HANDSHAKE_FAILURE);
        }
        while self.tls.wants_write() {
            match self.tls.process_tls_records(&mut []).state {
                Ok(ConnectionState::EncodeTlsData(mut data)) => encode(&mut data, out),
                _ => return,
            }
        }
    }
}

/// Wipes what rustls has just freed: it gives plain text in memory of its own, of exactly this length, and does not wipe
/// that. malloc gives out again first what was freed last (calloc, of which zeros are had, does not).
fn wipe_freed(length: usize) {
    let mut again = vec![1_u8; length];
    std::hint::black_box(&mut again).zeroize();
}

type WriteTraffic<'c> = rustls::unbuffered::WriteTraffic<'c, ServerConnectionData>;

fn encode(data: &mut EncodeTlsData<'_, ServerConnectionData>, out: &mut Outgoing) {
    let mut room = 1024;
    loop {
        match data.encode(out.room(room)) {
            Ok(written) => return out.fill(written),
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) if required_size > room => {
                room = required_size;
            }
            Err(_) => return,
        }
    }
}

/// How many bytes the whole records at the front have (RFC 8446 5.1).
fn whole_records(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let [_, _, _, high, low, payload @ ..] = rest {
        let Some(behind) = payload.get(usize::from(u16::from_be_bytes([*high, *low]))..) else { break };
        rest = behind;
    }
    bytes.len() - rest.len()
}

/// Whether a connection failed for want of a key that signs for its client.
pub(super) fn is_unsigned(error: &Error) -> bool {
    // Of TLS 1.3, and of TLS 1.2.
    matches!(error, Error::PeerIncompatible(PeerIncompatible::NoSignatureSchemesInCommon) | Error::General(_))
}

/// Why a connection failed, in few words of ours: what rustls says may hold what the client sent.
pub fn why(error: &Error) -> &'static str {
    match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            "the client does not speak TLS"
        }
        Error::InvalidMessage(_) => "a malformed message",
        Error::PeerIncompatible(_) => "nothing in common with the client: version, cipher or signature",
        Error::PeerMisbehaved(_) => "the client broke the protocol",
        Error::AlertReceived(_) => "the client refused it",
        Error::NoApplicationProtocol => "the client offers another protocol by ALPN",
        Error::DecryptError => "a record that does not decrypt",
        Error::Other(other) => {
            other.0.downcast_ref().map_or("no signature by the certificate's key", |NoSignature(why)| why)
        }
        _ => "it is not possible with this client",
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("owner", &self.owner).field("standing", &self.standing()).finish()
    }
}
