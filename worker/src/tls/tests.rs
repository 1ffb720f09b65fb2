//! A real client, and clients that are none, against streams and connections over socketpairs.

use std::{
    io::{Read, Write},
    os::{fd::AsFd, unix::net::UnixStream},
    sync::{Arc, Mutex},
    thread,
};

use rustls::{
    AlertDescription, ClientConfig, ClientConnection, HandshakeKind, StreamOwned, SupportedProtocolVersion,
    client::{Resumption as Resumes, Tls12Resumption},
    server::ProducesTickets,
    version::{TLS12, TLS13},
};

use super::{keys::Certificates, stream::Flow, *};

#[path = "../../tests/links/keys.rs"]
mod authd;

const BOTH: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// Ticket keys that change when they are told to.
#[derive(Debug)]
pub(super) struct Keys(Mutex<Arc<dyn ProducesTickets>>);

impl Keys {
    pub fn new() -> Self {
        Keys(Mutex::new(Ticketer::new().unwrap()))
    }

    /// As after twelve hours: what was sealed before cannot be opened any more.
    pub fn change(&self) {
        *self.0.lock().unwrap() = Ticketer::new().unwrap();
    }
}

impl ProducesTickets for Keys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.0.lock().unwrap().lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.lock().unwrap().encrypt(plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.0.lock().unwrap().decrypt(ticket)
    }
}

type Client = StreamOwned<ClientConnection, UnixStream>;

fn client(config: &Arc<ClientConfig>, socket: UnixStream) -> Client {
    StreamOwned::new(ClientConnection::new(Arc::clone(config), authd::name()).unwrap(), socket)
}

/// Of authd, which signs for it.
fn certificates() -> Arc<Certificates> {
    let (there, here) = child_ipc::link::worker_keys::AuthdEnd::pair().unwrap();
    authd::sign(there);
    let certificates = Certificates::default();
    certificates.connect(here).unwrap();
    certificates.replace(authd::table()).unwrap();
    Arc::new(certificates)
}

fn pair() -> (UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (ours, theirs)
}

/// Steps until it no longer waits for the other side.
fn until(mut step: impl FnMut() -> Flow) -> Flow {
    loop {
        match step() {
            Flow::Blocked => thread::yield_now(),
            flow => return flow,
        }
    }
}

/// A control connection's handshake, to the end of what a client reads then: its tickets.
fn control(tls: &mut Tls, config: &Arc<ClientConfig>) -> Owner {
    control_of(tls, config, false).1
}

/// The same, where clients are asked for certificates.
fn control_of(tls: &mut Tls, config: &Arc<ClientConfig>, asks: bool) -> (Connection, Owner) {
    let (mut connection, owner) = tls.accept(asks).unwrap();
    let mut client = ClientConnection::new(Arc::clone(config), authd::name()).unwrap();
    let (mut out, mut there) = (Outgoing::default(), Vec::new());
    while client.is_handshaking() || connection.is_handshaking() {
        while client.wants_write() {
            client.write_tls(&mut there).unwrap();
        }
        let (taken, standing) = connection.take(&mut there, &mut out, false, |_| true);
        standing.unwrap();
        there.drain(..taken);
        let mut rest = out.filled();
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().unwrap();
        }
        out.clear();
    }
    tls.settled();
    (connection, owner)
}

/// Everything an upload brings, until close_notify.
fn receive(stream: &mut Stream, data: &UnixStream) -> (Vec<u8>, Flow) {
    let (mut got, mut buffer) = (stream.take_early(), vec![0; 3 * LONGEST_RECORD]);
    loop {
        if stream.is_ended() {
            stream.part(data.as_fd());
            return (got, Flow::Done);
        }
        match stream.receive(data.as_fd(), &mut buffer) {
            Ok(0) => return (got, Flow::Refused("cut")),
            Ok(filled) => {
                match stream.open(data.as_fd(), &mut buffer[..filled], |plain| got.extend_from_slice(plain)) {
                    Flow::Peer(errno) => return (got, Flow::Peer(errno)),
                    _ => continue,
                }
            }
            Err(rustix::io::Errno::AGAIN) => thread::yield_now(),
            Err(errno) => return (got, Flow::Peer(errno)),
        }
    }
}

