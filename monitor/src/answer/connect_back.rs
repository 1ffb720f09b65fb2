//! Answers `ConnectBack`: starts a data connection to the client of a session in active mode.
//!
//! Runs as root. Reads from: worker (hostile). Trusts: the vouch table, and what the kernel says of the socket that came along.
//! The peer's address is read from that socket, which must be a connection to one of our listeners; from the message comes the
//! port alone, and none below 1024 (RFC 2577 3). So nobody is connected to but clients, and never to a system service. Where the
//! peer is a proxy, nobody is connected to.

use std::{net::SocketAddr, os::fd::OwnedFd};

use ipc::link::monitor_worker::{ConnectBack, Connecting, ToWorker};
use ipc::types::WorkerId;
use rustix::io::Errno;
use rustix::net::{SocketType, connect, getpeername, getsockname, sockopt};

use crate::{listen, monitor::Monitor, table::Standing};

pub(crate) fn answer_connect_back(m: &mut Monitor, id: WorkerId, ask: ConnectBack, fds: &[OwnedFd]) {
    // The link has checked that exactly one came along.
    let (Some(worker), [control]) = (m.workers.get_mut(&id), fds) else { return };
    let lost = worker.sessions.get(ask.session).is_some_and(|(_, so_far)| so_far == Standing::Lost);
    let connecting = if !m.config.active {
        Err(Errno::PERM)
    } else if lost {
        // Its broker is gone and the worker has not seen that yet.
        Err(Errno::CONNABORTED)
    } else if worker.child.peer.behind() {
        Err(Errno::AGAIN)
    } else {
        let at = |local| m.listeners.iter().filter(move |listening| serves(listening.address, local));
        let ours = |local| at(local).next().is_some() && !at(local).any(|listening| listening.proxied);
        connect_to_peer(control, ask.port, m.config.active_source_port_20, &ours)
    };
    let errno = connecting.as_ref().err().map_or(0, |errno| errno.raw_os_error());
    let record = ToWorker::ConnectBack(Connecting { session: ask.session, errno });
    worker.child.send(record, connecting.into_iter().collect());
}

/// Whether a connection whose local end is `local` came in at this listener.
fn serves(listener: SocketAddr, local: SocketAddr) -> bool {
    listener.port() == local.port() && (listener.ip().is_unspecified() || listener.ip() == local.ip())
}

type IsOurs<'a> = &'a dyn Fn(SocketAddr) -> bool;

fn connect_to_peer(control: &OwnedFd, port: u16, from_20: bool, ours: IsOurs<'_>) -> Result<OwnedFd, Errno> {
    if port < 1024 {
        return Err(Errno::ACCESS);
    }
    if sockopt::socket_type(control)? != SocketType::STREAM {
        return Err(Errno::BADF);
    }
    let local = SocketAddr::try_from(getsockname(control)?)?;
    let mut peer = SocketAddr::try_from(getpeername(control)?.ok_or(Errno::NOTCONN)?)?;
    if !ours(local) {
        return Err(Errno::BADF);
    }
    peer.set_port(port);
    let mut source = local;
    source.set_port(if from_20 { 20 } else { 0 });
    let socket = listen::bound(source)?;
    match connect(&socket, &peer) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        os::unix::net::UnixStream,
    };

    use super::*;

    /// The server's end of a control connection, the client's, and a port the client listens on.
    fn session() -> (OwnedFd, TcpStream, TcpListener, SocketAddr) {
        let server = TcpListener::bind("127.0.0.84:0").unwrap();
        let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let (control, _) = server.accept().unwrap();
        let data = TcpListener::bind((client.local_addr().unwrap().ip(), 0)).unwrap();
        (control.into(), client, data, server.local_addr().unwrap())
    }

    #[test]
    fn the_connection_goes_from_the_servers_address_to_the_clients() {
        let (control, _client, data, server) = session();
        let wanted = data.local_addr().unwrap().port();
        let _socket = connect_to_peer(&control, wanted, false, &|local| serves(server, local)).unwrap();
        let (_, from) = data.accept().unwrap();
        assert_eq!(from.ip(), server.ip());
    }

    #[test]
    fn ports_of_system_services_are_refused() {
        let (control, _client, _data, server) = session();
        for service in [1, 22, 25, 1023] {
            let refused = connect_to_peer(&control, service, false, &|local| serves(server, local));
            assert_eq!(refused.unwrap_err(), Errno::ACCESS);
        }
    }

    #[test]
    fn a_socket_that_is_no_control_connection_leads_nowhere() {
        let (_control, client, data, server) = session();
        let wanted = data.local_addr().unwrap().port();
        let ours = |local: SocketAddr| serves(server, local);
        let file = std::fs::File::open("/dev/null").unwrap();
        let (unix, _other) = UnixStream::pair().unwrap();
        for strange in [OwnedFd::from(client), file.into(), unix.into(), data.into()] {
            assert!(connect_to_peer(&strange, wanted, false, &ours).is_err());
        }
    }

    #[test]
    fn a_listener_on_every_address_serves_any_local_end_of_its_port_alone() {
        let any: SocketAddr = "0.0.0.0:21".parse().unwrap();
        assert!(serves(any, "192.0.2.7:21".parse().unwrap()));
        assert!(!serves(any, "192.0.2.7:50000".parse().unwrap()));
        assert!(!serves("192.0.2.8:21".parse().unwrap(), "192.0.2.7:21".parse().unwrap()));
    }
}
