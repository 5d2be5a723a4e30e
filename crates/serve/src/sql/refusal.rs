//! Statements that are understood well enough to say why binlogd does not do them.

/// Why a statement is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It reads a table, or asks about one.
    Tables,
    /// It changes data, definitions or accounts.
    Change(String),
    /// A snapshot for a reader of changes, or locks for one.
    Snapshot,
    /// FLUSH.
    Flush,
    /// RESET.
    Reset,
    /// CHANGE REPLICATION SOURCE and the like.
    ChangeSource,
    /// START REPLICA with a place at which to stop, or of the applier alone.
    PartOfReplica,
    /// SHOW RELAYLOG EVENTS.
    RelayLog,
    /// Another statement of a server.
    Other(String),
}

impl Refusal {
    /// The refusal of a statement that begins with this word; `None` for a word with which no statement begins.
    pub(super) fn of_verb(verb: &str) -> Option<Refusal> {
        let verb = verb.to_ascii_uppercase();
        Some(match verb.as_str() {
            "TABLE" | "VALUES" | "WITH" | "DESC" | "DESCRIBE" | "EXPLAIN" | "ANALYZE" | "CHECK"
            | "CHECKSUM" | "HANDLER" => Refusal::Tables,
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "LOAD" | "TRUNCATE" | "CREATE" | "ALTER"
            | "DROP" | "RENAME" | "OPTIMIZE" | "REPAIR" | "IMPORT" | "CALL" | "GRANT" | "REVOKE"
            | "BINLOG" | "XA" => Refusal::Change(verb),
            "LOCK" | "UNLOCK" | "BACKUP" => Refusal::Snapshot,
            "FLUSH" => Refusal::Flush,
            "RESET" => Refusal::Reset,
            "CHANGE" => Refusal::ChangeSource,
            "PREPARE" | "EXECUTE" | "DEALLOCATE" | "SAVEPOINT" | "RELEASE" | "INSTALL" | "UNINSTALL"
            | "SHUTDOWN" | "RESTART" | "CLONE" | "CACHE" | "HELP" | "SIGNAL" | "RESIGNAL" | "GET" => {
                Refusal::Other(verb)
            }
            _ => return None,
        })
    }

    /// What the client is told, behind error 1235.
    pub fn sentence(&self) -> String {
        let who = "This is binlogd, which keeps and serves binary logs";
        match self {
            Refusal::Tables => format!(
                "{who}. There are no tables here, not even those of information_schema. What reads a snapshot of tables \
                 first, as the connectors of change data capture do, must take the snapshot from a server; from then on \
                 the changes can be read here"
            ),
            Refusal::Change(verb) => {
                format!("{who} and executes nothing. {verb} belongs on the source, or on another server")
            }
            Refusal::Snapshot => format!(
                "{who}. There are no tables here to lock or to take a consistent snapshot of. The snapshot must be taken \
                 from a server; from then on the changes can be read here"
            ),
            Refusal::Flush => format!(
                "{who} as the source wrote them. FLUSH belongs on the source; its next binary log then begins here too"
            ),
            Refusal::Reset => format!("{who} and throws none away. RESET is refused"),
            Refusal::ChangeSource => {
                format!(
                    "{who}. The source is a key of binlogd's configuration, and SQL does not change the configuration"
                )
            }
            Refusal::PartOfReplica => format!(
                "{who} and applies nothing: there is one thread, which receives. START REPLICA and STOP REPLICA take no \
                 UNTIL and no SQL_THREAD"
            ),
            Refusal::RelayLog => {
                format!("{who} and has no relay log. SHOW BINLOG EVENTS shows the events of what is kept")
            }
            Refusal::Other(what) => format!("{who}. {what} is not done here"),
        }
    }
}