#[test]
fn uploads_come_whole_from_clients_that_never_read_and_give_tickets_to_those_that_do() {
    for (version, reads) in BOTH.into_iter().flat_map(|version| [(version, false), (version, true)]) {
        let (mut tls, config) = (Tls::new(certificates()).unwrap(), authd::trusting(&[version]));
        let owner = control(&mut tls, &config);
        for turn in 0..12_usize {
            let (ours, theirs) = pair();
            let config = Arc::clone(&config);
            let sent: Vec<u8> = (0..turn * 9000).map(|n| u8::try_from(n % 251).unwrap()).collect();
            let expected = sent.clone();
            let sender = thread::spawn(move || {
                let mut client = client(&config, theirs);
                client.write_all(&sent).unwrap();
                client.flush().unwrap();
                client.conn.send_close_notify();
                client.flush().unwrap();
                let resumed = client.conn.handshake_kind() == Some(HandshakeKind::Resumed);
                if reads {
                    assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
                }
                resumed
            });
            let mut stream = tls.secure(owner, true, Resumption::IfOffered).unwrap();
            assert_eq!(until(|| stream.shake(ours.as_fd())), Flow::Done);
            let (got, flow) = receive(&mut stream, &ours);
            assert_eq!(flow, Flow::Done);
            drop(ours);
            assert!(got == expected, "{} of {} bytes", got.len(), expected.len());
            let resumed = sender.join().unwrap();
            // A client that does not read has the tickets of its control connection alone; one of TLS 1.2 needs one only.
            assert!(resumed || !(reads || turn < TICKETS.0 || *version == TLS12), "{version:?}, turn {turn}");
        }
    }
}

#[test]
fn downloads_end_with_close_notify_and_are_resumed_as_often_as_there_are_any() {
    for version in BOTH {
        let (mut tls, config) = (Tls::new(certificates()).unwrap(), authd::trusting(&[version]));
        let owner = control(&mut tls, &config);
        for turn in 0..12 {
            let (ours, theirs) = pair();
            let config = Arc::clone(&config);
            let receiver = thread::spawn(move || {
                let (mut client, mut got) = (client(&config, theirs), Vec::new());
                // Without close_notify, this is an error.
                client.read_to_end(&mut got).unwrap();
                got
            });
            let mut stream = tls.secure(owner, false, Resumption::Required).unwrap();
            assert_eq!(until(|| stream.shake(ours.as_fd())), Flow::Done, "{version:?}, turn {turn}");
            let (plain, mut records) = (vec![7; 100_000], Outgoing::default());
            for last in [false, true] {
                let mut flow = stream.send(ours.as_fd(), &plain, last, &mut records);
                while flow == Flow::Blocked {
                    flow = stream.flush(ours.as_fd());
                }
                assert_eq!(flow, Flow::Done);
            }
            stream::finish(ours.as_fd());
            drop(ours);
            assert!(receiver.join().unwrap() == vec![7; 200_000]);
        }
    }
}

/// What a data connection of `owner` comes to for a client with these tickets.
fn shaken(tls: &Tls, owner: Owner, resumption: Resumption, config: &Arc<ClientConfig>) -> Flow {
    shaken_and_told(tls, owner, resumption, config).0
}

/// The same, and what the client is told when it is refused.
fn shaken_and_told(
    tls: &Tls,
    owner: Owner,
    resumption: Resumption,
    config: &Arc<ClientConfig>,
) -> (Flow, Option<AlertDescription>) {
    let (ours, theirs) = pair();
    let config = Arc::clone(config);
    let other = thread::spawn(move || {
        let mut client = client(&config, theirs);
        let error = client.read(&mut [0; 1]).err()?.into_inner()?;
        match error.downcast_ref() {
            Some(Error::AlertReceived(alert)) => Some(*alert),
            _ => None,
        }
    });
    let mut stream = tls.secure(owner, false, resumption).unwrap();
    let flow = until(|| stream.shake(ours.as_fd()));
    drop(ours);
    (flow, other.join().unwrap())
}

const NOT_RESUMED: Flow = Flow::Refused("it does not resume the TLS session of the control connection");
const FOREIGN: Flow = Flow::Refused("it resumes the TLS session of another control connection");

