//! `binlogd setup` against real servers: from a server that knows nothing of binlogd to the first acknowledged commit, with the
//! built binary and the files that setup wrote.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::semi_sync::SemiSync;
use crate::common::{Server, wait_within};
use codec::ServerKind;
use rustix::process::{Pid, Signal, kill_process};

/// Longest wait for what must come: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Far longer than the test: what waits for an acknowledgement, waits for an operator.
const HOUR: Duration = Duration::from_secs(3600);

/// A machine of binlogd: its folders, and what runs on it.
struct Machine {
    folder: tempfile::TempDir,
    daemon: Option<Child>,
}

/// A run of setup.
struct Run {
    code: i32,
    /// Standard output, then standard error.
    said: String,
}

impl Machine {
    fn new() -> Machine {
        Machine { folder: tempfile::tempdir().unwrap(), daemon: None }
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("etc/binlogd.toml")
    }

    fn password_file(&self) -> PathBuf {
        self.folder.path().join("etc/default.password")
    }

    fn command(&self, server: &Server, flags: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
        command
            .arg("setup")
            .arg(format!("mysql://root@127.0.0.1:{}", server.port()))
            .arg("--config")
            .arg(self.config())
            .arg("--data-dir")
            .arg(self.folder.path().join("data"))
            .args(["--admin-listen", "127.0.0.1:0"])
            .args(flags);
        command.env("NO_COLOR", "1").env_remove("BINLOGD_PASSWORD").stdin(Stdio::null());
        command
    }

    fn setup(&self, server: &Server, flags: &[&str]) -> Run {
        let output = self.command(server, flags).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        if let Ok(password) = std::fs::read_to_string(self.password_file()) {
            assert!(!said.contains(password.trim()), "the password is shown\n{said}");
        }
        Run { code: output.status.code().unwrap(), said }
    }

    #[track_caller]
    fn apply(&self, server: &Server, flags: &[&str]) -> Run {
        let run = self.setup(server, &[&["--apply", "--yes"], flags].concat());
        assert_eq!(run.code, 0, "{}", run.said);
        run
    }

    /// Starts binlogd as the last line of setup says.
    #[track_caller]
    fn start(&mut self, said: &str) {
        let line = said
            .lines()
            .rev()
            .find(|line| line.contains(" run --config "))
            .expect("the command that starts it");
        // On a machine with an account of binlogd it says `runuser -u binlogd -- …`: that account has no right to the folder of a test.
        let line = line.split_once(" -- ").map_or(line, |(_, command)| command);
        let words: Vec<&str> = line.split_whitespace().collect();
        let (program, arguments) = words.split_first().unwrap();
        assert_eq!(Path::new(program), Path::new(env!("CARGO_BIN_EXE_binlogd")).canonicalize().unwrap());
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut command = Command::new(program);
        command.args(arguments).env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.daemon = Some(command.spawn().unwrap());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Its folders hold nothing.
    fn is_untouched(&self) -> bool {
        std::fs::read_dir(self.folder.path()).unwrap().next().is_none()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
            if std::thread::panicking() {
                println!("{}", self.log());
            }
        }
    }
}

impl Run {
    #[track_caller]
    fn says(&self, words: &str) {
        assert!(self.said.contains(words), "no {words:?} in\n{}", self.said);
    }
}

/// Everything of a server that setup may change.
fn state_of(server: &Server) -> String {
    let persisted = match server.kind() {
        ServerKind::MySql if !server.name().starts_with("mysql-5") => {
            "SELECT * FROM performance_schema.persisted_variables ORDER BY 1;"
        }
        _ => "",
    };
    server.sql(&format!(
        "SELECT User, Host, plugin, ssl_type, authentication_string FROM mysql.user ORDER BY 1, 2; SHOW GLOBAL VARIABLES; SHOW PLUGINS; \
         {persisted}"
    ))
}

