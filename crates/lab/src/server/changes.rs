//! Changing a user's server, and changing it back: at the end of a run, on the way out of an error, or after a crash.

use super::address;
use super::journal::{Entry, Journal};
use anyhow::{Context, bail, ensure};
use binlogd::wire::ConnectOptions;
use binlogd_bench::semisync::server::Session;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::{Duration, Instant};

/// The table that shows that a database is the lab's; its only row holds the token of the journal.
const MARKER: &str = "made_by_binlogd_lab";
/// Longest wait for one statement that undoes something: a large database takes a while to drop.
const UNDO_MAX: Duration = Duration::from_secs(600);
/// Longest wait until the source has noticed that receivers are gone, which a plugin's removal needs.
const UNINSTALL_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(200);
const BUFFER_POOL: &str = "innodb_buffer_pool_size";

/// What the lab has changed on one server. Dropping it changes everything back.
#[derive(Debug)]
pub struct Changes {
    account: ConnectOptions,
    /// Absent when everything is as it was.
    journal: Option<Journal>,
    say: fn(&str),
}

impl Changes {
    /// Begins a journal for the server of `session` in the folder `dir`. Nothing is changed yet.
    ///
    /// # Errors
    /// When there is a journal already, and when it cannot be written.
    pub fn begin(
        dir: &Path,
        account: &ConnectOptions,
        session: &mut Session,
        say: fn(&str),
    ) -> anyhow::Result<Changes> {
        let identity = identity(session)?;
        let server = Entry::Server { url: address::url_without_password(account), identity };
        let journal = Journal::begin(dir, &address::place(account), server)?;
        Ok(Changes { account: account.clone(), journal: Some(journal), say })
    }

    fn note(&mut self, entry: Entry) -> anyhow::Result<()> {
        self.journal.as_mut().context("the server was restored already")?.push(entry)
    }

    /// Sets a global variable.
    ///
    /// # Errors
    /// When the server has no such variable or refuses.
    pub fn set(&mut self, session: &mut Session, name: &str, value: &str) -> anyhow::Result<()> {
        let old = variable(session, name)?.with_context(|| format!("the server has no variable {name}"))?;
        if same(&old, value) {
            return Ok(());
        }
        self.note(Entry::Variable { name: name.to_owned(), old, new: value.to_owned() })?;
        session.query(&set_statement(name, value)?).map(|_| ())
    }

    /// Installs a plugin that is not there yet.
    ///
    /// # Errors
    /// When the server refuses, most often because it has no such file.
    pub fn install(&mut self, session: &mut Session, name: &str, file: &str) -> anyhow::Result<()> {
        self.note(Entry::Plugin { name: name.to_owned() })?;
        session.query(&format!("INSTALL PLUGIN {name} SONAME '{file}'")).map(|_| ())
    }

    /// Creates the database `name` with a marker in it. One that an earlier run of the lab left is dropped first.
    ///
    /// # Errors
    /// When there is a database of that name that the lab did not create, and when the server refuses.
    pub fn create_database(&mut self, session: &mut Session, name: &str) -> anyhow::Result<()> {
        if has_database(session, name)? {
            if !has_table(session, name, MARKER)? {
                bail!("the server has a database {name} that the lab did not create: it is left alone");
            }
            session.query(&format!("DROP DATABASE {name}"))?;
        }
        let token = session.query("SELECT UUID()")?.first().context("no UUID()")?.to_owned();
        self.note(Entry::Database { name: name.to_owned(), token: token.clone() })?;
        session.run(&[
            format!("CREATE DATABASE {name}"),
            format!("CREATE TABLE {name}.{MARKER} (token CHAR(36) PRIMARY KEY)"),
            format!("INSERT INTO {name}.{MARKER} VALUES ('{token}')"),
        ])
    }

