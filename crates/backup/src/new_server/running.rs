//! A server of the operator's program on a folder of its own, which nobody reaches but by a socket in that folder.

use super::folder::Folder;
use super::no_server::NoServer;
use super::program::{ServerProgram, not_run};
use codec::ServerKind;
use codec::rows::hex;
use rustix::process::{Pid, Signal, kill_process};
use source::clock::Clock;
use std::fs::File;
use std::io::{self, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use wire::{ConnectOptions, Connection, Secret, TlsMode, TlsOptions, WireError};

/// The account with which it is restored. It is dropped at the end.
const ACCOUNT: &str = "binlogd_restore";

/// How long a server may take until it answers: one whose files were copied recovers them first.
const START_MAX: Duration = Duration::from_secs(3600);

/// How long it may take to end.
const STOP_MAX: Duration = Duration::from_secs(3600);

/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(50);

/// How long a statement may take: CHECK TABLE of a large one.
const STATEMENT_MAX: Duration = Duration::from_secs(24 * 3600);

/// Lines of its log that an error shows.
const LOG_LINES: usize = 8;

/// How it is run.
#[derive(Debug, Clone)]
pub struct How {
    /// Its program.
    pub program: ServerProgram,
    /// What is added to its options; these count before ours.
    pub options: Vec<String>,
    /// Of its buffer pool, in bytes.
    pub buffer_pool: u64,
    /// Whether it goes by GTIDs.
    pub has_gtids: bool,
}

impl How {
    /// The call of its program, but for what it is to do.
    fn command(&self, folder: &Folder) -> Command {
        let mut command = Command::new(&self.program.path);
        command.arg("--no-defaults").arg(joined("--datadir=", &folder.data()));
        command.arg(joined("--log-error=", &folder.path("error.log")));
        command.arg(joined("--tmpdir=", &folder.path("tmp"))).arg("--skip-log-bin");
        command.current_dir(folder.data()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((user, group)) = folder.owner {
            std::os::unix::process::CommandExt::uid(&mut command, user);
            std::os::unix::process::CommandExt::gid(&mut command, group);
        } else if rustix::process::geteuid().is_root() {
            command.arg("--user=root");
        }
        platform::ends_with_us(&mut command);
        command
    }

    /// Makes the files of an empty server.
    ///
    /// # Errors
    /// [`NoServer`].
    pub(super) fn initialise(&self, folder: &Folder) -> Result<(), NoServer> {
        let mut command = self.command(folder);
        let mut statements = Vec::new();
        match self.program.kind {
            ServerKind::MySql => drop(command.arg("--initialize-insecure")),
            ServerKind::MariaDb => {
                statements = self.of_mariadb()?;
                command.args(["--bootstrap", "--max-allowed-packet=8M"]).stdin(Stdio::piped());
            }
        }
        let spawned = command.args(&self.options).spawn();
        let mut child = spawned.map_err(|error| not_run(&self.program.path, &error))?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that ends early says why in its log.
            let _ = stdin.write_all(&statements);
        }
        let status = child.wait().map_err(|error| not_run(&self.program.path, &error))?;
        ended(status, folder, "making the files of an empty server")
    }

    /// What mariadb-install-db hands to a server in its bootstrap mode, which takes one statement a line.
    fn of_mariadb(&self) -> Result<Vec<u8>, NoServer> {
        let share = self.program.share(&self.options)?;
        let mut all =
            b"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\nSET @skip_auth_anonymous=1;\n"
                .to_vec();
        let of_today = share.join("mariadb_system_tables.sql").exists();
        let prefix = if of_today { "mariadb" } else { "mysql" };
        let files = ["_system_tables.sql", "_performance_tables.sql", "_system_tables_data.sql"];
        let files = files.map(|end| format!("{prefix}{end}"));
        let more = [
            "fill_help_tables.sql".to_owned(),
            "maria_add_gis_sp_bootstrap.sql".to_owned(),
            format!("{prefix}_sys_schema.sql"),
        ];
        for name in files.into_iter().chain(more) {
            let path = share.join(name);
            let text = std::fs::read(&path);
            let text = text.map_err(|error| {
                NoServer::Program(format!("{}: {error}: the server's package is not whole", path.display()))
            })?;
            all.extend(text);
        }
        Ok(all)
    }
}

/// The server. It is killed when this is dropped, and when binlogd is.
#[derive(Debug)]
pub struct Running {
    child: Child,
    folder: Folder,
    kind: ServerKind,
    account: ConnectOptions,
}

impl Running {
    /// Starts it, and waits until it answers.
    ///
    /// # Errors
    /// [`NoServer::Ended`], with what it says in its log.
    pub(super) fn start(how: &How, folder: &Folder, clock: &dyn Clock) -> Result<Running, NoServer> {
        let in_folder = |error: io::Error| NoServer::Folder(format!("{}: {error}", folder.root().display()));
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| NoServer::Folder(error.to_string()))?;
        // Whatever rule for passwords the server has, it has all of these.
        let password = format!("{}aA1!", hex(&bytes));
        let begin = format!(
            "SET SESSION sql_log_bin = 0;\nDROP USER IF EXISTS '{ACCOUNT}'@'localhost';\nCREATE USER '{ACCOUNT}'@'localhost' IDENTIFIED BY \
             '{password}';\nGRANT ALL ON *.* TO '{ACCOUNT}'@'localhost' WITH GRANT OPTION;\n"
        );
        let begin = folder.write("begin.sql", &begin).map_err(in_folder)?;
        let socket = folder.path("mysqld.sock");
        let host = socket.to_string_lossy().into_owned();
        folder
            .write("client.cnf", &format!("[client]\nsocket={host}\nuser={ACCOUNT}\npassword={password}\n"))
            .map_err(in_folder)?;
        let mut command = how.command(folder);
        let number = getrandom::u32().unwrap_or(1) | 1;
        command.arg(joined("--init-file=", &begin)).arg(joined("--socket=", &socket));
        command.arg(joined("--pid-file=", &folder.path("mysqld.pid"))).arg(format!("--server-id={number}"));
        command.arg(format!("--innodb-buffer-pool-size={}", how.buffer_pool));
        command.args([
            "--skip-networking",
            "--event-scheduler=OFF",
            "--max-allowed-packet=1G",
            "--innodb-flush-log-at-trx-commit=0",
        ]);
        match how.program.kind {
            ServerKind::MySql => {
                command.args([
                    "--loose-mysqlx=OFF",
                    "--loose-persisted-globals-load=OFF",
                    "--loose-skip-replica-start",
                    "--loose-skip-slave-start",
                ]);
                command.args(["--loose-innodb-redo-log-capacity=256M", "--secure-file-priv=NULL"]);
                if how.has_gtids {
                    command.args(["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]);
                }
            }
            ServerKind::MariaDb => drop(command.arg("--skip-slave-start")),
        }
        let spawned = command.args(&how.options).spawn();
        let child = spawned.map_err(|error| not_run(&how.program.path, &error))?;
        let account = ConnectOptions {
            host,
            port: 0,
            user: ACCOUNT.to_owned(),
            password: Secret::new(password),
            connect_timeout: Duration::from_secs(30),
            tls: TlsOptions { mode: TlsMode::Disabled, ..TlsOptions::default() },
        };
        let mut running = Running { child, folder: folder.clone(), kind: how.program.kind, account };
        running.wait_ready(clock)?;
        Ok(running)
    }

    /// How it is reached.
    pub fn account(&self) -> &ConnectOptions {
        &self.account
    }

    /// MySQL or MariaDB.
    pub fn kind(&self) -> ServerKind {
        self.kind
    }

    /// A session of it.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn connect(&self) -> Result<Connection, WireError> {
        let mut connection = Connection::connect(&self.account)?;
        connection.set_timeout(STATEMENT_MAX);
        Ok(connection)
    }

    /// The newest complaints in its log, for who has none of its own.
    pub fn last_words(&self) -> String {
        last_lines(&self.folder)
    }

    fn wait_ready(&mut self, clock: &dyn Clock) -> Result<(), NoServer> {
        let until = clock.now() + START_MAX;
        loop {
            let last = match self.connect() {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            if let Some(status) =
                self.child.try_wait().map_err(|error| NoServer::Folder(error.to_string()))?
            {
                ended(status, &self.folder, "starting the server")?;
                return Err(NoServer::Ended {
                    during: "starting the server",
                    said: "it ended by itself".to_owned(),
                });
            }
            if clock.now() >= until {
                return Err(NoServer::Server(last));
            }
            clock.sleep(LOOK);
        }
    }

    /// Takes our account away where it is not needed any more, and lets the server end by itself, so that everything is on the disk.
    ///
    /// # Errors
    /// When it does not.
    pub(super) fn stop(mut self, is_last: bool, clock: &dyn Clock) -> Result<(), NoServer> {
        if is_last {
            let mut connection = self.connect()?;
            connection.query("SET SESSION sql_log_bin = 0")?;
            connection.query(&format!("DROP USER '{ACCOUNT}'@'localhost'"))?;
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let failed = |error: io::Error| NoServer::Folder(error.to_string());
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).map_err(|error| failed(error.into()))?;
        }
        let until = clock.now() + STOP_MAX;
        loop {
            match self.child.try_wait().map_err(failed)? {
                Some(status) => return ended(status, &self.folder, "ending the server"),
                None if clock.now() >= until => {
                    return Err(NoServer::Ended {
                        during: "ending the server",
                        said: "it does not end".to_owned(),
                    });
                }
                None => clock.sleep(LOOK),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already is not there any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ended(status: ExitStatus, folder: &Folder, during: &'static str) -> Result<(), NoServer> {
    if status.success() {
        return Ok(());
    }
    Err(NoServer::Ended { during, said: format!("{status}; its log {}", last_lines(folder)) })
}

/// The newest complaints in its log.
fn last_lines(folder: &Folder) -> String {
    let path = folder.path("error.log");
    let text = File::open(&path).and_then(io::read_to_string).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let errors: Vec<&str> = lines.iter().copied().filter(|line| line.contains("ERROR")).collect();
    let shown = if errors.is_empty() { &lines } else { &errors };
    let from = shown.len().saturating_sub(LOG_LINES);
    format!("({}) says:\n{}", path.display(), shown[from..].join("\n"))
}

fn joined(option: &str, path: &std::path::Path) -> std::ffi::OsString {
    let mut all = std::ffi::OsString::from(option);
    all.push(path);
    all
}
