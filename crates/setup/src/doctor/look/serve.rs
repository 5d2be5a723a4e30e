//! What the doctor asks about the port for readers.

use crate::doctor::{Finding, Listener, Port, examine_port};
use config::{Config, Proof};
use status::DaemonStatus;
use std::net::{SocketAddr, TcpListener};

/// The address and the findings; `None` when nobody is served. `running`: what a daemon of the data folder says, if one runs;
/// `less_room`: for how many readers fewer there are file descriptors, in words.
pub fn look(
    config: &Config,
    running: Option<&DaemonStatus>,
    less_room: impl FnOnce() -> Option<String>,
) -> Option<(SocketAddr, Vec<Finding>)> {
    let (serve, listen) = (&config.serve, config.serve.listen?);
    let port = Port {
        listen,
        listener: listener(running, listen),
        accounts: accounts(config),
        has_tls: serve.tls.is_some() || serve.auto_generate_certs,
        require_tls: serve.require_tls,
        less_room: less_room(),
    };
    Some((listen, examine_port(&port)))
}

fn listener(running: Option<&DaemonStatus>, listen: SocketAddr) -> Listener {
    let running = running.and_then(|status| status.serve.as_ref());
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
