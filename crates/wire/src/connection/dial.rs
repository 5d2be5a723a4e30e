//! From a host name to a TCP connection, within a deadline.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;

use crate::error::WireError;
use crate::transport::Deadline;

/// Connects to the first address of `host` that answers, and sets the socket up: non-blocking, TCP_NODELAY (an
/// acknowledgement must leave at once) and SO_KEEPALIVE (a source that vanished is noticed in the end).
///
/// Every address gets its share of the time that is left, so that a dead one does not use it all up.
pub(crate) fn dial(host: &str, port: u16, deadline: Deadline) -> Result<TcpStream, WireError> {
    if is_local(host) {
        return dial_local(host).map_err(|reason| WireError::Connect { address: host.to_owned(), reason });
    }
    let addresses = resolve(host, port, deadline)?;
    let mut failure = None;
    for (index, address) in addresses.iter().enumerate() {
        let left = deadline.left();
        let share = left / (addresses.len() - index) as u32;
        if share.is_zero() {
            break;
        }
        let connected =
            TcpStream::connect_timeout(address, share).and_then(|socket| set_up(&socket).map(|()| socket));
        match connected {
            Ok(socket) => return Ok(socket),
            Err(reason) => failure = Some((address, reason)),
        }
    }
    match failure {
        Some((address, reason)) if reason.kind() != io::ErrorKind::TimedOut => {
            Err(WireError::Connect { address: address.to_string(), reason })
        }
        _ => Err(WireError::Timeout { during: "connecting", after: deadline.whole }),
    }
}

/// Whether a host is the path of a server's socket on this machine.
pub(crate) fn is_local(host: &str) -> bool {
    host.starts_with('/')
}

/// Connects to a socket of this machine. The standard library's type for a socket of TCP holds it: nothing is asked of it afterwards
/// that another stream of the kernel does not have.
fn dial_local(path: &str) -> io::Result<TcpStream> {
    let socket = UnixStream::connect(path)?;
    socket.set_nonblocking(true)?;
    Ok(TcpStream::from(OwnedFd::from(socket)))
}

/// Non-blocking, TCP_NODELAY, SO_KEEPALIVE.
pub(crate) fn set_up(socket: &TcpStream) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)?;
    socket2::SockRef::from(socket).set_keepalive(true)
}

/// All addresses of a host, in the system's order; at least one.
fn resolve(host: &str, port: u16, deadline: Deadline) -> Result<Vec<SocketAddr>, WireError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    // The system's resolver has no timeout of its own that we could set, so a thread waits for it. When we stop
    // waiting, that thread ends with the resolver's answer.
    let (sender, receiver) = mpsc::channel();
    let name = host.to_owned();
    std::thread::Builder::new()
        .name("resolve".into())
        .spawn(move || {
            let addresses = (name.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
            // Nobody listens any more after a timeout.
            let _ = sender.send(addresses);
        })
        .map_err(|reason| WireError::Io { during: "starting to resolve the host name", reason })?;
    let failed = |reason: String| WireError::Resolve { host: host.to_owned(), reason };
    match receiver.recv_timeout(deadline.left()) {
        Ok(Ok(addresses)) if addresses.is_empty() => Err(failed("the name has no address".into())),
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(WireError::Timeout { during: "resolving the host name", after: deadline.whole }),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    fn try_dial(host: &str, port: u16) -> Result<TcpStream, WireError> {
        dial(host, port, Deadline::after(Duration::from_secs(5)))
    }

    #[test]
    fn names_and_addresses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(try_dial("127.0.0.1", port).unwrap().nodelay().unwrap());
        // localhost may be ::1 first, where nobody listens: the next address is tried.
        try_dial("localhost", port).unwrap();
    }

    #[test]
    fn ipv6_addresses() {
        let Ok(listener) = TcpListener::bind("[::1]:0") else { return };
        try_dial("::1", listener.local_addr().unwrap().port()).unwrap();
    }

    #[test]
    fn a_closed_port_names_address_and_reason() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let error = try_dial("127.0.0.1", port).unwrap_err();
        assert!(
            matches!(&error, WireError::Connect { address, .. } if *address == format!("127.0.0.1:{port}"))
        );
        assert!(!error.is_permanent());
        assert!(error.to_string().contains("refused"), "{error}");
    }

    #[test]
    fn an_unknown_name() {
        let error = try_dial("no-such-host.invalid", 3306).unwrap_err();
        assert!(
            matches!(&error, WireError::Resolve { host, .. } if host == "no-such-host.invalid"),
            "{error}"
        );
    }
}
