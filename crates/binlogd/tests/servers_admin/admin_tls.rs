//! The admin address with HTTPS and a login: who is let in, and what SIGHUP renews.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::common::daemon::Daemon;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::Signal;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};

const PATIENCE: Duration = Duration::from_secs(60);
// base64 of dba:secret, dba:other
const SECRET: &str = "ZGJhOnNlY3JldA==";
const OTHER: &str = "ZGJhOm90aGVy";

/// An authority whose certificate for 127.0.0.1 stands in two files.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Writes another certificate over the one before.
    fn issue(&self, (cert, key): &(PathBuf, PathBuf)) {
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let pair = KeyPair::generate().unwrap();
        std::fs::write(cert, params.signed_by(&pair, &self.0).unwrap().pem()).unwrap();
        std::fs::write(key, pair.serialize_pem()).unwrap();
    }

    /// The status code for who trusts this authority, or why there is none.
    fn get(
        &self,
        daemon: &Daemon,
        version: &'static SupportedProtocolVersion,
        path: &str,
        login: &str,
    ) -> Result<u16, String> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.0.pem().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(daemon.front_address()).unwrap());
        let login =
            if login.is_empty() { String::new() } else { format!("Authorization: Basic {login}\r\n") };
        let request = format!("GET {path} HTTP/1.1\r\nHost: binlogd\r\n{login}\r\n");
        stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        // Who closes without a word of TLS has said all the same what the code is.
        let read = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        code.ok_or_else(|| format!("{read:?} {answer}"))
    }
}

/// How the answer to bytes without TLS begins.
fn bare(daemon: &Daemon, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(daemon.front_address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    // It may be cut off.
    let _ = stream.take(7).read_to_end(&mut answer);
    answer
}

/// As a client says hello that knows no more than this version: 2 is TLS 1.1, 3 is 1.2.
fn hello(version: u8) -> Vec<u8> {
    let mut hello = vec![3, version];
    hello.extend([7; 32]);
    // No session; ECDHE_ECDSA with AES_128_GCM, for 1.2, or AES_128_CBC; no compression.
    hello.extend([0, 0, 4, 0xc0, 0x2b, 0xc0, 0x09, 1, 0]);
    // P-256, uncompressed, with SHA-256.
    let extensions = [0, 10, 0, 4, 0, 2, 0, 23, 0, 11, 0, 2, 1, 0, 0, 13, 0, 4, 0, 2, 4, 3];
    hello.extend([0, extensions.len() as u8]);
    hello.extend(extensions);
    let mut message = vec![1, 0, 0, hello.len() as u8];
    message.extend(hello);
    let mut record = vec![22, 3, 1, 0, message.len() as u8];
    record.extend(message);
    record
}

struct Scene {
    authority: Authority,
    files: (PathBuf, PathBuf),
    daemon: Daemon,
}

fn lines(files: &(PathBuf, PathBuf), password: &str) -> (String, String) {
    let tls = format!("tls_cert = '{}'\ntls_key = '{}'\n", files.0.display(), files.1.display());
    // Of a source nothing is needed here.
    let rest = format!(
        "[[admin.user]]\nname = 'dba'\npassword = '{password}'\n\
         [[source]]\nhosts = ['127.0.0.1:1']\nuser = 'repl'\npassword = 'secret'\n"
    );
    (tls, rest)
}

impl Scene {
    fn new(folder: &Path) -> Scene {
        let (authority, files) = (Authority::new(), (folder.join("cert.pem"), folder.join("key.pem")));
        authority.issue(&files);
        let (tls, rest) = lines(&files, "secret");
        Scene { authority, daemon: Daemon::start_from_with(&tls, &rest), files }
    }

    fn write(&self, password: &str) {
        let (tls, rest) = lines(&self.files, password);
        self.daemon.write_config_with(&tls, &rest);
    }

    fn get(&self, path: &str, login: &str) -> Result<u16, String> {
        self.authority.get(&self.daemon, &TLS13, path, login)
    }
}

#[test]
fn https_and_a_login() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::new(folder.path());
    assert_eq!(scene.get("/status", SECRET), Ok(200));
    assert_eq!(scene.get("/", SECRET), Ok(200));
    assert_eq!(scene.get("/status", OTHER), Ok(401));
    assert_eq!(scene.get("/status", ""), Ok(401));
    assert_eq!(scene.get("/livez", ""), Ok(200), "a probe learns whether all is well");
    assert_eq!(scene.authority.get(&scene.daemon, &TLS12, "/status", SECRET), Ok(200));
    let stranger = Authority::new().get(&scene.daemon, &TLS13, "/status", SECRET).unwrap_err();
    assert!(stranger.contains("invalid peer certificate"), "{stranger}");

    // In clear nothing is told, and no older version is spoken: an alert, protocol_version.
    let answer = bare(
        &scene.daemon,
        format!("GET /status HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {SECRET}\r\n\r\n").as_bytes(),
    );
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/"), "{answer:?}");
    assert_eq!(bare(&scene.daemon, &hello(3))[..1], [22], "1.2 is answered");
    assert_eq!(bare(&scene.daemon, &hello(2)), [21, 3, 3, 0, 2, 2, 70]);

    // This machine asks without either.
    let status = scene.daemon.status();
    assert_eq!(status["running"], true, "{status}");
    assert_ne!(scene.daemon.admin_address(), scene.daemon.front_address());
}

#[test]
fn sighup_renews_certificate_and_password_and_keeps_the_old_ones_for_bad_ones() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(folder.path());
    let before = std::mem::replace(&mut scene.authority, Authority::new());
    scene.authority.issue(&scene.files);
    let trusts_old = |scene: &Scene, login: &str| before.get(&scene.daemon, &TLS13, "/status", login);
    assert_eq!(trusts_old(&scene, SECRET), Ok(200), "until SIGHUP");
    scene.write("other");
    scene.daemon.reload();
    assert!(trusts_old(&scene, OTHER).unwrap_err().contains("invalid peer certificate"));
    assert_eq!(scene.get("/status", OTHER), Ok(200));
    assert_eq!(scene.get("/status", SECRET), Ok(401));

    // The certificate is of another key: all stays as it was, and that is said.
    std::fs::write(&scene.files.1, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    scene.write("secret");
    scene.daemon.signal(Signal::HUP);
    scene.daemon.wait_log("the configuration was not reloaded, everything goes on as before", PATIENCE);
    assert!(scene.daemon.log().contains("tls_cert"), "{}", scene.daemon.log());
    assert_eq!(scene.get("/status", OTHER), Ok(200));

    // Without a login there would be no door for this machine: that is for a restart.
    scene.authority.issue(&scene.files);
    let (_, rest) = lines(&scene.files, "secret");
    scene.daemon.write_config_with("", &rest[rest.find("[[source]]").unwrap()..]);
    scene.daemon.reload();
    scene.daemon.wait_log("in force only after a restart: admin.tls_cert, admin.user", PATIENCE);
    assert_eq!((scene.get("/status", OTHER), scene.get("/status", "")), (Ok(200), Ok(401)));
}
