//! TLS on data connections (RFC 4217), with real clients: resumption, endings, policy, what is no TLS.

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::fd::{AsFd, OwnedFd},
    process::Command,
    sync::Arc,
    time::Duration,
};

use child_ipc::{
    link::{
        settings::{FtpSettings, Resumption, Tls},
        worker_authd::{FromAuthd, ToAuthd},
        worker_broker::{Attrs, BrokerEnd, Done, Kind, Medium, Op, Opened, Storage, WriteMode},
    },
    types::BrokerId,
};
use rustls::{
    ClientConfig, ClientConnection, StreamOwned, SupportedProtocolVersion,
    version::{TLS12, TLS13},
};

use crate::{
    harness::{Client, World, answer, file, receive, settings},
    keys,
    skip::skipped,
};

pub const BOTH: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

pub fn required() -> Tls {
    Tls { resumption: Resumption::Required, ..Tls::default() }
}

pub fn world(tls: Tls) -> World {
    let mut world = World::with(FtpSettings { tls: Some(tls), ..settings() });
    certify(&mut world);
    world
}

/// authd sends the certificates.
pub fn certify(world: &mut World) {
    world.authd.send(&FromAuthd::Certificates, &[keys::table().as_fd()]).unwrap();
}

type Wire = StreamOwned<ClientConnection, TcpStream>;

pub fn wire(config: &Arc<ClientConfig>, socket: TcpStream) -> Wire {
    StreamOwned::new(ClientConnection::new(Arc::clone(config), keys::name()).unwrap(), socket)
}

/// A client whose control connection is under TLS.
pub fn secured(client: Client, config: &Arc<ClientConfig>) -> Client {
    client.over(|socket| Box::new(wire(config, socket)))
}

/// A client that is logged in, with data connections under TLS.
pub fn protected(world: &mut World, config: &Arc<ClientConfig>, broker: u32) -> (Client, BrokerEnd) {
    let mut client = world.client();
    assert_eq!(client.told("AUTH TLS"), "234 Begin with TLS.");
    let (mut client, _, broker) = world.logged_in_as(secured(client, config), BrokerId(broker));
    assert!(client.told("PBSZ 0").starts_with("200 "));
    assert!(client.told("PROT P").starts_with("200 "));
    (client, broker)
}

/// The first passive port of a session; the worker asks for a socket.
pub fn port(world: &mut World, client: &mut Client) -> TcpStream {
    client.send("EPSV");
    world.give_passive(1);
    let reply = client.reply();
    client.dial(&reply)
}

pub fn opened(size: usize, storage: Storage) -> Result<Done, child_ipc::link::worker_broker::Why> {
    Ok(Done::Opened(Opened { size: size as u64, created: false, chosen: None, storage, staged: None }))
}

pub fn content(of: &OwnedFd) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(rustix::fs::fstat(of).unwrap().st_size).unwrap()];
    let mut at = 0;
    while at < bytes.len() {
        at += rustix::io::pread(of, &mut bytes[at..], at as u64).unwrap();
    }
    bytes
}

pub fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|n| u8::try_from(n % 253).unwrap()).collect()
}

/// RETR of a file with these bytes.
pub fn fetch(client: &mut Client, broker: &mut BrokerEnd, mut data: Wire, bytes: &[u8], storage: Storage) -> Vec<u8> {
    client.send("RETR f");
    answer(broker, opened(bytes.len(), storage), &[&file(bytes)]);
    assert!(client.reply().starts_with("150 "));
    let mut got = Vec::new();
    data.read_to_end(&mut got).unwrap();
    got
}

/// STOR of these bytes, up to close_notify; what was kept.
pub fn store(client: &mut Client, broker: &mut BrokerEnd, mut data: Wire, bytes: &[u8], storage: Storage) -> OwnedFd {
    client.send("STOR f");
    let kept = file(b"");
    answer(broker, opened(0, storage), &[&kept]);
    assert!(client.reply().starts_with("150 "));
    data.write_all(bytes).unwrap();
    data.conn.send_close_notify();
    data.flush().unwrap();
    let _ = data.read_to_end(&mut Vec::new());
    kept
}