/// From a server to the first acknowledged commit, every command as setup itself says it; and whatever is repeated changes nothing.
fn newcomer(server: &Server) {
    let mut machine = Machine::new();
    let before = state_of(server);
    let look = machine.setup(server, &[]);
    assert_eq!(look.code, 0, "{}", look.said);
    look.says("Nothing was changed. To do it: the same command with --apply");
    look.says("IDENTIFIED ");
    look.says("<password>");
    assert!(machine.is_untouched());
    assert!(state_of(server) == before, "a look has changed the server");
    // Nobody is there to be asked.
    let unasked = machine.setup(server, &["--apply"]);
    assert_eq!(unasked.code, 1, "{}", unasked.said);
    unasked.says("give --yes");
    assert!(machine.is_untouched() && state_of(server) == before);

    let done = machine.apply(server, &[]);
    for words in [
        "done      Make up a password",
        "done      Make the account",
        "done      Log in as",
        "Your turn, step ",
    ] {
        done.says(words);
    }
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&machine.password_file()), 0o400);
    let semi_sync = SemiSync::of(server);
    assert!(!semi_sync.counters().on, "semi-sync is on before binlogd is attached");
    let after = state_of(server);
    let config = std::fs::read_to_string(machine.config()).unwrap();
    let again = machine.apply(server, &[]);
    assert!(!again.said.contains("done      "), "{}", again.said);
    assert!(state_of(server) == after, "the second run has changed the server");
    assert_eq!(std::fs::read_to_string(machine.config()).unwrap(), config);

    machine.start(&again.said);
    let last = machine.apply(server, &["--wait=60s"]);
    last.says("done      Switch semi-sync on");
    last.says("All is done.");
    let attached = semi_sync.wait_attached();
    server.sql("CREATE DATABASE t; CREATE TABLE t.a (id INT PRIMARY KEY); INSERT INTO t.a VALUES (1)");
    let counters = semi_sync.counters();
    assert_eq!((counters.yes_tx - attached.yes_tx, counters.no_tx), (3, attached.no_tx), "{counters:?}");
    let whole = state_of(server);
    machine.apply(server, &[]).says("All is done.");
    machine.setup(server, &[]).says("All is done.");
    assert!(state_of(server) == whole);
    let undo = machine.setup(server, &["--undo"]);
    undo.says("DROP USER 'binlogd'@'127.0.0.1';");
    undo.says("_enabled = OFF;");
    assert!(state_of(server) == whole);
}

#[test]
fn mysql_9_7_without_its_plugin() {
    let mut server = Server::start("mysql-9.7", &[]);
    server.stop();
    // In place of what the script loads, so that setup has a plugin to install.
    server.restart(&["--plugin-load="]);
    assert_eq!(server.sql("SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_source%'"), "");
    newcomer(&server);
    assert_eq!(server.sql("SELECT @@global.rpl_semi_sync_source_timeout").trim(), "10000");
    // It lasts: the server reads this at its start. (Not those of the tests, which are started with --no-defaults.)
    let persisted = "SELECT VARIABLE_VALUE FROM performance_schema.persisted_variables \
                     WHERE VARIABLE_NAME = 'rpl_semi_sync_source_enabled'";
    assert_eq!(server.sql(persisted).trim(), "ON");
}

#[test]
fn mariadb_11_8() {
    newcomer(&Server::start("mariadb-11.8", &[]));
}

#[test]
fn mariadb_10_11() {
    let server = Server::start("mariadb-10.11", &[]);
    newcomer(&server);
    let lines = Machine::new().setup(&server, &["--account", "other"]);
    lines.says("rpl_semi_sync_master_enabled = ON");
    lines.says("does not outlast a restart");
    three_nodes(&server);
}