#[test]
fn a_ticket_of_another_session_opens_nothing() {
    for version in BOTH {
        let mut tls = Tls::new(certificates()).unwrap();
        let (first, second, none) =
            (authd::trusting(&[version]), authd::trusting(&[version]), authd::trusting(&[version]));
        let (a, b) = (control(&mut tls, &first), control(&mut tls, &second));
        for _ in 0..3 {
            // Nor does it bring one that does.
            assert_eq!(shaken(&tls, b, Resumption::Required, &none), NOT_RESUMED);
        }
        assert_eq!(shaken(&tls, b, Resumption::Required, &first), NOT_RESUMED);
        assert_eq!(shaken(&tls, a, Resumption::IfOffered, &second), FOREIGN);
        assert_eq!(shaken(&tls, b, Resumption::Required, &second), Flow::Done);
        assert_eq!(shaken(&tls, a, Resumption::Required, &first), Flow::Done);
        let none = authd::trusting(&[version]);
        assert_eq!(shaken(&tls, a, Resumption::IfOffered, &none), Flow::Done);
        assert_eq!(shaken(&tls, b, Resumption::Off, &none), Flow::Done);
    }
}

#[test]
fn a_stranger_is_told_by_an_alert_and_gets_no_signature() {
    for version in BOTH {
        let (there, here) = child_ipc::link::worker_keys::AuthdEnd::pair().unwrap();
        let certificates = Arc::new(Certificates::default());
        certificates.replace(authd::table()).unwrap();
        certificates.connect(here).unwrap();
        authd::sign(there);
        let mut tls = Tls::new(certificates.clone()).unwrap();
        let (own, other) = (authd::trusting(&[version]), authd::trusting(&[version]));
        let (owner, _) = (control(&mut tls, &own), control(&mut tls, &other));
        // Nobody is there who could sign.
        certificates.disconnect();
        let failure = Some(AlertDescription::HandshakeFailure);
        let none = authd::trusting(&[version]);
        assert_eq!(shaken_and_told(&tls, owner, Resumption::Required, &none), (NOT_RESUMED, failure));
        assert_eq!(shaken_and_told(&tls, owner, Resumption::Required, &other), (NOT_RESUMED, failure));
        assert_eq!(shaken_and_told(&tls, owner, Resumption::IfOffered, &other), (FOREIGN, failure));
        assert_eq!(shaken_and_told(&tls, owner, Resumption::Required, &own), (Flow::Done, None));
    }
}

#[test]
fn a_client_whose_ticket_is_too_old_may_make_a_full_handshake_where_it_may_without_one() {
    for version in BOTH {
        let keys = Arc::new(Keys::new());
        let signed: Arc<dyn ResolvesServerCert> = certificates();
        let mut tls = Tls::with(&signed, Tickets::new(keys.clone())).unwrap();
        let own = authd::trusting(&[version]);
        let owner = control(&mut tls, &own);
        // It is sealed with a key that is no more.
        keys.change();
        assert_eq!(shaken(&tls, owner, Resumption::IfOffered, &own), Flow::Done, "{version:?}");
        keys.change();
        assert_eq!(shaken(&tls, owner, Resumption::Required, &own), NOT_RESUMED, "{version:?}");
        // A ticket of another worker, whose keys are not known here.
        let mut another = Tls::new(certificates()).unwrap();
        let config = authd::trusting(&[version]);
        control(&mut another, &config);
        assert_eq!(shaken(&tls, owner, Resumption::IfOffered, &config), FOREIGN, "{version:?}");
    }
}

/// A client of TLS 1.2 that knows session ids and no tickets.
fn without_tickets() -> Arc<ClientConfig> {
    let mut config = ClientConfig::clone(&authd::trusting(&[&TLS12]));
    config.resumption = Resumes::in_memory_sessions(8).tls12_resumption(Tls12Resumption::SessionIdOnly);
    Arc::new(config)
}

#[test]
fn a_session_id_is_good_as_long_as_its_control_connection_however_many_others_come() {
    let mut tls = Tls::new(certificates()).unwrap();
    let (own, other) = (without_tickets(), without_tickets());
    let (connection, owner) = control_of(&mut tls, &own, false);
    let (second, another) = control_of(&mut tls, &other, false);
    for _ in 0..1100 {
        control_of(&mut tls, &without_tickets(), false);
    }
    for _ in 0..3 {
        assert_eq!(shaken(&tls, owner, Resumption::Required, &own), Flow::Done);
    }
    // Full handshakes on data connections neither take its place nor leave anything.
    for _ in 0..3 {
        let stranger = without_tickets();
        assert_eq!(shaken(&tls, owner, Resumption::IfOffered, &stranger), Flow::Done);
        assert_eq!(shaken(&tls, owner, Resumption::Required, &stranger), NOT_RESUMED);
    }
    assert_eq!(shaken(&tls, owner, Resumption::Required, &own), Flow::Done);
    assert_eq!(shaken(&tls, owner, Resumption::IfOffered, &other), FOREIGN);
    assert_eq!(shaken(&tls, another, Resumption::Required, &other), Flow::Done);
    drop((connection, second));
    assert_eq!(shaken(&tls, owner, Resumption::Required, &own), NOT_RESUMED);
}

