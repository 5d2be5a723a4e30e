//! The target's replication for the time of a restore, in the target's own words.

use codec::gtid::GtidState;
use codec::packet::{ResultSet, release};
use codec::{Position, ServerKind};
use std::time::Duration;

/// Name of the channel (MySQL), of the connection (MariaDB). One that has it was left by a restore that was ended.
pub(in crate::restore) const CHANNEL: &str = "binlogd_restore";

/// From this version on MySQL says SOURCE and REPLICA.
const SAYS_SOURCE_FROM: (u32, u32, u32) = (8, 0, 23);

/// The statements for one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::restore) enum Words {
    /// CHANGE REPLICATION SOURCE TO … FOR CHANNEL.
    Source,
    /// CHANGE MASTER TO … FOR CHANNEL.
    Master,
    /// CHANGE MASTER 'connection' TO ….
    Mariadb,
}

/// Where the target reads, and as whom.
pub(in crate::restore) struct From<'a> {
    pub(in crate::restore) host: &'a str,
    pub(in crate::restore) port: u16,
    pub(in crate::restore) user: &'a str,
    pub(in crate::restore) password: &'a str,
    pub(in crate::restore) is_encrypted: bool,
    /// From where on; `None` where the target's GTIDs say that.
    pub(in crate::restore) at: Option<&'a Position>,
}

/// How the replication stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::restore) struct State {
    /// Receiving: `Yes`, `No` or `Connecting`.
    pub(in crate::restore) receives: String,
    /// Applying: `Yes` or `No`.
    pub(in crate::restore) applies: String,
    /// Everything that was received was given to the threads that apply.
    pub(in crate::restore) is_idle: bool,
    /// Why it does not receive.
    pub(in crate::restore) receive_error: String,
    /// Why it does not apply.
    pub(in crate::restore) apply_error: String,
    /// Everything up to there is applied, in the source's files. Several threads that apply are past it.
    pub(in crate::restore) applied: Option<Position>,
}

impl Words {
    pub(in crate::restore) fn of(kind: ServerKind, version: &str) -> Words {
        match kind {
            ServerKind::MariaDb => Words::Mariadb,
            ServerKind::MySql if release(version).is_some_and(|found| found >= SAYS_SOURCE_FROM) => {
                Words::Source
            }
            ServerKind::MySql => Words::Master,
        }
    }

    /// Points the target at us.
    pub(in crate::restore) fn change(self, from: &From<'_>) -> String {
        let From { host, port, user, password, is_encrypted, at } = from;
        let ssl = u8::from(*is_encrypted);
        let text = |word: &str| word.replace('\\', "\\\\").replace('\'', "''");
        let host = text(host);
        let common = |word: &str| {
            format!(
                "{word}_HOST = '{host}', {word}_PORT = {port}, {word}_USER = '{user}', {word}_PASSWORD = '{password}', \
                 {word}_CONNECT_RETRY = 1, {word}_HEARTBEAT_PERIOD = 1, {word}_SSL = {ssl}, {word}_DELAY = 0, IGNORE_SERVER_IDS = ()"
            )
        };
        let place = |word: &str| match at {
            None => format!("{word}_AUTO_POSITION = 1"),
            Some(Position { file, offset }) => format!(
                "{word}_AUTO_POSITION = 0, {word}_LOG_FILE = '{}', {word}_LOG_POS = {offset}",
                text(file)
            ),
        };
        match self {
            Words::Source => format!(
                "CHANGE REPLICATION SOURCE TO {}, {} FOR CHANNEL '{CHANNEL}'",
                common("SOURCE"),
                place("SOURCE")
            ),
            Words::Master => {
                format!("CHANGE MASTER TO {}, {} FOR CHANNEL '{CHANNEL}'", common("MASTER"), place("MASTER"))
            }
            // The certificate is our own, and the password known to the two of us alone.
            Words::Mariadb => format!(
                "CHANGE MASTER '{CHANNEL}' TO {}, MASTER_SSL_VERIFY_SERVER_CERT = 0, MASTER_USE_GTID = slave_pos, \
                 DO_DOMAIN_IDS = (), IGNORE_DOMAIN_IDS = ()",
                common("MASTER")
            ),
        }
    }

    pub(in crate::restore) fn start(self) -> String {
        self.act("START")
    }

    pub(in crate::restore) fn stop(self) -> String {
        self.act("STOP")
    }

    fn act(self, verb: &str) -> String {
        match self {
            Words::Source => format!("{verb} REPLICA FOR CHANNEL '{CHANNEL}'"),
            Words::Master => format!("{verb} SLAVE FOR CHANNEL '{CHANNEL}'"),
            Words::Mariadb => format!("{verb} SLAVE '{CHANNEL}'"),
        }
    }

