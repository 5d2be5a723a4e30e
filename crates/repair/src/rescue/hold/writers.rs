//! Who else can write to the target: whoever can may take a GTID that is about to be handed over.

use codec::ServerKind;
use codec::packet::{ResultSet, printable, release};
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::str::FromStr;
use wire::{Connection, WireError};

/// Something that can write, and how to keep it from that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// What it is, by name.
    pub what: String,
    /// The statement that stops it, or what else to do.
    pub stop: String,
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n    {}", self.what, self.stop)
    }
}

/// The rights that let an account write in spite of `read_only`. With MariaDB SUPER did so before 10.11.
const RIGHTS_MYSQL: [&str; 2] = ["SUPER", "CONNECTION_ADMIN"];
const RIGHTS_MARIADB: [&str; 3] = ["SUPER", "READ_ONLY ADMIN", "READ ONLY ADMIN"];

/// `ER_NO_SUCH_TABLE`.
const ER_NO_SUCH_TABLE: u16 = 1146;

/// Looks at a server with the session of the rescue.
pub struct Watch<'a> {
    pub(in crate::rescue) connection: &'a mut Connection,
    pub(in crate::rescue) kind: ServerKind,
}

impl<'a> Watch<'a> {
    /// Looks by that connection at a server of that kind.
    pub fn of(connection: &'a mut Connection, kind: ServerKind) -> Watch<'a> {
        Watch { connection, kind }
    }
}

impl Watch<'_> {
    /// A global variable; `None` when the server has none of that name.
    pub(in crate::rescue) fn variable(&mut self, name: &str) -> Result<Option<String>, WireError> {
        let rows = self.connection.query(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
        Ok(rows.get(0, "Value").map(str::to_owned))
    }

    /// The answer, or `None` when the server refuses it, for want of a right or of the table.
    fn may_ask(&mut self, sql: &str) -> Result<Option<ResultSet>, WireError> {
        match self.connection.query(sql) {
            Ok(rows) => Ok(Some(rows)),
            Err(WireError::Server { .. } | WireError::AccessDenied { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replication and clusters through which other servers write to this one.
    pub fn replication(&mut self) -> Result<Vec<Writer>, WireError> {
        let mut writers = Vec::new();
        let statements: &[&str] = match self.kind {
            ServerKind::MySql => &["SHOW REPLICA STATUS", "SHOW SLAVE STATUS"],
            ServerKind::MariaDb => &["SHOW ALL SLAVES STATUS"],
        };
        let mut rows = None;
        for sql in statements {
            rows = self.may_ask(sql)?;
            if rows.is_some() {
                break;
            }
        }
        match rows {
            None => writers.push(Writer {
                what: "replication of the target's own, which the account may not look at".into(),
                stop: "GRANT REPLICATION CLIENT (MariaDB: SLAVE MONITOR) ON *.* TO the account".into(),
            }),
            Some(rows) => writers.extend((0..rows.rows.len()).filter_map(|row| channel(&rows, row))),
        }
        if self.kind == ServerKind::MySql {
            let sql = "SELECT MEMBER_HOST FROM performance_schema.replication_group_members WHERE MEMBER_STATE <> 'OFFLINE'";
            if self.may_ask(sql)?.is_some_and(|rows| !rows.rows.is_empty()) {
                let what = "group replication, whose other members write to the target".into();
                writers.push(Writer { what, stop: "STOP GROUP_REPLICATION;".into() });
            }
        }
        let galera = self.may_ask("SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'")?;
        let size = galera.as_ref().and_then(|rows| rows.get(0, "Value"));
        // A size that is no number is not that of a server by itself.
        if let Some(size) = size.filter(|size| size.parse::<u64>().map_or(true, |nodes| nodes > 1)) {
            let size = printable(size.as_bytes(), 32);
            let what = format!(
                "a Galera cluster, whose other nodes write to the target (wsrep_cluster_size is {size:?})"
            );
            writers.push(Writer { what, stop: "take the target out of the cluster first".into() });
        }
        Ok(writers)
    }

    /// XA transactions that are prepared and can be committed at any time, each with its name as statements write it.
    pub(in crate::rescue) fn prepared(&mut self) -> Result<Vec<(String, Writer)>, WireError> {
        let rows = match self.connection.query("XA RECOVER") {
            Ok(rows) => rows,
            Err(error @ (WireError::Server { .. } | WireError::AccessDenied { .. })) => {
                let what =
                    format!("XA transactions that may be prepared, which the account may not list: {error}");
                let stop = "GRANT XA_RECOVER_ADMIN ON *.* TO the account".into();
                return Ok(vec![(String::new(), Writer { what, stop })]);
            }
            Err(error) => return Err(error),
        };
        let mut writers = Vec::new();
        for row in 0..rows.rows.len() {
            let number = |name| number::<usize>("XA RECOVER", name, rows.get(row, name));
            let (format, global_len) = (number("formatID")?, number("gtrid_length")?);
            // The name may be no text, so it is taken as bytes.
            let position = rows.columns.iter().position(|column| column.eq_ignore_ascii_case("data"));
            let data = position.and_then(|at| rows.rows[row].get(at)?.clone()).unwrap_or_default();
            let (global, branch) = data.split_at(global_len.min(data.len()));
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let name = format!("X'{}',X'{}',{format}", hex(global), hex(branch));
            let writer = Writer {
                what: format!(
                    "the XA transaction {} ({name}), which is prepared: it holds locks, and its end takes a GTID",
                    String::from_utf8_lossy(&data)
                ),
                stop: format!("XA COMMIT {name}; or XA ROLLBACK {name};"),
            };
            writers.push((name, writer));
        }
        Ok(writers)
    }

    /// Whether the event scheduler is on.
    pub(crate) fn runs_events(&mut self) -> Result<bool, WireError> {
        Ok(self.variable("event_scheduler")?.is_some_and(|value| value == "ON" || value == "1"))
    }

    /// Names of the events that would run.
    pub(crate) fn enabled_events(&mut self) -> Result<Vec<String>, WireError> {
        let sql = "SELECT EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS WHERE STATUS = 'ENABLED' ORDER BY 1, 2";
        let rows = self.may_ask(sql)?.unwrap_or_default();
        let name = |row| {
            // An event whose name cannot be read runs as any other.
            let text = |column| rows.get(row, column).unwrap_or("?");
            format!("{}.{}", text("EVENT_SCHEMA"), text("EVENT_NAME"))
        };
        Ok((0..rows.rows.len()).map(name).collect())
    }

    /// Events that run at this moment. Switching the scheduler off does not end them.
    pub(in crate::rescue) fn running_events(&mut self) -> Result<Vec<Writer>, WireError> {
        let sessions = self.processes()?;
        let running = sessions.iter().filter(|session| session.is_event_worker());
        Ok(running.map(|session| session.writer("an event that runs")).collect())
    }

    /// Sessions that may write although the server is `read_only`.
    pub(in crate::rescue) fn sessions(&mut self) -> Result<Vec<Writer>, WireError> {
        let own = u64::from(self.connection.connection_id());
        let may_see_all = self.own_rights()?.contains("PROCESS");
        let users = self.users_with_rights()?;
        let receivers = self.receivers()?;
        let sessions = self.processes()?;
        let dumps: HashSet<(&str, &str)> = sessions
            .iter()
            .filter(|session| session.is_dump())
            .map(|session| (&*session.user, session.address()))
            .collect();
        let mut writers = Vec::new();
        for session in &sessions {
            let is_server = session.is_dump()
                || matches!(&*session.user, "system user" | "event_scheduler" | "unauthenticated user" | "")
                || matches!(&*session.command, "Daemon" | "Slave_IO" | "Slave_SQL" | "Slave_worker")
                || session.is_event_worker();
            // A replica's second session, by which it watches its source. It never has a schema.
            let is_receiver = match &receivers {
                Some(ids) => ids.contains(&session.id),
                None => {
                    session.command == "Sleep"
                        && session.schema.is_empty()
                        && dumps.contains(&(&*session.user, session.address()))
                }
            };
            if session.id == own || is_server || is_receiver {
                continue;
            }
            match &users {
                Some(users) if !users.contains(&session.user) => {}
                Some(_) => writers.push(session.writer("a session that may write in spite of read_only")),
                None => writers.push(session.writer("a session whose rights the account may not look at")),
            }
        }
        if !may_see_all {
            writers.push(Writer {
                what: "sessions of others, which the account may not look at".into(),
                stop: "GRANT PROCESS ON *.* TO the account".into(),
            });
        }
        Ok(writers)
    }

    /// binlogd's own sessions say who they are where the server keeps what clients say.
    fn receivers(&mut self) -> Result<Option<HashSet<u64>>, WireError> {
        let sql = "SELECT PROCESSLIST_ID FROM performance_schema.session_connect_attrs WHERE ATTR_NAME = 'program_name' AND \
                   ATTR_VALUE = 'binlogd'";
        let Some(rows) = self.may_ask(sql)? else { return Ok(None) };
        if rows.rows.is_empty() {
            return Ok(None); // Our own session is not among them: nothing is kept.
        }
        // A session whose number cannot be read counts as somebody else's.
        let id = |row| rows.get(row, "PROCESSLIST_ID")?.parse().ok();
        Ok(Some((0..rows.rows.len()).filter_map(id).collect()))
    }

    /// Global rights of the account, its active roles' among them.
    fn own_rights(&mut self) -> Result<BTreeSet<String>, WireError> {
        let mut rights = BTreeSet::new();
        let grants = self.may_ask("SHOW GRANTS")?.unwrap_or_default();
        for row in &grants.rows {
            let text = row.first().and_then(|cell| cell.as_deref()).unwrap_or_default();
            let text = String::from_utf8_lossy(text).to_uppercase();
            if let Some((list, _)) =
                text.strip_prefix("GRANT ").and_then(|rest| rest.split_once(" ON *.* TO "))
            {
                rights.extend(list.split(',').map(|right| right.trim().to_owned()));
            }
        }
        if rights.contains("ALL PRIVILEGES") {
            rights.extend(["PROCESS", "SUPER", "CONNECTION_ADMIN", "READ_ONLY ADMIN"].map(str::to_owned));
        }
        Ok(rights)
    }

    /// Whether the rescue's own session can go on writing when the server is `read_only`.
    pub(in crate::rescue) fn may_write_read_only(&mut self) -> Result<bool, WireError> {
        let rights = self.own_rights()?;
        Ok(self.rights().iter().any(|right| rights.contains(*right)))
    }

    fn rights(&self) -> &'static [&'static str] {
        rights(self.kind, self.connection.server_version())
    }

    /// Names of users of which an account may write in spite of `read_only`, by itself or by a role. A session tells its user
    /// and the client's address, not which account of that name it is, so each account of a name counts. `None` when the rights
    /// of others are hidden.
    fn users_with_rights(&mut self) -> Result<Option<HashSet<String>>, WireError> {
        if self.may_ask("SELECT User FROM mysql.user LIMIT 0")?.is_none() {
            return Ok(None);
        }
        let list = self.rights().iter().map(|right| format!("'{right}'")).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT GRANTEE FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE IN ({list})"
        );
        let rows = self.connection.query(&sql)?;
        let user = |text: &str| {
            let text = text.strip_prefix('\'').unwrap_or(text);
            text.rsplit_once("'@'").map_or(text.trim_end_matches('\''), |(user, _)| user).to_owned()
        };
        let mut users: HashSet<String> =
            (0..rows.rows.len()).filter_map(|row| rows.get(row, "GRANTEE")).map(user).collect();
        let edges = match self.kind {
            ServerKind::MySql => "SELECT FROM_USER AS role, TO_USER AS user FROM mysql.role_edges",
            ServerKind::MariaDb => "SELECT Role AS role, User AS user FROM mysql.roles_mapping",
        };
        let edges = match self.connection.query(edges) {
            Ok(rows) => rows,
            Err(WireError::Server { code: ER_NO_SUCH_TABLE, .. }) => ResultSet::default(), // MySQL 5.7 has no roles.
            // Roles that are hidden are not roles that there are none of.
            Err(WireError::Server { .. } | WireError::AccessDenied { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        // A role may have another one.
        loop {
            let before = users.len();
            for row in 0..edges.rows.len() {
                if let (Some(role), Some(user)) = (edges.get(row, "role"), edges.get(row, "user"))
                    && users.contains(role)
                {
                    users.insert(user.to_owned());
                }
            }
            if users.len() == before {
                return Ok(Some(users));
            }
        }
    }

    fn processes(&mut self) -> Result<Vec<Session>, WireError> {
        let rows = self.connection.query("SHOW FULL PROCESSLIST")?;
        let session = |row| {
            let text = |name| rows.get(row, name).unwrap_or_default().to_owned();
            Ok(Session {
                id: number("SHOW FULL PROCESSLIST", "Id", rows.get(row, "Id"))?,
                user: text("User"),
                host: text("Host"),
                schema: text("db"),
                command: text("Command"),
                seconds: text("Time"),
                statement: text("Info"),
            })
        };
        (0..rows.rows.len()).map(session).collect()
    }
}

fn rights(kind: ServerKind, version: &str) -> &'static [&'static str] {
    match kind {
        ServerKind::MySql => &RIGHTS_MYSQL,
        ServerKind::MariaDb if release(version).is_none_or(|release| release >= (10, 11, 0)) => {
            &RIGHTS_MARIADB[1..]
        }
        ServerKind::MariaDb => &RIGHTS_MARIADB,
    }
}

/// A number of a server's answer to `sql`. What is no number is not 0, which would name something else.
fn number<N: FromStr>(sql: &'static str, column: &str, text: Option<&str>) -> Result<N, WireError> {
    let shown = text.map(|text| printable(text.as_bytes(), 64));
    text.and_then(|text| text.parse().ok()).ok_or_else(|| WireError::Protocol {
        during: "asking who else writes to the target",
        what: format!("{column} of {sql} is {shown:?}, not a number"),
    })
}

/// A line of SHOW PROCESSLIST.
struct Session {
    id: u64,
    user: String,
    host: String,
    schema: String,
    command: String,
    seconds: String,
    statement: String,
}

impl Session {
    fn is_dump(&self) -> bool {
        self.command.starts_with("Binlog Dump")
    }

    fn address(&self) -> &str {
        self.host.rsplit_once(':').map_or(&self.host, |(address, _)| address)
    }

    /// A worker is shown as a session of the event's definer that is about to connect.
    fn is_event_worker(&self) -> bool {
        self.command == "Connect" && !matches!(&*self.user, "system user" | "unauthenticated user")
    }

    fn writer(&self, what: &str) -> Writer {
        let Session { id, user, host, command, seconds, .. } = self;
        let statement = crate::rescue::statements::beginning(self.statement.as_bytes());
        let doing = if statement.is_empty() { String::new() } else { format!(": {statement}") };
        let at = if host.is_empty() { String::new() } else { format!("@{host}") };
        Writer {
            what: format!("{what}: {id}, {user}{at} ({command} for {seconds} s{doing})"),
            stop: format!("KILL {id};"),
        }
    }
}

/// A channel that receives or applies, or of which that cannot be read.
fn channel(rows: &ResultSet, row: usize) -> Option<Writer> {
    let text = |names: [&str; 2]| names.iter().find_map(|name| rows.get(row, name)).unwrap_or_default();
    let receives = text(["Replica_IO_Running", "Slave_IO_Running"]);
    let applies = text(["Replica_SQL_Running", "Slave_SQL_Running"]);
    if receives == "No" && applies == "No" {
        return None;
    }
    let host = text(["Source_Host", "Master_Host"]);
    let (name, statement) = match (rows.get(row, "Channel_Name"), rows.get(row, "Connection_name")) {
        (Some(name), _) if !name.is_empty() => (name, format!("STOP REPLICA FOR CHANNEL '{name}';")),
        (Some(_), _) => ("", "STOP REPLICA;".to_owned()),
        (_, Some(name)) if !name.is_empty() => (name, format!("STOP SLAVE '{name}';")),
        _ => ("", "STOP SLAVE;".to_owned()),
    };
    let named = if name.is_empty() { String::new() } else { format!(" (channel {name})") };
    Some(Writer {
        what: format!("replication from {host}{named}: receiving {receives}, applying {applies}"),
        stop: statement,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_those_of_the_version() {
        for version in ["11.8.3-MariaDB", "12.1.2-MariaDB", "10.11.0-MariaDB-log", "x"] {
            assert!(!rights(ServerKind::MariaDb, version).contains(&"SUPER"), "{version}");
        }
        assert!(rights(ServerKind::MariaDb, "10.6.22-MariaDB").contains(&"SUPER"));
        for version in ["5.7.22", "8.0.36-28", "26.7.0", "28.4.1-lts"] {
            assert_eq!(rights(ServerKind::MySql, version), RIGHTS_MYSQL, "{version}");
        }
    }

    #[test]
    fn a_number_that_cannot_be_read_is_not_zero() {
        assert_eq!(number::<u64>("SHOW FULL PROCESSLIST", "Id", Some("7")).unwrap(), 7);
        for (text, words) in
            [(None, "Id of SHOW FULL PROCESSLIST is None"), (Some("-1"), "is Some(\"-1\"), not a number")]
        {
            let error = number::<u64>("SHOW FULL PROCESSLIST", "Id", text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