#[test]
fn an_upload_without_close_notify_is_cut() {
    let mut tls = Tls::new(certificates()).unwrap();
    let config = authd::trusting(&[&TLS13]);
    let owner = control(&mut tls, &config);
    let (ours, theirs) = pair();
    let sender = thread::spawn(move || client(&config, theirs).write_all(&[1; 100_000]).unwrap());
    let mut stream = tls.secure(owner, true, Resumption::Required).unwrap();
    assert_eq!(until(|| stream.shake(ours.as_fd())), Flow::Done);
    assert!(matches!(receive(&mut stream, &ours), (_, Flow::Refused("cut") | Flow::Peer(_))));
    sender.join().unwrap();
}

#[test]
fn bytes_that_are_no_tls_end_the_connection_and_are_answered_by_an_alert_at_most() {
    let hostile: [&[u8]; 7] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"USER anonymous\r\nPASS x\r\n",
        // A hello of SSL 2.0.
        b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10\x01\x00\x80\x02\x00\x80\x03\x00\x80\x04\x00\x80\x05\x00\x80",
        // A hello of TLS 1.0.
        b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x01aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb\x00\x00\x04\x00\x2f\x00\x35\x01\x00",
        // A record longer than any.
        b"\x16\x03\x01\xff\xff\x01",
        // A record of a type there is not.
        b"\xff\x03\x03\x00\x01\x00",
        &[0; 300],
    ];
    for bytes in hostile {
        let mut tls = Tls::new(certificates()).unwrap();
        let ((mut connection, _), mut out) = (tls.accept(false).unwrap(), Outgoing::default());
        let mut incoming = bytes.to_vec();
        let (_, standing) = connection.take(&mut incoming, &mut out, false, |_| panic!("plain text"));
        assert!(standing.is_err(), "{}", bytes.escape_ascii());
        assert!(!connection::why(&standing.unwrap_err()).is_empty());
        // An alert of two bytes (RFC 8446 6), nothing else.
        assert!(out.filled().is_empty() || (out.filled()[0] == 21 && out.filled().len() == 7));
    }
}

#[test]
fn a_flood_of_alerts_ends_the_connection() {
    let mut tls = Tls::new(certificates()).unwrap();
    let ((mut connection, _), mut out) = (tls.accept(false).unwrap(), Outgoing::default());
    let mut failed = false;
    for _ in 0..100 {
        // A warning: no_renegotiation.
        let (_, standing) = connection.take(&mut b"\x15\x03\x03\x00\x02\x01\x64".repeat(10), &mut out, false, |_| true);
        failed |= standing.is_err();
    }
    assert!(failed && out.filled().len() < 1000);
}

#[test]
fn half_a_handshake_takes_no_more_than_it_has_sent_and_waits() {
    let mut tls = Tls::new(certificates()).unwrap();
    let ((mut connection, _), mut out) = (tls.accept(false).unwrap(), Outgoing::default());
    let mut client = ClientConnection::new(authd::trusting(&[&TLS13]), authd::name()).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    let half = hello.len() / 2;
    let (taken, standing) = connection.take(&mut hello[..half], &mut out, false, |_| true);
    assert_eq!((taken, standing.unwrap()), (0, Standing::Handshake));
    assert!(out.filled().is_empty());
    assert!(!connection.seal(b"220 Ready.\r\n", &mut out), "nothing is said before the handshake is over");
}

#[test]
fn no_more_handshakes_than_allowed_are_under_way() {
    let mut tls = Tls::new(certificates()).unwrap();
    let all: Vec<_> = (0..MOST_HANDSHAKES).map(|_| tls.accept(false).unwrap()).collect();
    assert!(!tls.has_room());
    tls.settled();
    assert!(tls.has_room() && all.len() == MOST_HANDSHAKES);
}

