//! The port for readers, before it is opened.

use super::finding::Finding;
use std::net::SocketAddr;

/// What is known of the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Who listens there.
    pub listener: Listener,
    /// Readers' accounts, and whether each has a password.
    pub accounts: Vec<(String, bool)>,
    /// A certificate is configured, or is made.
    pub has_tls: bool,
    /// `require_tls`.
    pub require_tls: bool,
    /// What the limit of file descriptors leaves, where that is less than `max_connections`.
    pub less_room: Option<String>,
}

/// Who listens on the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listener {
    /// The binlogd of this data folder, with so many readers.
    This(usize),
    /// Nobody: it can be listened on.
    Nobody,
    /// It cannot be listened on.
    Refused(String),
}

/// Judges it.
pub fn examine(port: &Port) -> Vec<Finding> {
    let listen = port.listen;
    let mut findings = vec![match &port.listener {
        Listener::This(readers) => {
            Finding::ok(format!("listen: binlogd serves at {listen}, {readers} readers are logged in"))
        }
        Listener::Nobody => Finding::ok(format!("listen: {listen} is free")),
        Listener::Refused(why) => Finding::error(format!("listen: {listen} cannot be listened on ({why})"))
            .because("binlogd would not start: choose another address in [serve]"),
    }];
    findings.push(match (port.has_tls, port.require_tls) {
        (true, true) => Finding::ok("TLS: required"),
        (true, false) if listen.ip().is_loopback() => Finding::ok("TLS: offered"),
        (true, false) => Finding::warning("TLS: offered, not required")
            .because("who does not encrypt reads all rows in clear: set require_tls, or keep the address on a private network"),
        (false, _) => Finding::warning("TLS: not offered").because(
            "replicas and clients of MySQL 9 and of MariaDB 11.4 connect only if they are told not to encrypt: give tls_cert and \
             tls_key, or set auto_generate_certs",
        ),
    });
    let without: Vec<&str> =
        port.accounts.iter().filter(|(_, has)| !has).map(|(name, _)| name.as_str()).collect();
    findings.push(if without.len() == port.accounts.len() {
        Finding::error("accounts: none has a password")
            .because("nobody can log in: give readers accounts with [[serve.user]]")
    } else if without.is_empty() {
        Finding::ok(format!("accounts: {}", port.accounts.len()))
    } else {
        Finding::warning(format!("accounts: {} without a password", without.join(", ")))
            .because("an account without a password lets no reader in")
    });
    findings.push(match &port.less_room {
        Some(less) => Finding::warning(format!("file descriptors: {less}")),
        None => Finding::ok("file descriptors: enough for max_connections beside the sources"),
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    fn port() -> Port {
        Port {
            listen: "10.0.0.1:3307".parse().unwrap(),
            listener: Listener::Nobody,
            accounts: vec![("cdc".to_owned(), true), ("repl".to_owned(), true)],
            has_tls: true,
            require_tls: true,
            less_room: None,
        }
    }

    #[track_caller]
    fn only_fault(port: &Port) -> Finding {
        let mut faults: Vec<Finding> =
            examine(port).into_iter().filter(|finding| finding.level != Level::Ok).collect();
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults.remove(0)
    }

    #[test]
    fn each_fault_is_told_by_itself() {
        assert!(examine(&port()).iter().all(|finding| finding.level == Level::Ok));
        assert!(examine(&Port { listener: Listener::This(3), ..port() })[0].what.contains("3 readers"));
        let in_use = Port { listener: Listener::Refused("in use".to_owned()), ..port() };
        assert_eq!(only_fault(&in_use).level, Level::Error);
        assert!(only_fault(&Port { require_tls: false, ..port() }).why.contains("set require_tls"));
        let near = Port { require_tls: false, listen: "127.0.0.1:1".parse().unwrap(), ..port() };
        assert!(examine(&near).iter().all(|finding| finding.level == Level::Ok), "nobody listens in between");
        assert!(only_fault(&Port { has_tls: false, ..port() }).why.contains("auto_generate_certs"));
        let one = Port { accounts: vec![("a".to_owned(), false), ("b".to_owned(), true)], ..port() };
        let fault = only_fault(&one);
        assert!(fault.level == Level::Warning && fault.what == "accounts: a without a password", "{fault:?}");
        let none = Port { accounts: vec![("a".to_owned(), false)], ..port() };
        assert_eq!(only_fault(&none).level, Level::Error);
        let few = Port { less_room: Some("at most 9 readers".to_owned()), ..port() };
        assert!(only_fault(&few).what.contains("at most 9 readers"));
    }
}
