//! Changing a user's server back: at the end of a run, on the way out of an error, or after a crash.

use super::address;
use super::journal::{Entry, Journal};
use super::sql::{
    BUFFER_POOL, MARKER, has_database, has_table, identity, same, set_statement, start_of, variable,
};
use anyhow::{bail, ensure};
use rig::server::Session;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::{Duration, Instant};
use wire::ConnectOptions;

/// Longest wait for one statement that undoes something: a large database takes a while to drop.
const UNDO_MAX: Duration = Duration::from_secs(600);
/// Longest wait until the source has noticed that receivers are gone, which a plugin's removal needs.
const UNINSTALL_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Changes back what runs that were killed have left changed, by their journals in the folder `dir`, and says what was
/// done, a line each. The password is that of the environment variable `BINLOGD_LAB_PASSWORD`, or none.
///
/// # Errors
/// When a journal or a server cannot be read, a server is another one than the journal's, or does not do what it must.
/// The other servers are restored nevertheless.
pub fn restore(dir: &Path) -> anyhow::Result<Vec<String>> {
    let (mut done, mut wrong) = (Vec::new(), Vec::new());
    for journal in Journal::left_behind(dir)? {
        let restored = journal.and_then(|journal| {
            let path = journal.path().display().to_string();
            restore_one(journal, &mut done).map_err(|error| error.context(path))
        });
        wrong.extend(restored.err().map(|error| format!("{error:#}")));
    }
    if !wrong.is_empty() {
        done.extend(wrong);
        bail!("not everything could be restored:\n{}", done.join("\n"));
    }
    Ok(done)
}

fn restore_one(journal: Journal, done: &mut Vec<String>) -> anyhow::Result<()> {
    match journal.entries().first() {
        // Killed before the first line was whole: nothing was changed.
        None => journal.remove(),
        // The URL holds no password: that of the environment is taken.
        Some(Entry::Server { url, .. }) => {
            let account = address::account(url)?;
            undo(journal, &account, done)
        }
        Some(_) => bail!("its first line names no server"),
    }
}