    /// Lets threads that were stopped in the middle do what stands before the furthest of them, and nothing else; before that MySQL's
    /// position is an older one than the last that was applied. MariaDB has no such statement, and is not restored by positions.
    pub(in crate::restore) fn fill_gaps(self) -> String {
        match self {
            Words::Source => {
                format!("START REPLICA SQL_THREAD UNTIL SQL_AFTER_MTS_GAPS FOR CHANNEL '{CHANNEL}'")
            }
            Words::Master | Words::Mariadb => {
                format!("START SLAVE SQL_THREAD UNTIL SQL_AFTER_MTS_GAPS FOR CHANNEL '{CHANNEL}'")
            }
        }
    }

    /// Forgets the channel.
    pub(in crate::restore) fn reset(self) -> String {
        match self {
            Words::Source => format!("RESET REPLICA ALL FOR CHANNEL '{CHANNEL}'"),
            Words::Master => format!("RESET SLAVE ALL FOR CHANNEL '{CHANNEL}'"),
            Words::Mariadb => format!("RESET SLAVE '{CHANNEL}' ALL"),
        }
    }

    /// Answers when the server has executed these, or after that time; `None` where it takes no fraction of a second.
    pub(in crate::restore) fn wait(self, gtids: &GtidState, at_most: Duration) -> Option<String> {
        let (gtids, seconds) = (gtids.to_line(), at_most.as_secs_f64());
        match self {
            Words::Source => Some(format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', {seconds:.3})")),
            Words::Master => None,
            Words::Mariadb => Some(format!("SELECT MASTER_GTID_WAIT('{gtids}', {seconds:.3})")),
        }
    }

    /// Asks for all channels.
    pub(in crate::restore) fn status(self) -> &'static str {
        match self {
            Words::Source => "SHOW REPLICA STATUS",
            Words::Master => "SHOW SLAVE STATUS",
            Words::Mariadb => "SHOW ALL SLAVES STATUS",
        }
    }

    /// What our channel passes over or renames, by the column that says so: `Replicate_Do_DB`, `Replicate_Ignore_Server_Ids` and so on.
    pub(in crate::restore) fn filters(self, rows: &ResultSet) -> Vec<(String, String)> {
        let column = if self == Words::Mariadb { "Connection_name" } else { "Channel_Name" };
        let Some(row) = (0..rows.rows.len()).find(|row| rows.get(*row, column) == Some(CHANNEL)) else {
            return Vec::new();
        };
        let of = |name: &String| rows.get(row, name).filter(|value| !value.is_empty()).map(str::to_owned);
        let names = rows.columns.iter().filter(|name| name.starts_with("Replicate_"));
        names.filter_map(|name| Some((name.clone(), of(name)?))).collect()
    }

    /// Takes these from our channel, and from no other one. MySQL before 8.0 has filters of all channels only, which stay.
    pub(in crate::restore) fn unfilter(self, filters: &[(String, String)]) -> Vec<String> {
        let of_mariadb = |name: &String| format!("SET GLOBAL {CHANNEL}.{} = ''", name.to_lowercase());
        let of_mysql = |name: &String| {
            format!("CHANGE REPLICATION FILTER {} = () FOR CHANNEL '{CHANNEL}'", name.to_uppercase())
        };
        let names = filters.iter().map(|(name, _)| name);
        match self {
            Words::Mariadb => names.map(of_mariadb).collect(),
            Words::Source | Words::Master => names.map(of_mysql).collect(),
        }
    }

    /// Our channel, in the answer to [`status`](Self::status); `None` where there is none.
    pub(in crate::restore) fn state(self, rows: &ResultSet) -> Option<State> {
        let column = if self == Words::Mariadb { "Connection_name" } else { "Channel_Name" };
        let row = (0..rows.rows.len()).find(|row| rows.get(*row, column) == Some(CHANNEL))?;
        let of = |names: [&str; 2]| {
            let found = names.iter().find_map(|name| rows.get(row, name));
            found.unwrap_or_default().to_owned()
        };
        Some(State {
            receives: of(["Replica_IO_Running", "Slave_IO_Running"]),
            applies: of(["Replica_SQL_Running", "Slave_SQL_Running"]),
            is_idle: of(["Replica_SQL_Running_State", "Slave_SQL_Running_State"])
                .contains("has read all relay log"),
            receive_error: of(["Last_IO_Error", "Last_IO_Error"]),
            apply_error: of(["Last_SQL_Error", "Last_SQL_Error"]),
            applied: of(["Exec_Source_Log_Pos", "Exec_Master_Log_Pos"])
                .parse()
                .ok()
                .map(|offset| Position::new(of(["Relay_Source_Log_File", "Relay_Master_Log_File"]), offset))
                .filter(|at| !at.file.is_empty()),
        })
    }