#[test]
fn many_data_connections_in_a_row_are_all_resumed_though_each_ticket_is_used_once() {
    for version in BOTH {
        let (mut world, config) = (world(required()), keys::trusting(&[version]));
        let (mut client, mut broker) = protected(&mut world, &config, 1);
        assert!(client.told("TYPE I").starts_with("200 "));
        let mut data = Some(port(&mut world, &mut client));
        for turn in 0..12 {
            let wire = wire(&config, data.take().unwrap_or_else(|| client.data()));
            let bytes = bytes(turn * 30_000);
            match turn % 3 {
                0 => assert!(fetch(&mut client, &mut broker, wire, &bytes, Storage::MEMORY) == bytes),
                1 => {
                    let kept = store(&mut client, &mut broker, wire, &bytes, Storage::MEMORY);
                    assert_eq!(client.reply(), "226 Transfer complete.");
                    assert!(content(&kept) == bytes);
                    continue;
                }
                _ => {
                    client.send("LIST");
                    answer(
                        &mut broker,
                        Ok(Done::Listing { bytes: bytes.len() as u64, directory: true }),
                        &[&file(&bytes)],
                    );
                    assert!(client.reply().starts_with("150 "));
                    let (mut wire, mut got) = (wire, Vec::new());
                    wire.read_to_end(&mut got).unwrap();
                    assert!(got == bytes);
                }
            }
            assert_eq!(client.reply(), "226 Transfer complete.");
        }
    }
}

#[test]
fn a_data_connection_with_another_sessions_ticket_gets_no_byte_and_the_right_one_is_served_after_it() {
    for version in BOTH {
        let (theirs, ours) = (keys::trusting(&[version]), keys::trusting(&[version]));
        let mut world = world(required());
        let (_other, _link) = protected(&mut world, &theirs, 1);
        let (mut client, mut broker) = protected(&mut world, &ours, 2);
        let data = port(&mut world, &mut client);
        client.send("RETR f");
        answer(&mut broker, opened(6, Storage::MEMORY), &[&file(b"secret")]);
        assert!(client.reply().starts_with("150 "));
        let mut got = Vec::new();
        let _ = wire(&theirs, data).read_to_end(&mut got);
        assert!(got.is_empty());
        let refused =
            "522 No TLS on the data connection: it does not resume the TLS session of the control connection.";
        assert_eq!(client.reply(), refused);
        let data = wire(&ours, client.data());
        assert_eq!(fetch(&mut client, &mut broker, data, b"secret", Storage::MEMORY), b"secret");
        assert_eq!(client.reply(), "226 Transfer complete.");
    }
}

#[test]
fn where_resumption_is_not_required_a_client_without_tickets_is_served() {
    for resumption in [Resumption::IfOffered, Resumption::Off] {
        let mut world = world(Tls { resumption, ..Tls::default() });
        let (mut client, mut broker) = protected(&mut world, &keys::trusting(&BOTH), 1);
        let data = wire(&keys::trusting(&BOTH), port(&mut world, &mut client));
        assert_eq!(fetch(&mut client, &mut broker, data, b"text", Storage::MEMORY), b"text");
        assert_eq!(client.reply(), "226 Transfer complete.");
    }
}

#[test]
fn an_upload_that_ends_without_close_notify_is_not_complete() {
    let (mut world, config) = (world(required()), keys::trusting(&BOTH));
    let (mut client, mut broker) = protected(&mut world, &config, 1);
    let mut data = Some(port(&mut world, &mut client));
    for resets in [false, true, false] {
        let mut data = wire(&config, data.take().unwrap_or_else(|| client.data()));
        client.send("STOR cut.bin");
        answer(&mut broker, opened(0, Storage::MEMORY), &[&file(b"")]);
        assert!(client.reply().starts_with("150 "));
        data.write_all(&[1; 100_000]).unwrap();
        data.flush().unwrap();
        if resets {
            rustix::net::sockopt::set_socket_linger(&data.sock, Some(Duration::ZERO)).unwrap();
        }
        drop(data);
        assert!(client.reply().starts_with("426 "));
        assert!(client.told("NOOP").starts_with("200 "));
    }
}