/// Changes back all that a journal holds, and removes it. A line for each thing that was done goes to `done`.
pub(super) fn undo(journal: Journal, account: &ConnectOptions, done: &mut Vec<String>) -> anyhow::Result<()> {
    // Nothing was changed, so the server need not be asked, nor be there.
    if let [Entry::Server { .. }] = journal.entries() {
        return journal.remove();
    }
    for entry in journal.entries() {
        if let Entry::Process { pid, started } = *entry {
            end_process(pid, started);
        }
    }
    let mut session = Session::connect(account)?;
    session.set_timeout(UNDO_MAX);
    let place = address::place(account);
    same_server(&journal, &mut session, &place)?;
    let mut wrong = Vec::new();
    let mut keep = |step: anyhow::Result<Option<String>>, wrong: &mut Vec<String>| match step {
        Ok(line) => done.extend(line.map(|line| format!("{place}: {line}"))),
        Err(error) => wrong.push(format!("{error:#}")),
    };
    let mut seen = Vec::new();
    for entry in journal.entries().iter().rev() {
        match entry {
            Entry::Variable { name, .. } if !seen.contains(&name) => {
                seen.push(name);
                keep(undo_variable(&mut session, &journal, name), &mut wrong);
            }
            Entry::Plugin { name } => keep(undo_plugin(&mut session, name), &mut wrong),
            _ => {}
        }
    }
    // The database is the sign, also for a lab elsewhere, that something is still changed: it goes last.
    for entry in journal.entries() {
        if let Entry::Database { name, token } = entry
            && wrong.is_empty()
        {
            keep(undo_database(&mut session, name, token), &mut wrong);
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    journal.remove()
}

fn same_server(journal: &Journal, session: &mut Session, place: &str) -> anyhow::Result<()> {
    let found = identity(session)?;
    let expected = journal.identity().unwrap_or("?");
    ensure!(
        expected == found,
        "the server at {place} is another one now ({found}, not {expected}): nothing was changed on it"
    );
    Ok(())
}

/// What is to become of a variable.
#[derive(Debug, PartialEq, Eq)]
struct Way<'a> {
    /// The value to go back to.
    old: &'a str,
    /// That is not the value from before the run: somebody has set it in the meantime.
    somebodys: bool,
    /// What it is if nobody has touched it since the lab did: the last value that the lab set, or the one before if the
    /// lab was killed before it set that.
    ours: [&'a str; 2],
}

/// Follows the changes (old, new) of one variable in order. A value that the lab finds and had not set is somebody's.
fn way<'a>(changes: &[(&'a str, &'a str)], alike: impl Fn(&str, &str) -> bool) -> Option<Way<'a>> {
    let ((first, _), (last, new)) = (changes.first()?, changes.last()?);
    let found = changes.windows(2).filter(|pair| !alike(pair[1].0, pair[0].1)).map(|pair| pair[1].0);
    let old = found.last().unwrap_or(first);
    Some(Way { old, somebodys: !alike(old, first), ours: [new, last] })
}

/// Sets a variable as it was before the lab's changes, unless somebody else has changed it since.
fn undo_variable(session: &mut Session, journal: &Journal, name: &str) -> anyhow::Result<Option<String>> {
    let changes = journal.entries().iter().filter_map(|entry| match entry {
        Entry::Variable { name: other, old, new } if other == name => Some((old.as_str(), new.as_str())),
        _ => None,
    });
    let changes: Vec<_> = changes.collect();
    let alike = if name == BUFFER_POOL { near } else { same };
    let Some(way) = way(&changes, alike) else { return Ok(None) };
    let line = match name {
        BUFFER_POOL => resize_back(session, &way)?,
        _ => set_back(session, name, &way)?,
    };
    let somebodys = format!("somebody changed {name} to {} during the run, which is kept", way.old);
    Ok(match line {
        Some(line) if way.somebodys => Some(format!("{line}; {somebodys}")),
        None if way.somebodys => Some(somebodys),
        line => line,
    })
}

fn set_back(session: &mut Session, name: &str, way: &Way<'_>) -> anyhow::Result<Option<String>> {
    let Some(now) = variable(session, name)? else { return Ok(None) };
    let old = way.old;
    if same(&now, old) {
        return Ok(None);
    }
    if !way.ours.iter().any(|ours| same(&now, ours)) {
        return Ok(Some(left(name, &now, old)));
    }
    session.query(&set_statement(name, old)?)?;
    Ok(Some(format!("{name} = {old} again, was {now}")))
}

/// Gives the buffer pool its old size, and waits until it has it. MySQL resizes in the background and shows the size from
/// before until that is done, so what is shown says nothing while one is on the way. Returns the size that it had; or
/// leaves it, when that is none of the lab's.
fn resize_back(session: &mut Session, way: &Way<'_>) -> anyhow::Result<Option<String>> {
    let deadline = Instant::now() + UNDO_MAX;
    let old = way.old;
    let (mut was, mut refused) = (None, String::new());
    loop {
        let status = session.query("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_resize_status'")?;
        let status = status.get(0, "Value").unwrap_or_default();
        if !is_resizing(status) {
            let now = variable(session, BUFFER_POOL)?.unwrap_or_default();
            if same(&now, old) {
                return Ok(was.map(|was| format!("{BUFFER_POOL} = {old} again, was {was}")));
            }
            if was.is_none() && !way.ours.iter().any(|size| near(&now, size)) {
                return Ok(Some(left(BUFFER_POOL, &now, old)));
            }
            was.get_or_insert(now);
            // It also refuses while it has not yet begun what it was told before.
            refused = session
                .query(&set_statement(BUFFER_POOL, old)?)
                .err()
                .map_or_else(String::new, |error| format!("{error:#}"));
        }
        ensure!(Instant::now() < deadline, "{BUFFER_POOL} does not become {old}: {status} {refused}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// By what the server says of it; nothing where it resizes at once.
fn is_resizing(status: &str) -> bool {
    let status = status.to_ascii_lowercase();
    let ended =
        ["completed", "size did not change", "not started"].iter().any(|word| status.starts_with(word));
    !status.is_empty() && !ended && !status.contains("failed")
}

/// A server may round a size, as much as a hundredth.
fn near(one: &str, other: &str) -> bool {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => (one / other - 1.0).abs() < 0.02,
        _ => false,
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_server_on_which_nothing_was_changed_need_not_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let server = |url: &str| Entry::Server { url: url.to_owned(), identity: "1-2".to_owned() };
        drop(Journal::begin(dir.path(), "127.0.0.1:1", server("mysql://dba@127.0.0.1:1")).unwrap());
        assert_eq!(restore(dir.path()).unwrap(), Vec::<String>::new());
        let mut journal =
            Journal::begin(dir.path(), "127.0.0.1:1", server("mysql://dba@127.0.0.1:1")).unwrap();
        journal.push(Entry::Plugin { name: "one".to_owned() }).unwrap();
        drop(journal);
        restore(dir.path()).unwrap_err();
        assert_eq!(Journal::left_behind(dir.path()).unwrap().len(), 1);
    }

    #[test]
    fn a_variable_goes_back_to_what_the_user_last_wanted() {
        let is = |changes: &[(&str, &str)], old: &str, somebodys: bool, ours: [&str; 2]| {
            assert_eq!(way(changes, same), Some(Way { old, somebodys, ours }), "{changes:?}");
        };
        is(&[("7", "0")], "7", false, ["0", "7"]);
        is(&[("7", "0"), ("0", "1")], "7", false, ["1", "0"]);
        // Rounded by the server, and set again.
        is(&[("9", "5000"), ("5000", "4096"), ("4096", "8192")], "9", false, ["8192", "4096"]);
        // Refused, so that it is still what it was.
        is(&[("ON", "2"), ("2", "1")], "ON", false, ["1", "2"]);
        // Somebody sets 5, and later even what the lab had set once.
        is(&[("7", "0"), ("5", "1")], "5", true, ["1", "5"]);
        is(&[("7", "0"), ("0", "1"), ("0", "1"), ("1", "3")], "0", true, ["3", "1"]);
        // And at last what it was before the run.
        is(&[("7", "0"), ("7", "1")], "7", false, ["1", "7"]);
        assert_eq!(way(&[], same), None);
        assert_eq!(way(&[("100", "200"), ("202", "300")], near).unwrap().old, "100");
    }

    #[test]
    fn a_resize_that_failed_has_ended() {
        for ended in [
            "",
            "not started",
            "Completed resizing buffer pool at 261122  4:00:00.",
            "Size did not change (old size = new size. Nothing to do.)",
            "Resizing buffer pool failed, finished resizing at 261122  4:00:00.",
        ] {
            assert!(!is_resizing(ended), "{ended}");
        }
        for going_on in [
            "Withdrawing blocks. (10/20)",
            "Resizing also other hash tables.",
            "Latching whole of buffer pool.",
        ] {
            assert!(is_resizing(going_on), "{going_on}");
        }
    }
}
