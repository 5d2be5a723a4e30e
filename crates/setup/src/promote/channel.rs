//! One channel of a server's replication.

use codec::gtid::GtidState;
use codec::packet::ResultSet;

/// Name of the channel by which a successor is fed from a node. MySQL folds such names to small letters.
pub(super) const CHANNEL: &str = "binlogd_promote";

/// One channel of a server's replication, as SHOW REPLICA STATUS tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Channel {
    pub(super) name: String,
    pub(super) receives: bool,
    pub(super) applies: bool,
    /// `host:port` from which it receives.
    pub(super) source: String,
    /// That server, as timelines name it; empty where it was never reached.
    pub(super) source_uuid: String,
    /// What it passes over or takes for something else: each `Replicate_…` that is set.
    pub(super) filters: Vec<(String, String)>,
    /// Seconds that it stays behind on purpose.
    pub(super) delay: u64,
    /// It asks for what it lacks by GTID.
    pub(super) by_gtid: bool,
    /// It has applied all that was received.
    pub(super) is_idle: bool,
    /// Why it does not receive, or does not apply.
    pub(super) error: Option<String>,
}

impl Channel {
    /// All of an answer to SHOW REPLICA STATUS, under the words of any version.
    pub(super) fn all(rows: &ResultSet, is_mariadb: bool) -> Vec<Channel> {
        (0..rows.rows.len()).map(|row| Channel::of(rows, row, is_mariadb)).collect()
    }

    fn of(rows: &ResultSet, row: usize, is_mariadb: bool) -> Channel {
        let text = |names: &[&str]| {
            let found = names.iter().find_map(|name| rows.get(row, name));
            found.unwrap_or_default().to_owned()
        };
        let is_filter = |name: &&String| name.to_ascii_lowercase().starts_with("replicate_");
        let filters = rows.columns.iter().filter(is_filter);
        let filters =
            filters.map(|name| (name.clone(), text(&[name]))).filter(|(_, value)| !value.is_empty());
        let source_uuid = match is_mariadb {
            false => text(&["Source_UUID", "Master_UUID"]),
            true => match text(&["Master_Server_Id"]) {
                never if never.is_empty() || never == "0" => String::new(),
                id => format!("mariadb-{id}"),
            },
        };
        Channel {
            name: text(&["Channel_Name", "Connection_name"]),
            receives: text(&["Replica_IO_Running", "Slave_IO_Running"]) == "Yes",
            applies: text(&["Replica_SQL_Running", "Slave_SQL_Running"]) == "Yes",
            source: format!(
                "{}:{}",
                text(&["Source_Host", "Master_Host"]),
                text(&["Source_Port", "Master_Port"])
            ),
            source_uuid,
            filters: filters.collect(),
            delay: text(&["SQL_Delay"]).parse().unwrap_or(0),
            by_gtid: match is_mariadb {
                true => !matches!(text(&["Using_Gtid"]).as_str(), "" | "No"),
                false => text(&["Auto_Position"]) == "1",
            },
            is_idle: text(&["Replica_SQL_Running_State", "Slave_SQL_Running_State"])
                .contains("has read all relay log"),
            error: ["Last_SQL_Error", "Last_IO_Error"]
                .into_iter()
                .filter_map(|name| rows.get(row, name))
                .find(|error| !error.is_empty())
                .map(str::to_owned),
        }
    }

    /// The server from which it receives, where that is none of `servers` and has written nothing of what is `held`.
    pub(super) fn of_elsewhere(&self, servers: &[String], held: &GtidState) -> Option<&str> {
        let is_known = self.source_uuid.is_empty()
            || servers.contains(&self.source_uuid)
            || match held {
                GtidState::Mysql(set) => set.iter().any(|(uuid, ..)| uuid.to_string() == self.source_uuid),
                GtidState::Mariadb(state) => {
                    state.list().any(|id| format!("mariadb-{}", id.server_id) == self.source_uuid)
                }
            };
        (!is_known).then_some(&self.source_uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::ServerKind;

    fn rows(columns: &[(&str, &str)]) -> ResultSet {
        ResultSet {
            columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            rows: vec![columns.iter().map(|(_, value)| Some(value.as_bytes().to_vec())).collect()],
        }
    }

    #[test]
    fn a_channel_is_read_in_the_words_of_each_server() {
        let mysql = rows(&[
            ("Source_Host", "db1"),
            ("Source_Port", "3306"),
            ("Replica_IO_Running", "Yes"),
            ("Replica_SQL_Running", "No"),
            ("Replicate_Do_DB", ""),
            ("Replicate_Wild_Ignore_Table", "tmp.%"),
            ("Source_UUID", "aaaaaaaa-0000-0000-0000-000000000001"),
            ("SQL_Delay", "60"),
            ("Channel_Name", ""),
        ]);
        let channel = &Channel::all(&mysql, false)[0];
        assert_eq!(
            (channel.source.as_str(), channel.receives, channel.applies, channel.delay),
            ("db1:3306", true, false, 60)
        );
        assert_eq!(channel.filters, [("Replicate_Wild_Ignore_Table".to_owned(), "tmp.%".to_owned())]);
        let mariadb = rows(&[
            ("Connection_name", "shop"),
            ("Master_Host", "db1"),
            ("Master_Port", "3306"),
            ("Slave_IO_Running", "Yes"),
            ("Slave_SQL_Running", "Yes"),
            ("Replicate_Do_Domain_Ids", "1"),
            ("Master_Server_Id", "7"),
            ("SQL_Delay", "0"),
        ]);
        let channel = &Channel::all(&mariadb, true)[0];
        assert_eq!((channel.name.as_str(), channel.source_uuid.as_str()), ("shop", "mariadb-7"));
        assert_eq!(channel.filters.len(), 1);
        let held = |text: &str| GtidState::parse(ServerKind::MariaDb, text).unwrap();
        assert_eq!(channel.of_elsewhere(&[], &held("0-7-5")), None, "it has written some of the history");
        assert_eq!(channel.of_elsewhere(&["mariadb-7".to_owned()], &held("0-1-5")), None);
        assert_eq!(channel.of_elsewhere(&["mariadb-1".to_owned()], &held("0-1-5")), Some("mariadb-7"));
    }
}
