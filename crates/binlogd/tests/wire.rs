//! Connections to real servers: every authentication method in each of its ways, TLS, queries, the dump stream.

mod common;

use std::time::Duration;

use binlogd::wire::{ConnectOptions, Connection, TlsMode, TlsOptions};
use common::Server;

fn options(server: &Server, user: &str, password: &str, mode: TlsMode) -> ConnectOptions {
    ConnectOptions {
        host: "127.0.0.1".into(),
        port: server.port(),
        user: user.into(),
        password: password.into(),
        connect_timeout: Duration::from_secs(20),
        tls: TlsOptions { mode, ..TlsOptions::default() },
    }
}

#[test]
fn smoke() {
    for name in ["mysql-9.7", "mysql-8.0.31", "mysql-8.0.15", "mysql-5.7.22", "mariadb-11.8", "mariadb-10.11"]
    {
        let server = Server::start(name, &[]);
        println!("{name}: {}", server.env("SSL_CA"));
        for mode in [TlsMode::Disabled, TlsMode::Required] {
            let got = Connection::connect(&options(&server, "root", "", mode));
            println!("{name} {mode}: {got:?}");
            if let Ok(mut c) = got {
                println!("{:?}", c.query("SELECT VERSION(), 1 AS b, NULL"));
                println!("{:?}", c.query("SHOW STATUS LIKE 'Ssl_version'"));
                println!("{:?}", c.query("SELECT nonsense"));
                println!("{:?}", c.query("SET @a=1"));
            }
        }
    }
}