#[test]
fn a_certificate_is_kept_with_its_proof_for_the_client_that_has_shown_it_alone() {
    let mut tls = Tls::new(certificates()).unwrap();
    let (showing, der) = authd::showing(&[&TLS13], 1);
    let mut shown = |config: &Arc<ClientConfig>, asks| control_of(&mut tls, config, asks).0.take_possession();
    let first = shown(&showing, true).unwrap();
    assert_eq!(first.certificate.as_bytes(), der);
    assert!([32, 48].contains(&first.transcript.as_bytes().len()) && !first.signature.is_empty());
    let none = authd::trusting(&[&TLS13]);
    assert_eq!(shown(&none, true), None);
    // The same client again, whatever it has kept of the connection before: it has signed anew.
    let second = shown(&showing, true).unwrap();
    assert_eq!(second.certificate, first.certificate);
    assert_ne!(second.transcript, first.transcript);
    // It is not asked; there is no proof of that kind; the certificate is too long.
    assert_eq!(shown(&showing, false), None);
    assert_eq!(shown(&authd::showing(&[&TLS12], 1).0, true), None);
    assert_eq!(shown(&authd::showing(&[&TLS13], 300).0, true), None);
}

#[test]
fn data_connections_resume_the_control_connection_of_a_client_with_a_certificate() {
    for version in BOTH {
        let (mut tls, (config, _)) = (Tls::new(certificates()).unwrap(), authd::showing(&[version], 1));
        let (_, owner) = control_of(&mut tls, &config, true);
        let (ours, theirs) = pair();
        let sender = thread::spawn(move || {
            let mut client = client(&config, theirs);
            client.write_all(b"x").unwrap();
            client.conn.send_close_notify();
            client.flush().unwrap();
            client.conn.handshake_kind()
        });
        let mut stream = tls.secure(owner, true, Resumption::Required).unwrap();
        assert_eq!(until(|| stream.shake(ours.as_fd())), Flow::Done);
        assert_eq!(receive(&mut stream, &ours), (b"x".to_vec(), Flow::Done));
        drop(ours);
        assert_eq!(sender.join().unwrap(), Some(HandshakeKind::Resumed));
    }
}

/// A record in clear.
fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
    [&[kind, 3, 1], &length[..], payload].concat()
}

#[test]
fn a_message_in_pieces_may_stay_unfinished_when_the_connection_is_closed() {
    let mut tls = Tls::new(certificates()).unwrap();
    let (mut connection, _) = tls.accept(false).unwrap();
    // Two pieces of a ClientHello of 300 bytes, and the beginning of a third.
    let begun = [record(22, &[1, 0, 1, 44, 3, 3]), record(22, &[7; 40]), vec![22, 3, 1, 0]].concat();
    let mut out = Outgoing::default();
    let (taken, standing) = connection.take(&mut begun.clone(), &mut out, false, |_| true);
    assert_eq!((taken, standing), (0, Ok(Standing::Handshake)));
    assert!(!connection.seal(b"too early", &mut out));
    connection.close(&mut out);
    // More of it, behind what was not taken.
    let mut more = [begun, vec![1, 9], record(22, &[7; 500])].concat();
    assert!(connection.take(&mut more, &mut out, false, |_| true).1.is_err());
}

#[test]
fn after_a_failure_an_alert_goes_out_and_nothing_else() {
    for bytes in [
        record(22, &[1, 0xff, 0xff, 0xff, 3, 3]),
        record(99, b"no type"),
        vec![22, 3, 1, 0xff, 0xff, 0],
        record(23, &[0; 100]),
        [record(22, &[1, 0, 1, 44]), record(23, &[0; 100])].concat(),
        [record(22, &[1, 0, 1, 44]), record(22, &[0; 16_385])].concat(),
    ] {
        let mut tls = Tls::new(certificates()).unwrap();
        let (mut connection, _) = tls.accept(false).unwrap();
        let mut out = Outgoing::default();
        assert!(connection.take(&mut bytes.clone(), &mut out, false, |_| true).1.is_err(), "{bytes:?}");
        let told = out.filled().to_vec();
        assert!(told.is_empty() || matches!(told[..], [21, 3, _, 0, 2, 2, _]), "{told:?}");
        assert!(!connection.seal(b"reply", &mut out));
        connection.close(&mut out);
        assert_eq!(out.filled(), told);
    }
}