#[test]
fn uploads_of_a_client_that_never_reads_lose_nothing() {
    for version in BOTH {
        let tls = Tls { resumption: Resumption::IfOffered, ..Tls::default() };
        let (mut world, config) = (world(tls), keys::trusting(&[version]));
        let (mut client, mut broker) = protected(&mut world, &config, 1);
        client.told("TYPE I");
        let mut data = Some(port(&mut world, &mut client));
        for size in [0, 1, 5_000_000, 0, 16_384, 300_000] {
            let mut data = wire(&config, data.take().unwrap_or_else(|| client.data()));
            client.send("STOR f");
            let kept = file(b"");
            answer(&mut broker, opened(0, Storage::MEMORY), &[&kept]);
            assert!(client.reply().starts_with("150 "));
            data.conn.complete_io(&mut data.sock).unwrap();
            data.write_all(&bytes(size)).unwrap();
            data.conn.send_close_notify();
            data.flush().unwrap();
            drop(data);
            assert_eq!(client.reply(), "226 Transfer complete.");
            assert!(content(&kept) == bytes(size));
        }
    }
}

#[test]
fn the_final_reply_comes_behind_the_end_of_the_data() {
    let (mut world, config) = (world(required()), keys::trusting(&BOTH));
    let (mut client, mut broker) = protected(&mut world, &config, 1);
    client.told("TYPE I");
    let bytes = bytes(60_000);
    let mut data = wire(&config, port(&mut world, &mut client));
    client.send("RETR f");
    answer(&mut broker, opened(bytes.len(), Storage::MEMORY), &[&file(&bytes)]);
    assert!(client.reply().starts_with("150 "));
    data.flush().unwrap();
    data.read_exact(&mut [0; 1]).unwrap();
    assert_eq!(client.reply(), "226 Transfer complete.");
    data.sock.set_nonblocking(true).unwrap();
    let mut got = Vec::new();
    assert_eq!(data.read_to_end(&mut got).unwrap(), bytes.len() - 1, "all of it and close_notify are here");
    assert_eq!(data.sock.read(&mut [0; 1]).unwrap(), 0, "and the end of the connection");
}

#[test]
fn every_kind_of_storage_and_type_a_keep_every_byte() {
    let (mut world, config) = (world(required()), keys::trusting(&BOTH));
    let (mut client, mut broker) = protected(&mut world, &config, 1);
    let mut data = Some(port(&mut world, &mut client));
    for storage in [
        Storage::MEMORY,
        Storage { device: 1, medium: Medium::Disk { cached: 0 } },
        Storage { device: 2, medium: Medium::Remote },
    ] {
        client.told("TYPE I");
        let bytes = bytes(9_000_000);
        let one = wire(&config, data.take().unwrap_or_else(|| client.data()));
        assert!(fetch(&mut client, &mut broker, one, &bytes, storage) == bytes);
        assert_eq!(client.reply(), "226 Transfer complete.");
        let two = wire(&config, client.data());
        let kept = store(&mut client, &mut broker, two, &bytes, storage);
        assert_eq!(client.reply(), "226 Transfer complete.");
        assert!(content(&kept) == bytes);

        client.told("TYPE A");
        let (lines, on_the_wire) = ("a line\n".repeat(100_000), "a line\r\n".repeat(100_000));
        let one = wire(&config, client.data());
        assert!(fetch(&mut client, &mut broker, one, lines.as_bytes(), storage) == on_the_wire.as_bytes());
        assert_eq!(client.reply(), "226 Transfer complete.");
        let two = wire(&config, client.data());
        let kept = store(&mut client, &mut broker, two, on_the_wire.as_bytes(), storage);
        assert_eq!(client.reply(), "226 Transfer complete.");
        assert!(content(&kept) == lines.as_bytes());
    }
}