    /// The variable that says how many threads apply.
    pub(in crate::restore) fn workers(self) -> &'static str {
        match self {
            Words::Source => "replica_parallel_workers",
            Words::Master => "slave_parallel_workers",
            Words::Mariadb => "slave_parallel_threads",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_is_spoken_to_in_its_words() {
        let words = |kind, version| Words::of(kind, version);
        assert_eq!(words(ServerKind::MySql, "9.7.0"), Words::Source);
        assert_eq!(words(ServerKind::MySql, "8.0.23"), Words::Source);
        assert_eq!(words(ServerKind::MySql, "8.0.15"), Words::Master);
        assert_eq!(words(ServerKind::MySql, "26.7.1"), Words::Source);
        assert_eq!(words(ServerKind::MariaDb, "11.8.3-MariaDB"), Words::Mariadb);
        let from =
            From { host: "10.0.0.1", port: 4000, user: "u", password: "p", is_encrypted: true, at: None };
        assert_eq!(
            Words::Mariadb.change(&from),
            "CHANGE MASTER 'binlogd_restore' TO MASTER_HOST = '10.0.0.1', MASTER_PORT = 4000, MASTER_USER = 'u', MASTER_PASSWORD = \
             'p', MASTER_CONNECT_RETRY = 1, MASTER_HEARTBEAT_PERIOD = 1, MASTER_SSL = 1, MASTER_DELAY = 0, IGNORE_SERVER_IDS = (), \
             MASTER_SSL_VERIFY_SERVER_CERT = 0, MASTER_USE_GTID = slave_pos, DO_DOMAIN_IDS = (), IGNORE_DOMAIN_IDS = ()"
        );
        assert!(
            Words::Source.change(&from).ends_with("SOURCE_AUTO_POSITION = 1 FOR CHANNEL 'binlogd_restore'")
        );
        let at = Position::new("mysql-bin.000002", 1234);
        let by_position = From { at: Some(&at), ..from };
        let end = "SOURCE_AUTO_POSITION = 0, SOURCE_LOG_FILE = 'mysql-bin.000002', SOURCE_LOG_POS = 1234 FOR CHANNEL 'binlogd_restore'";
        assert!(Words::Source.change(&by_position).ends_with(end));
        assert_eq!(Words::Master.start(), "START SLAVE FOR CHANNEL 'binlogd_restore'");
        assert_eq!(Words::Mariadb.stop(), "STOP SLAVE 'binlogd_restore'");
        let gtids = GtidState::parse(ServerKind::MariaDb, "0-1-7").unwrap();
        let waits = Words::Mariadb.wait(&gtids, Duration::from_millis(200)).unwrap();
        assert_eq!(waits, "SELECT MASTER_GTID_WAIT('0-1-7', 0.200)");
        assert_eq!(Words::Source.reset(), "RESET REPLICA ALL FOR CHANNEL 'binlogd_restore'");
    }

    #[test]
    fn our_channel_is_found_among_others() {
        let cell = |text: &str| Some(text.as_bytes().to_vec());
        let rows = ResultSet {
            columns: [
                "Channel_Name",
                "Replica_IO_Running",
                "Replica_SQL_Running",
                "Last_IO_Error",
                "Last_SQL_Error",
                "Relay_Source_Log_File",
                "Exec_Source_Log_Pos",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: vec![
                vec![cell(""), cell("Yes"), cell("Yes"), cell(""), cell(""), cell("a.1"), cell("4")],
                vec![
                    cell(CHANNEL),
                    cell("Connecting"),
                    cell("No"),
                    cell("refused"),
                    cell("duplicate"),
                    cell("mysql-bin.000002"),
                    cell("1234"),
                ],
            ],
        };
        let state = Words::Source.state(&rows).unwrap();
        assert_eq!((state.receives.as_str(), state.applies.as_str()), ("Connecting", "No"));
        assert_eq!((state.receive_error.as_str(), state.apply_error.as_str()), ("refused", "duplicate"));
        assert_eq!(state.applied, Some(Position::new("mysql-bin.000002", 1234)));
        assert_eq!(Words::Source.state(&ResultSet { rows: rows.rows[..1].to_vec(), ..rows.clone() }), None);
    }
}
