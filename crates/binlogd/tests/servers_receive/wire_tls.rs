//! Encryption with real servers: versions, certificates, and what is said when they do not fit.

use std::path::{Path, PathBuf};

use crate::common::{Server, connect_options};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use wire::{ConnectOptions, Connection, TlsError, TlsMode, WireError};

/// Every server whose TLS library has something in common with ours.
const SERVERS: [&str; 4] = ["mysql-9.7", "mysql-8.0.31", "mariadb-11.8", "mariadb-10.11"];

fn as_root(server: &Server, mode: TlsMode, ca: Option<&Path>) -> ConnectOptions {
    let mut options = connect_options(server, "root", "", mode);
    options.tls.ca = ca.map(Path::to_owned);
    options
}

fn tls_error(options: &ConnectOptions) -> TlsError {
    let error = Connection::connect(options).unwrap_err();
    assert!(error.is_permanent(), "{error}");
    match error {
        WireError::Tls(error) => error,
        other => panic!("{other:?}"),
    }
}

/// An authority of the test's own, with its files in a folder.
struct Authority {
    dir: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new(dir: &Path, name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let dir = dir.join(name);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("ca.pem"), issuer.pem()).unwrap();
        Self { dir, issuer }
    }

    fn ca(&self) -> PathBuf {
        self.dir.join("ca.pem")
    }

    /// Issues a certificate for a host name; gives its file and that of its key.
    fn issue(&self, host: &str) -> (PathBuf, PathBuf) {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, host);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let files = (self.dir.join(format!("{host}.pem")), self.dir.join(format!("{host}.key")));
        std::fs::write(&files.0, certificate.pem()).unwrap();
        std::fs::write(&files.1, key.serialize_pem()).unwrap();
        files
    }

    /// Server options that make it use a certificate for `host`.
    fn server_options(&self, host: &str) -> [String; 3] {
        let (cert, key) = self.issue(host);
        [
            format!("--ssl-ca={}", self.ca().display()),
            format!("--ssl-cert={}", cert.display()),
            format!("--ssl-key={}", key.display()),
        ]
    }
}

fn start_with(name: &str, options: &[String]) -> Server {
    Server::start(name, &options.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn both_versions_on_every_server() {
    for name in SERVERS {
        for version in ["TLSv1.2", "TLSv1.3"] {
            let server = Server::start(name, &[&format!("--tls-version={version}")]);
            for mode in [TlsMode::Preferred, TlsMode::Required] {
                let mut connection = Connection::connect(&as_root(&server, mode, None))
                    .unwrap_or_else(|error| panic!("{name} {version} {mode}: {error}"));
                assert_eq!(connection.tls_version(), Some(version), "{name} {mode}");
                let seen = connection.query("SHOW STATUS LIKE 'Ssl_version'").unwrap();
                assert_eq!(seen.get(0, "Value"), Some(version), "{name} {mode}");
            }
        }
    }
}

#[test]
fn verification_succeeds_with_the_right_authority_and_name() {
    for name in SERVERS {
        let server = Server::start(name, &[]);
        let ca = Path::new(server.env("SSL_CA"));
        for (mode, host) in [
            (TlsMode::VerifyCa, "127.0.0.1"),
            (TlsMode::VerifyFull, "127.0.0.1"),
            (TlsMode::VerifyFull, "localhost"),
        ] {
            let options = ConnectOptions { host: host.into(), ..as_root(&server, mode, Some(ca)) };
            let connection =
                Connection::connect(&options).unwrap_or_else(|error| panic!("{name} {mode} {host}: {error}"));
            assert!(connection.tls_version().is_some());
        }
    }
}

#[test]
fn another_authority_is_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let stranger = Authority::new(dir.path(), "stranger");
    for name in ["mysql-9.7", "mariadb-10.11"] {
        let server = Server::start(name, &[]);
        for mode in [TlsMode::VerifyCa, TlsMode::VerifyFull] {
            for ca in [Some(stranger.ca()), None] {
                let error = tls_error(&as_root(&server, mode, ca.as_deref()));
                // Without the option the system's authorities count, if the machine has any.
                let no_system_roots = ca.is_none() && matches!(error, TlsError::File { .. });
                assert!(matches!(&error, TlsError::Untrusted(_)) || no_system_roots, "{error}");
                assert!(error.to_string().contains("tls_ca"), "{error}");
            }
        }
    }
}

#[test]
fn only_full_verification_looks_at_the_name() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "authority");
    for name in ["mysql-9.7", "mariadb-11.8"] {
        let server = start_with(name, &authority.server_options("db.example"));
        let ca = authority.ca();
        Connection::connect(&as_root(&server, TlsMode::VerifyCa, Some(&ca))).unwrap();
        for host in ["127.0.0.1", "localhost"] {
            let options =
                ConnectOptions { host: host.into(), ..as_root(&server, TlsMode::VerifyFull, Some(&ca)) };
            let error = tls_error(&options);
            assert!(matches!(&error, TlsError::WrongName { .. }), "{error:?}");
            let shown = error.to_string();
            assert!(
                shown.contains(host) && shown.contains("db.example") && shown.contains("verify-ca"),
                "{shown}"
            );
        }
    }
}

