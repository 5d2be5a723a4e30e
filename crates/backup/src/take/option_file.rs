//! Who the tool is to be at the server: an option file that only the tool can read, and that is on no disk.
//!
//! It is the tool's standard input: a file in memory, of which nothing is left when both have ended. The arguments of a process, which
//! any user of the machine can read, hold no password.

use archive::chain::backup::Tool;
use rustix::fs::{MemfdFlags, Mode, fchmod, memfd_create};
use std::fs::File;
use std::io::{self, Seek, Write};
use wire::{ConnectOptions, TlsMode};

/// Where the tool finds its standard input.
pub(super) const PATH: &str = "/dev/stdin";

/// The file.
///
/// # Errors
/// When there is no memory for it.
pub(super) fn make(tool: Tool, server: &ConnectOptions) -> io::Result<File> {
    let memory = memfd_create("binlogd-options", MemfdFlags::CLOEXEC)?;
    // One that everybody may write to is passed over by the tools (my_load_defaults of mysys/my_default.c).
    fchmod(&memory, Mode::RUSR | Mode::WUSR)?;
    let mut file = File::from(memory);
    file.write_all(text(tool, server).as_bytes())?;
    file.rewind()?;
    Ok(file)
}

fn text(tool: Tool, server: &ConnectOptions) -> String {
    let mut lines = vec![
        "[client]".to_owned(),
        format!("host={}", quoted(&server.host)),
        format!("port={}", server.port),
        "protocol=tcp".to_owned(),
        format!("user={}", quoted(&server.user)),
        format!("password={}", quoted(server.password.expose())),
    ];
    lines.extend(tls(tool, server));
    lines.push(String::new());
    lines.join("\n")
}

/// The tools of MySQL and of MariaDB have other words for the same.
fn tls(tool: Tool, server: &ConnectOptions) -> Vec<String> {
    let ca = server.tls.ca.iter().map(|ca| format!("ssl-ca={}", quoted(&ca.to_string_lossy())));
    let mode = server.tls.mode;
    let mut lines: Vec<String> = match (tool, mode) {
        (Tool::Mysqldump, TlsMode::Disabled) => {
            vec!["ssl-mode=DISABLED".to_owned(), "get-server-public-key".to_owned()]
        }
        (Tool::Mysqldump, TlsMode::Preferred) => vec!["ssl-mode=PREFERRED".to_owned()],
        (Tool::Mysqldump, TlsMode::Required) => vec!["ssl-mode=REQUIRED".to_owned()],
        (Tool::Mysqldump, TlsMode::VerifyCa) => vec!["ssl-mode=VERIFY_CA".to_owned()],
        (Tool::Mysqldump, TlsMode::VerifyFull) => vec!["ssl-mode=VERIFY_IDENTITY".to_owned()],
        (_, TlsMode::Disabled) => vec!["skip-ssl".to_owned(), "skip-ssl-verify-server-cert".to_owned()],
        (_, TlsMode::Preferred) => vec!["skip-ssl-verify-server-cert".to_owned()],
        (_, TlsMode::Required) => vec!["ssl".to_owned(), "skip-ssl-verify-server-cert".to_owned()],
        (_, TlsMode::VerifyCa | TlsMode::VerifyFull) => {
            vec!["ssl".to_owned(), "ssl-verify-server-cert".to_owned()]
        }
    };
    lines.extend(ca);
    lines
}

/// A value as option files have it.
fn quoted(value: &str) -> String {
    let mut quoted = String::from("\"");
    for character in value.chars() {
        match character {
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::time::Duration;
    use wire::TlsOptions;

    #[test]
    fn a_password_is_quoted_and_the_file_is_for_its_owner() {
        let server = ConnectOptions {
            host: "::1".into(),
            port: 3307,
            user: "backup".into(),
            password: "a\"b\\c #\n".into(),
            connect_timeout: Duration::from_secs(1),
            tls: TlsOptions { mode: TlsMode::Required, ..TlsOptions::default() },
        };
        let mut file = make(Tool::MariadbDump, &server).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("[client]\nhost=\"::1\"\nport=3307\n"), "{text}");
        assert!(text.contains("password=\"a\\\"b\\\\c #\\n\"\nssl\nskip-ssl-verify-server-cert\n"), "{text}");
        let mode = rustix::fs::fstat(&file).unwrap().st_mode & 0o777;
        assert_eq!(mode, 0o600);
        let of_mysql = super::text(Tool::Mysqldump, &server);
        assert!(of_mysql.contains("\nssl-mode=REQUIRED\n"), "{of_mysql}");
    }
}