    /// Notes a program that was started and uses the server, so that it can be ended if the lab is killed.
    ///
    /// # Errors
    /// When it cannot be written down.
    pub fn started(&mut self, pid: u32) -> anyhow::Result<()> {
        match start_of(pid) {
            Some(started) => self.note(Entry::Process { pid, started }),
            None => Ok(()),
        }
    }

    /// Changes everything back. Says what was done.
    ///
    /// # Errors
    /// When something could not be; the journal stays then.
    pub fn undo(&mut self) -> anyhow::Result<Vec<String>> {
        let Some(journal) = self.journal.take() else { return Ok(Vec::new()) };
        undo(journal, &self.account)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        if let Err(error) = self.undo() {
            let place = address::place(&self.account);
            (self.say)(&format!(
                "{place} is not as it was: {error:#}; binlogd-lab restore tries again, with the password in {}",
                address::PASSWORD_VARIABLE
            ));
        }
    }
}

/// Changes back what runs that were killed have left changed, by their journals in the folder `dir`, and says what was
/// done, a line each. The password is that of the environment variable `BINLOGD_LAB_PASSWORD`, or none.
///
/// # Errors
/// When a journal or a server cannot be read, a server is another one than the journal's, or does not do what it must.
/// The other servers are restored nevertheless.
pub fn restore(dir: &Path) -> anyhow::Result<Vec<String>> {
    let (mut done, mut wrong) = (Vec::new(), Vec::new());
    for journal in Journal::left_behind(dir)? {
        let path = journal.path().to_owned();
        let restored = match journal.entries().first() {
            // Killed before the first line was whole: nothing was changed.
            None => journal.remove().map(|()| Vec::new()),
            // The URL holds no password: that of the environment is taken.
            Some(Entry::Server { url, .. }) => {
                address::account(url).and_then(|account| undo(journal, &account))
            }
            Some(_) => Err(anyhow::anyhow!("its first line names no server")),
        };
        match restored {
            Ok(lines) => done.extend(lines),
            Err(error) => wrong.push(format!("{}: {error:#}", path.display())),
        }
    }
    if !wrong.is_empty() {
        done.extend(wrong);
        bail!("not everything could be restored:\n{}", done.join("\n"));
    }
    Ok(done)
}