/// MySQL generates an authority and a certificate in its data directory; the certificate has no subjectAltName.
#[test]
fn certificates_that_mysql_generated() {
    for name in ["mysql-9.7", "mysql-8.0.31"] {
        let files = ["--ssl-ca=ca.pem", "--ssl-cert=server-cert.pem", "--ssl-key=server-key.pem"];
        let server = Server::start(name, &files);
        let ca = server.datadir().join("ca.pem");
        Connection::connect(&as_root(&server, TlsMode::VerifyCa, Some(&ca)))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let error = tls_error(&as_root(&server, TlsMode::VerifyFull, Some(&ca)));
        assert!(matches!(&error, TlsError::WrongName { .. }), "{name}: {error}");
        assert!(error.to_string().contains("subjectAltName"), "{name}: {error}");
    }
}

#[test]
fn client_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "authority");
    let stranger = Authority::new(dir.path(), "stranger");
    for name in ["mysql-9.7", "mariadb-11.8"] {
        let server = start_with(name, &authority.server_options("db.example"));
        server.sql("CREATE USER certified IDENTIFIED BY 'pw' REQUIRE X509");
        let mut options = connect_options(&server, "certified", "pw", TlsMode::VerifyCa);
        options.tls.ca = Some(authority.ca());
        let error = Connection::connect(&options).unwrap_err();
        assert!(matches!(&error, WireError::AccessDenied { code: 1045, .. }), "{name}: {error}");

        let (cert, key) = authority.issue("client");
        (options.tls.cert, options.tls.key) = (Some(cert), Some(key));
        Connection::connect(&options).unwrap_or_else(|error| panic!("{name}: {error}"));

        let (cert, key) = stranger.issue("client");
        (options.tls.cert, options.tls.key) = (Some(cert), Some(key));
        let error = Connection::connect(&options).unwrap_err();
        assert!(error.is_permanent(), "{name}: {error:?}");
    }
}

#[test]
fn a_server_that_wants_encryption_says_so() {
    for name in ["mysql-9.7", "mariadb-11.8"] {
        let server = Server::start(name, &["--require-secure-transport=ON"]);
        let error = Connection::connect(&as_root(&server, TlsMode::Disabled, None)).unwrap_err();
        assert!(matches!(&error, WireError::Server { code: 3159, .. }), "{name}: {error}");
        assert!(error.is_permanent(), "{name}: {error}");
    }
}

/// MySQL 8.0.15 is built with OpenSSL 1.0 and offers no ECDHE key exchange. (MySQL 5.7.22 is built with yaSSL and speaks
/// TLS 1.1 at most; today's clients, with which the tests start their servers, do not speak to it either.)
#[test]
fn a_server_with_an_old_library() {
    let server = Server::start("mysql-8.0.15", &[]);
    let error = tls_error(&as_root(&server, TlsMode::Required, None));
    assert!(matches!(&error, TlsError::Refused(_)), "{error:?}");
    assert!(error.to_string().contains("OpenSSL 1.0"), "{error}");

    let mut connection = Connection::connect(&as_root(&server, TlsMode::Preferred, None)).unwrap();
    assert_eq!(connection.tls_version(), None);
    connection.query("SELECT 1").unwrap();
}
