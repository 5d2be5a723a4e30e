//! What the doctor asks about the port for readers.

use crate::daemon::watch::descriptors::Descriptors;
use config::{Config, Proof};
use setup::doctor::{Finding, Listener, Port, examine_port};
use std::net::{SocketAddr, TcpListener};

/// The address and the findings; `None` when nobody is served.
pub(super) fn look(config: &Config) -> Option<(SocketAddr, Vec<Finding>)> {
    let (serve, listen) = (&config.serve, config.serve.listen?);
    let port = Port {
        listen,
        listener: listener(config, listen),
        accounts: accounts(config),
        has_tls: serve.tls.is_some() || serve.auto_generate_certs,
        require_tls: serve.require_tls,
        less_room: Descriptors::reachable()
            .suffice_for_readers(&config.sources, serve.max_connections)
            .err()
            .map(|less| less.to_string()),
    };
    Some((listen, examine_port(&port)))
}

fn listener(config: &Config, listen: SocketAddr) -> Listener {
    let running = super::super::status::of_folder(&config.data_dir).and_then(|status| status.serve);
    let this = running.filter(|serve| listen.port() == 0 || serve.address == listen.to_string());
    match this {
        Some(serve) => Listener::This(serve.readers.len()),
        None => match TcpListener::bind(listen) {
            Ok(_) => Listener::Nobody,
            Err(error) => Listener::Refused(error.to_string()),
        },
    }
}

fn accounts(config: &Config) -> Vec<(String, bool)> {
    let users = &config.serve.users;
    if users.is_empty() {
        let has = |source: &config::SourceConfig| !source.password_now().0.expose().is_empty();
        return config.sources.iter().map(|source| (source.user.clone(), has(source))).collect();
    }
    let has = |proof: &Proof| !matches!(proof, Proof::Password(password) if password.expose().is_empty());
    users.iter().map(|user| (user.name.clone(), has(&user.proof))).collect()
}