/// From three machines with nothing on them to a quorum, every command as setup itself says it.
fn three_nodes(server: &Server) {
    let semi_sync = SemiSync::of(server);
    semi_sync.set_enabled(false);
    let listeners: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<String> =
        listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect();
    drop(listeners);
    let quorum = |node: usize| {
        let others: Vec<&str> =
            (0..3).filter(|other| *other != node).map(|other| &*addresses[other]).collect();
        others.join(",")
    };
    let mut machines: Vec<Machine> = (0..3).map(|_| Machine::new()).collect();
    let run = |machine: &Machine, node: usize, more: &[&str]| {
        let flags = ["--account", "node", "--quorum", &quorum(node), "--serve", &addresses[node]];
        machine.apply(server, &[&flags[..], more].concat())
    };
    let mut said = vec![run(&machines[0], 0, &[])];
    said[0].says("_timeout = 3600000;");
    said[0].says("copy the file to the others");
    for node in 1..3 {
        std::fs::create_dir(machines[node].config().parent().unwrap()).unwrap();
        std::fs::copy(machines[0].password_file(), machines[node].password_file()).unwrap();
        said.push(run(&machines[node], node, &[]));
    }
    machines[0].start(&said[0].said);
    wait_within(PATIENCE, "the quorum has not begun", || {
        machines[0].setup(server, &["--account", "node"]).said.contains("its quorum has not begun")
    });
    machines[1].start(&said[1].said);
    machines[2].start(&said[2].said);
    run(&machines[2], 2, &["--wait=60s"]).says("done      Switch semi-sync on");
    let attached = semi_sync.wait_until(|counters| counters.on && counters.clients == 3);
    server.sql("CREATE DATABASE q");
    let counters = semi_sync.counters();
    assert_eq!((counters.yes_tx - attached.yes_tx, counters.no_tx), (1, attached.no_tx), "{counters:?}");
}

/// A server that has no plugin at all: said, and nothing is done before it; and without semi-sync all goes well.
fn without_the_plugin(name: &str) {
    let server = Server::start(name, &[]);
    let mut machine = Machine::new();
    let before = state_of(&server);
    let run = machine.setup(&server, &["--apply", "--yes"]);
    assert_eq!(run.code, 1, "{}", run.said);
    run.says("step 1 failed (Install the semi-sync plugin)");
    run.says("--semi-sync=false");
    run.says("Before it nothing was changed.");
    assert!(machine.is_untouched() && state_of(&server) == before);

    let done = machine.apply(&server, &["--semi-sync=false"]);
    machine.start(&done.said);
    machine.apply(&server, &["--semi-sync=false", "--wait=60s"]).says("All is done. binlogd copies");
}

#[test]
fn mysql_8_0_without_a_plugin_to_install() {
    without_the_plugin("mysql-8.0.31");
}

#[test]
fn mysql_5_7_without_a_plugin_to_install() {
    without_the_plugin("mysql-5.7.22");
}

#[track_caller]
fn refused(machine: &Machine, server: &Server, flags: &[&str], words: &str) {
    let before = state_of(server);
    let run = machine.setup(server, &[&["--apply", "--yes"], flags].concat());
    assert_eq!(run.code, 1, "{}", run.said);
    run.says(words);
    assert!(state_of(server) == before, "{}", run.said);
}

/// An account that exists keeps its password, and what is asked for is what is done.
fn accounts(server: &Server) {
    let machine = Machine::new();
    server.sql("CREATE USER binlogd@'127.0.0.1' IDENTIFIED BY 'known to somebody else'");
    refused(&machine, server, &[], "--reset-password");
    std::fs::create_dir_all(machine.config().parent().unwrap()).unwrap();
    std::fs::write(machine.password_file(), "not this\n").unwrap();
    refused(&machine, server, &[], "does not let binlogd in");
    std::fs::remove_file(machine.password_file()).unwrap();
    // From another address than this: made, and not let in. What was done is said, and how to take it back.
    let elsewhere = machine.setup(server, &["--apply", "--yes", "--replica-host", "10.9.8.7"]);
    assert_eq!(elsewhere.code, 1, "{}", elsewhere.said);
    elsewhere.says("--replica-host, with a pattern that fits");
    elsewhere.says("    DROP USER 'binlogd'@'10.9.8.7';");
    server.sql("DROP USER binlogd@'10.9.8.7'");
    let reset = machine.apply(server, &["--reset-password", "--require-ssl"]);
    reset.says("ALTER USER 'binlogd'@'127.0.0.1'");
    reset.says("GRANT REPLICATION SLAVE");
    let config = std::fs::read_to_string(machine.config()).unwrap();
    assert!(config.contains("tls = \"required\""), "{config}");
    assert_eq!(server.sql("SELECT ssl_type FROM mysql.user WHERE User = 'binlogd'").trim(), "ANY");
    server.sql("DROP USER binlogd@'127.0.0.1'");
}