fn undo(journal: Journal, account: &ConnectOptions) -> anyhow::Result<Vec<String>> {
    for entry in journal.entries() {
        if let Entry::Process { pid, started } = *entry {
            end_process(pid, started);
        }
    }
    let mut session = Session::connect(account)?;
    session.set_timeout(UNDO_MAX);
    let place = address::place(account);
    let expected = journal.entries().iter().find_map(|entry| match entry {
        Entry::Server { identity, .. } => Some(identity.as_str()),
        _ => None,
    });
    let found = identity(&mut session)?;
    ensure!(
        expected == Some(found.as_str()),
        "the server at {place} is another one now ({found}, not {}): nothing was changed on it",
        expected.unwrap_or("?")
    );
    let (mut done, mut wrong) = (Vec::new(), Vec::new());
    let mut seen = Vec::new();
    for entry in journal.entries().iter().rev() {
        let step = match entry {
            Entry::Variable { name, .. } if seen.contains(&name) => continue,
            Entry::Variable { name, .. } => {
                seen.push(name);
                undo_variable(&mut session, &journal, name)
            }
            Entry::Plugin { name } => undo_plugin(&mut session, name),
            Entry::Database { name, token } => undo_database(&mut session, name, token),
            Entry::Server { .. } | Entry::Process { .. } => continue,
        };
        match step {
            Ok(None) => {}
            Ok(Some(line)) => done.push(format!("{place}: {line}")),
            Err(error) => wrong.push(format!("{error:#}")),
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    journal.remove()?;
    Ok(done)
}

/// Sets a variable as it was before its first change, unless somebody else has changed it since.
fn undo_variable(session: &mut Session, journal: &Journal, name: &str) -> anyhow::Result<Option<String>> {
    let mut changes = journal.entries().iter().filter_map(|entry| match entry {
        Entry::Variable { name: other, old, new } if other == name => Some((old, new)),
        _ => None,
    });
    let Some((old, first)) = changes.next() else { return Ok(None) };
    let Some(now) = variable(session, name)? else { return Ok(None) };
    if name == BUFFER_POOL {
        let ours: Vec<&str> =
            std::iter::once(first).chain(changes.map(|(_, new)| new)).map(String::as_str).collect();
        return resize_back(session, old, &ours);
    }
    if same(&now, old) {
        return Ok(None);
    }
    if !same(&now, first) && !changes.any(|(_, new)| same(&now, new)) {
        return Ok(Some(left(name, &now, old)));
    }
    session.query(&set_statement(name, old)?)?;
    Ok(Some(format!("{name} = {old} again, was {now}")))
}

/// Gives the buffer pool its old size, and waits until it has it. MySQL resizes in the background and shows the size from
/// before until that is done, so what is shown says nothing while one is on the way. Returns the size that it had; or
/// leaves it, when that is none of the lab's (`ours`): a server may round one, as much as a hundredth.
fn resize_back(session: &mut Session, old: &str, ours: &[&str]) -> anyhow::Result<Option<String>> {
    let deadline = Instant::now() + UNDO_MAX;
    let near = |one: &str, other: &str| match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => (one / other - 1.0).abs() < 0.02,
        _ => false,
    };
    let mut was = None;
    loop {
        let status = session.query("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_resize_status'")?;
        let status = status.get(0, "Value").unwrap_or_default();
        let finished = ["Completed", "Size did not change"].iter().any(|word| status.starts_with(word));
        if status.is_empty() || finished {
            let now = variable(session, BUFFER_POOL)?.unwrap_or_default();
            if same(&now, old) {
                return Ok(was.map(|was| format!("{BUFFER_POOL} = {old} again, was {was}")));
            }
            if was.is_none() && !ours.iter().any(|size| near(&now, size)) {
                return Ok(Some(left(BUFFER_POOL, &now, old)));
            }
            was.get_or_insert(now);
            session.query(&set_statement(BUFFER_POOL, old)?)?;
        }
        ensure!(Instant::now() < deadline, "{BUFFER_POOL} does not become {old}: {status}");
        std::thread::sleep(LOOK_EVERY);
    }
}

fn left(name: &str, now: &str, old: &str) -> String {
    format!("{name} is {now}, which the lab did not set: left so (before the lab it was {old})")
}

fn undo_plugin(session: &mut Session, name: &str) -> anyhow::Result<Option<String>> {
    let deadline = Instant::now() + UNINSTALL_MAX;
    let installed = format!("SELECT COUNT(*) FROM information_schema.plugins WHERE plugin_name = '{name}'");
    while session.query(&installed)?.first() != Some("0") {
        match session.query(&format!("UNINSTALL PLUGIN {name}")) {
            Ok(_) => return Ok(Some(format!("plugin {name} uninstalled"))),
            // In use until the source has noticed that its receivers are gone.
            Err(_) if Instant::now() < deadline => std::thread::sleep(LOOK_EVERY),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Drops the database if it holds the token, or no other table than the marker: then the run was killed before it wrote
/// the token.
fn undo_database(session: &mut Session, name: &str, token: &str) -> anyhow::Result<Option<String>> {
    if !has_database(session, name)? {
        return Ok(None);
    }
    let others = session.query(&format!(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{name}' AND table_name <> '{MARKER}'"
    ))?;
    let marked = has_table(session, name, MARKER)?;
    let found = match marked {
        true => session.query(&format!("SELECT token FROM {name}.{MARKER}"))?.first().map(str::to_owned),
        false => None,
    };
    let ours = match found {
        Some(found) => found == token,
        None => others.first() == Some("0"),
    };
    if !ours {
        return Ok(Some(format!("database {name} is not the one that the lab created: left so")));
    }
    session.query(&format!("DROP DATABASE {name}"))?;
    Ok(Some(format!("database {name} dropped")))
}

fn end_process(pid: u32, started: u64) {
    if start_of(pid) == Some(started)
        && let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw)
    {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// When a process started, in ticks since the machine's start; `None` when it is gone.
fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold blanks. The state is field 3, the start field 22.
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// What distinguishes a server from another one: MySQL's UUID, or for MariaDB what comes nearest.
fn identity(session: &mut Session) -> anyhow::Result<String> {
    let sql = if session.is_mariadb() {
        "SELECT CONCAT_WS(' ', @@GLOBAL.server_id, @@GLOBAL.hostname, @@GLOBAL.port, @@GLOBAL.datadir)"
    } else {
        "SELECT @@GLOBAL.server_uuid"
    };
    Ok(session.query(sql)?.first().context("the server does not say who it is")?.to_owned())
}

/// A global variable as SHOW GLOBAL VARIABLES prints it; `None` when the server has none of that name.
///
/// # Errors
/// When the server does not answer.
pub fn variable(session: &mut Session, name: &str) -> anyhow::Result<Option<String>> {
    let rows = session.query(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name = '{name}'"))?;
    Ok(rows.get(0, "Value").map(str::to_owned))
}

/// Whether two texts are the same value of a variable.
pub fn same(one: &str, other: &str) -> bool {
    let plain = |text: &str| match text.to_ascii_uppercase().as_str() {
        "ON" => "1".to_owned(),
        "OFF" => "0".to_owned(),
        text => text.to_owned(),
    };
    plain(one) == plain(other)
}

/// The statement that gives a global variable a value as SHOW GLOBAL VARIABLES prints it.
///
/// # Errors
/// When the name is none of a variable.
pub fn set_statement(name: &str, value: &str) -> anyhow::Result<String> {
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    ensure!(is_name, "{name:?} is no name of a variable");
    // A number in quotes would be refused.
    if value.parse::<f64>().is_ok_and(f64::is_finite) {
        return Ok(format!("SET GLOBAL {name} = {value}"));
    }
    Ok(format!("SET GLOBAL {name} = {}", quoted(value)))
}

/// A text as a literal of a statement.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Databases but the server's own.
///
/// # Errors
/// When the server does not answer.
pub fn databases(session: &mut Session) -> anyhow::Result<Vec<String>> {
    let rows = session.query("SHOW DATABASES")?;
    let names = (0..rows.rows.len()).filter_map(|row| rows.get(row, "Database"));
    let own = ["information_schema", "mysql", "performance_schema", "sys"];
    Ok(names.filter(|name| !own.contains(&name.to_ascii_lowercase().as_str())).map(str::to_owned).collect())
}

fn has_database(session: &mut Session, name: &str) -> anyhow::Result<bool> {
    Ok(databases(session)?.iter().any(|database| database == name))
}

fn has_table(session: &mut Session, database: &str, table: &str) -> anyhow::Result<bool> {
    let rows = session.query(&format!(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{database}' AND table_name = '{table}'"
    ))?;
    Ok(rows.first() != Some("0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_the_server_wants_them() {
        assert_eq!(set_statement("sync_binlog", "0").unwrap(), "SET GLOBAL sync_binlog = 0");
        assert_eq!(set_statement("a", "AFTER_SYNC").unwrap(), "SET GLOBAL a = 'AFTER_SYNC'");
        assert_eq!(set_statement("a", "it's \\").unwrap(), r"SET GLOBAL a = 'it''s \\'");
        assert!(set_statement("a = 1, b", "0").is_err());
        assert!(same("ON", "1") && same("off", "0") && !same("10", "1"));
    }

    #[test]
    fn only_the_process_that_was_noted_is_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let started = start_of(child.id()).unwrap();
        end_process(child.id(), started + 1);
        assert!(child.try_wait().unwrap().is_none(), "another process with that number");
        end_process(child.id(), started);
        assert!(!child.wait().unwrap().success());
        assert_eq!(start_of(child.id()), None);
    }
}