#[test]
fn a_client_in_clear_where_prot_p_was_said_is_told_so_and_may_go_on() {
    let (mut world, config) = (world(required()), keys::trusting(&BOTH));
    let (mut client, mut broker) = protected(&mut world, &config, 1);
    let mut data = port(&mut world, &mut client);
    client.send("STOR f");
    let kept = file(b"");
    answer(&mut broker, opened(0, Storage::MEMORY), &[&kept]);
    assert!(client.reply().starts_with("150 "));
    data.write_all(b"in clear, in clear, in clear").unwrap();
    assert_eq!(client.reply(), "522 No TLS on the data connection: the client does not speak TLS.");
    assert!(content(&kept).is_empty());
    assert!(client.told("PROT C").starts_with("200 "));
    let mut data = client.data();
    client.send("RETR f");
    answer(&mut broker, opened(2, Storage::MEMORY), &[&file(b"hi")]);
    assert!(client.reply().starts_with("150 "));
    let mut got = String::new();
    data.read_to_string(&mut got).unwrap();
    assert_eq!(got, "hi");
    assert_eq!(client.reply(), "226 Transfer complete.");
}

#[test]
fn a_client_under_tls_where_prot_c_was_said_is_told_so_and_others_are_not() {
    let (mut world, config) = (world(required()), keys::trusting(&BOTH));
    let (mut client, mut broker) = protected(&mut world, &config, 1);
    client.told("PROT C");
    let mut data = Some(port(&mut world, &mut client));
    let mut send = |write: &dyn Fn(TcpStream)| {
        let data = data.take().unwrap_or_else(|| client.data());
        client.send("STOR f");
        let kept = file(b"");
        answer(&mut broker, opened(0, Storage::MEMORY), &[&kept]);
        assert!(client.reply().starts_with("150 "));
        write(data);
        (client.reply(), content(&kept))
    };
    let (reply, kept) = send(&|data| drop(wire(&config, data).write(b"x")));
    assert_eq!(reply, "522 No TLS on the data connection: the client speaks TLS, though PROT C is in force.");
    assert!(kept.is_empty());
    for bytes in [&b""[..], b"x", b"\x16\x03\x01", b"\x16\x03\x01 is no handshake"] {
        let (reply, kept) = send(&|mut data| data.write_all(bytes).unwrap());
        assert_eq!((reply.as_str(), kept.as_slice()), ("226 Transfer complete.", bytes));
    }
}

#[test]
fn a_file_is_not_touched_before_the_handshake_is_over_and_cut_then() {
    for storage in [
        Storage::MEMORY,
        Storage { device: 1, medium: Medium::Disk { cached: 0 } },
        Storage { device: 2, medium: Medium::Remote },
    ] {
        let (mut world, ours, stranger) = (world(required()), keys::trusting(&BOTH), keys::trusting(&BOTH));
        let (mut client, mut broker) = protected(&mut world, &ours, 1);
        let kept = file(b"what was there");
        let data = port(&mut world, &mut client);
        client.send("STOR f");
        let ask = answer(&mut broker, opened(14, storage), &[&kept]);
        assert!(matches!(ask.op, Op::OpenWrite { mode: WriteMode::Kept(0), .. }));
        assert!(client.reply().starts_with("150 "));
        let _ = wire(&stranger, data).write_all(b"not ours");
        assert!(client.reply().starts_with("522 "));
        assert_eq!(content(&kept), b"what was there");
        let mut data = wire(&ours, client.data());
        client.send("STOR f");
        answer(&mut broker, opened(14, storage), &[&kept]);
        assert!(client.reply().starts_with("150 "));
        data.write_all(b"new").unwrap();
        data.conn.send_close_notify();
        data.flush().unwrap();
        assert_eq!(client.reply(), "226 Transfer complete.");
        assert_eq!(content(&kept), b"new");
    }
}