/// A configuration that is there stays as it is, and says what to add.
fn other_configuration(server: &Server) {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.config().parent().unwrap()).unwrap();
    let data_dir = machine.folder.path().join("data");
    let text =
        format!("data_dir = {data_dir:?}\n[[source]]\nname = \"other\"\nhosts = [\"db9\"]\nuser = \"u\"\n");
    std::fs::write(machine.config(), &text).unwrap();
    let done = machine.apply(server, &["--name", "second"]);
    done.says("Add the source to ");
    done.says("    name = \"second\"");
    assert_eq!(std::fs::read_to_string(machine.config()).unwrap(), text);
    let file = machine.folder.path().join("etc/conf.d/second.toml");
    machine
        .apply(server, &["--name", "second", "--source-file", file.to_str().unwrap()])
        .says("done      Write ");
    assert!(std::fs::read_to_string(file).unwrap().starts_with("[[source]]\nname = \"second\"\n"));
    server.sql("DROP USER binlogd@'127.0.0.1'");
}

/// Whoever ends the wait has lost nothing, and semi-sync is off.
fn interrupted(server: &Server) {
    let mut machine = Machine::new();
    // What a run leaves that was killed while it wrote.
    std::fs::create_dir_all(machine.config().parent().unwrap()).unwrap();
    std::fs::write(machine.password_file().with_file_name("default.password.unfinished"), "ha").unwrap();
    let out = machine.folder.path().join("out");
    let mut waiting = machine
        .command(server, &["--apply", "--yes", "--wait"])
        .stdout(std::fs::File::create(&out).unwrap())
        .spawn()
        .unwrap();
    let said = || std::fs::read_to_string(&out).unwrap();
    wait_within(PATIENCE, "setup waits", || said().contains("waiting for binlogd"));
    // Not SIGINT, which a shell has its jobs in the background ignore, and with them these tests.
    kill_process(Pid::from_child(&waiting), Signal::TERM).unwrap();
    waiting.wait().unwrap();
    assert!(!SemiSync::of(server).counters().on);
    machine.start(&said());
    machine.apply(server, &["--wait=60s"]).says("All is done.");
    SemiSync::of(server).wait_attached();
}

/// Semi-sync is on, nobody is attached, and each statement about accounts would wait for an hour and lock everybody out.
fn nobody_attached(server: &Server) {
    SemiSync::enable(server, HOUR);
    let mut machine = Machine::new();
    let done = machine.apply(server, &[]);
    done.says("SET SESSION sql_log_bin = 0;");
    done.says("Replicas do not get the account");
    machine.start(&done.said);
    machine.apply(server, &["--wait=60s"]).says("All is done.");
    SemiSync::of(server).wait_attached();
    server.sql("CREATE DATABASE waited");
    SemiSync::of(server).set_enabled(false);
    server.sql("DROP USER binlogd@'127.0.0.1'; SET GLOBAL rpl_semi_sync_source_timeout = 10000");
}

#[test]
fn what_stands_in_the_way() {
    let mut server = Server::start("mysql-9.7", &[]);
    accounts(&server);
    other_configuration(&server);
    nobody_attached(&server);
    let machine = Machine::new();
    server.sql("SET GLOBAL super_read_only = ON");
    refused(&machine, &server, &[], "is read-only (super_read_only is ON)");
    server.sql("SET GLOBAL super_read_only = OFF, GLOBAL read_only = OFF");
    server.sql("CREATE USER little@'%'");
    let url = format!("mysql://little@127.0.0.1:{}", server.port());
    let config = machine.config();
    let output = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .arg("setup")
        .arg(url)
        .arg("--config")
        .arg(config)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("not to be seen") && output.status.code() == Some(1), "{said}");
    interrupted(&server);
    server.stop();
    server.restart(&["--skip-log-bin"]);
    refused(&machine, &server, &[], "    log_bin = mysql-bin");
    assert!(machine.is_untouched());
}
