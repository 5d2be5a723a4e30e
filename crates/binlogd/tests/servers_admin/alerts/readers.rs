//! Readers and slots fall behind, strangers are refused, certificates end.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::stage::Stage;
use super::{PATIENCE, received, receives, source};
use crate::common::Server;
use crate::common::daemon::Daemon;
use crate::common::readers::{client, client_command, serve_port};
use crate::common::semi_sync::SemiSync;
use crate::common::wait_within;

/// Writes a certificate that is valid for so long from now on, and its key.
fn certificate(folder: &Path, valid: Duration) {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let now = std::time::SystemTime::now();
    params.not_before = (now - Duration::from_secs(86_400)).into();
    params.not_after = (now + valid).into();
    let key = rcgen::KeyPair::generate().expect("a key");
    let cert = params.self_signed(&key).expect("a certificate");
    std::fs::write(folder.join("cert.pem"), cert.pem()).expect("a file");
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).expect("a file");
}

const DAY: Duration = Duration::from_secs(86_400);

fn config(server: &Server, folder: &Path) -> String {
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    format!(
        "tls_cert = '{}'\ntls_key = '{}'\n[[serve.user]]\nname = 'repl'\npassword = 'secret'\nslot = 'warehouse'\n{}",
        cert.display(),
        key.display(),
        received(server, "")
    )
}

/// A log reader that stays. It is ended when dropped.
struct LogReader(Child);

impl LogReader {
    fn start(server: &Server, daemon: &Daemon, into: &Path) -> LogReader {
        let into = format!("--result-file={}/", into.display());
        let arguments = [
            "--connection-server-id=9",
            "--read-from-remote-server",
            "--raw",
            "--stop-never",
            &into,
            "mysql-bin.000001",
        ];
        let mut command = client_command(server, "MYSQLBINLOG", serve_port(daemon), &arguments);
        LogReader(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.0.id().cast_signed()).expect("a process id"), signal)
            .expect("it runs");
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn slot(stage: &Stage) -> serde_json::Value {
    stage.daemon.status()["serve"]["slots"][0].clone()
}

#[test]
#[ignore = "make test-alerts"]
fn readers_are_behind_and_certificates_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let of_source = tempfile::tempdir().expect("a folder");
    certificate(folder.path(), 30 * DAY);
    certificate(of_source.path(), 30 * DAY);
    let option = |name: &str, file: &str| format!("--{name}={}", of_source.path().join(file).display());
    let tls = [option("ssl-ca", "cert.pem"), option("ssl-cert", "cert.pem"), option("ssl-key", "key.pem")];
    let server = source(&tls.each_ref().map(String::as_str));
    let daemon = Daemon::start_from(&config(&server, folder.path()));
    receives(&daemon);
    SemiSync::enable(&server, Duration::from_secs(600)).wait_attached();
    let mut stage = Stage::new(daemon, &[]);

    // Both certificates: of the port within days, of the source within hours.
    certificate(folder.path(), 5 * DAY);
    stage.daemon.reload();
    stage.prometheus.wait_fires("BinlogdCertificateExpiresSoon");
    assert!(
        stage.prometheus.firing("BinlogdCertificateExpiresSoon")[0].contains("The serve certificate, as")
    );
    certificate(of_source.path(), DAY / 2);
    server.sql("ALTER INSTANCE RELOAD TLS");
    stage.restart();
    receives(&stage.daemon);
    stage.prometheus.wait_fires("BinlogdCertificateExpires");
    assert!(
        stage.prometheus.firing("BinlogdCertificateExpires")[0]
            .contains("The source certificate of default,")
    );
    certificate(folder.path(), 90 * DAY);
    certificate(of_source.path(), 90 * DAY);
    server.sql("ALTER INSTANCE RELOAD TLS");
    stage.play("A certificate expires", &server);
    stage.restart();
    receives(&stage.daemon);
    stage.prometheus.wait_ends("BinlogdCertificateExpires");
    stage.prometheus.wait_ends("BinlogdCertificateExpiresSoon");

    // A reader that takes nothing more, of what was written long ago; more than fits between it and binlogd.
    let into = tempfile::tempdir().expect("a folder");
    let old = "SET timestamp = UNIX_TIMESTAMP() - 9000;";
    server.sql(&format!("{old} INSERT INTO d.t (v) VALUES ('x')"));
    let reader = LogReader::start(&server, &stage.daemon, into.path());
    wait_within(PATIENCE, "it has everything", || {
        stage.daemon.status()["serve"]["readers"][0]["caught_up"] == true
    });
    reader.signal(Signal::STOP);
    let large = "INSERT INTO d.t (v) VALUES (REPEAT('x', 4000000));".repeat(8);
    server.sql(&format!("{old} {large}"));
    stage.prometheus.wait_fires("BinlogdReaderBehind");
    stage.play("A reader is behind", &server);
    reader.signal(Signal::CONT);
    stage.prometheus.wait_ends("BinlogdReaderBehind");

    // It goes, and what it has not read is written.
    wait_within(PATIENCE, "it has everything", || slot(&stage)["behind_bytes"] == 0);
    drop(reader);
    server.sql("INSERT INTO d.t (v) VALUES ('x'); FLUSH BINARY LOGS; INSERT INTO d.t (v) VALUES ('y'); FLUSH BINARY LOGS");
    stage.prometheus.wait_fires("BinlogdSlotBehind");
    stage.prometheus.wait_fires("BinlogdReaderGone");
    // Somebody moves the files away that it needs.
    stage.daemon.wait_caught_up(&server);
    stage.stop();
    let timeline = stage.daemon.timeline_dir();
    std::fs::rename(timeline.join("mysql-bin.000001"), into.path().join("moved")).expect("a file");
    let toml = timeline.join("timeline.toml");
    let text = std::fs::read_to_string(&toml).expect("a timeline");
    std::fs::write(&toml, format!("kept_from = \"mysql-bin.000002\"\n{text}")).expect("a file");
    stage.start();
    stage.prometheus.wait_fires("BinlogdSlotReleased");
    stage.play("A slot is behind or released", &server);
    stage.prometheus.wait_ends("BinlogdSlotReleased");
    stage.prometheus.wait_ends("BinlogdSlotBehind");
    stage.prometheus.wait_ends("BinlogdReaderGone");

    let refused =
        client(&server, "MYSQL", serve_port(&stage.daemon), &["--password=wrong", "-e", "SELECT 1"]);
    assert!(!refused.status.success());
    stage.prometheus.wait_fires("BinlogdReadersRefused");
    stage.play("Readers are turned away", &server);
    stage.prometheus.wait_ends("BinlogdReadersRefused");
    let verify =
        Command::new(env!("CARGO_BIN_EXE_binlogd")).arg("verify").arg(stage.daemon.data_dir()).output();
    assert!(verify.expect("binlogd runs").status.success());
}