#[test]
fn a_client_that_says_close_notify_while_it_is_sent_to_gets_all_the_same() {
    for version in BOTH {
        let (mut world, config) = (world(Tls::default()), keys::trusting(&[version]));
        let (mut client, mut broker) = protected(&mut world, &config, 1);
        assert!(client.told("TYPE I").starts_with("200 "));
        let mut data = wire(&config, port(&mut world, &mut client));
        client.send("RETR f");
        let long = bytes(600_000);
        answer(&mut broker, opened(long.len(), Storage::MEMORY), &[&file(&long)]);
        assert!(client.reply().starts_with("150 "));
        let mut got = vec![0; 1];
        data.read_exact(&mut got).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        data.conn.send_close_notify();
        data.conn.write_tls(&mut data.sock).unwrap();
        data.read_to_end(&mut got).unwrap();
        assert!(got == long, "{} bytes of {}", got.len(), long.len());
        assert!(client.reply().starts_with("226 "));
    }
}

#[test]
fn an_abort_under_tls_cuts_the_transfer() {
    let (mut world, config) = (world(required()), keys::trusting(&BOTH));
    let (mut client, mut broker) = protected(&mut world, &config, 1);
    let mut data = wire(&config, port(&mut world, &mut client));
    client.send("STOR f");
    answer(&mut broker, opened(0, Storage::MEMORY), &[&file(b"")]);
    assert!(client.reply().starts_with("150 "));
    data.write_all(&[1; 1000]).unwrap();
    data.flush().unwrap();
    client.send("ABOR");
    assert!(client.reply().starts_with("426 "));
    assert!(client.reply().starts_with("226 "));
    let ask = |op: &Op| matches!(op, Op::OpenRead(_));
    let data = wire(&config, client.data());
    client.send("RETR f");
    assert!(ask(&answer(&mut broker, opened(2, Storage::MEMORY), &[&file(b"hi")]).op));
    let (mut data, mut got) = (data, String::new());
    assert!(client.reply().starts_with("150 "));
    data.read_to_string(&mut got).unwrap();
    assert_eq!(got, "hi");
}

/// Runs curl against a session that the test grants; `serve` answers the broker's questions.
fn curl(version: &str, args: &[&str], input: &[u8], serve: impl FnOnce(&mut BrokerEnd)) -> Option<Vec<u8>> {
    let mut world = world(required());
    let url = format!("ftp://u:secret@{}/f", world.address);
    let mut child = Command::new("curl")
        .args(["-sS", "-k", "--ssl-reqd", "--max-time", "20", "--tlsv1.2", "--tls-max", version, &url])
        .args(args)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .ok()?;
    let ToAuthd::Check(check) = receive(&mut world.authd).record else { panic!("a check was expected") };
    let mut broker = world.grant_with_link(check.session, BrokerId(1));
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    let feeder = std::thread::spawn(move || stdin.write_all(&input));
    world.give_passive(1);
    serve(&mut broker);
    let output = child.wait_with_output().unwrap();
    let _ = feeder.join().unwrap();
    assert!(output.status.success(), "curl: {}", output.status);
    Some(output.stdout)
}

#[test]
fn curl_resumes_its_session_and_gets_and_puts_every_byte() {
    for version in ["1.2", "1.3"] {
        let sent = bytes(3_000_000);
        let got = curl(version, &[], b"", |broker| {
            let stat = Done::Stat(Attrs { kind: Kind::File, size: sent.len() as u64, modified: 0, mode: 0o644 });
            answer(broker, Ok(stat), &[]);
            answer(broker, opened(sent.len(), Storage::MEMORY), &[&file(&sent)]);
        });
        let Some(got) = got else { return skipped("curl and a worker", "no curl (tests/setup)") };
        assert!(got == sent);
        let kept = file(b"");
        curl(version, &["-T", "-"], &sent, |broker| {
            answer(broker, opened(0, Storage::MEMORY), &[&kept]);
        });
        assert!(content(&kept) == sent);
    }
}
