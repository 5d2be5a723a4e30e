//! The grammar of SHOW.

use super::error::SqlError;
use super::expression::Scope;
use super::parser::Parser;
use super::refusal::Refusal;
use super::statement::{Filter, Show, Statement, Words};

/// Behind SHOW, what asks about the tables of a database, and what about one table or another object.
const IN_DATABASE: &[&str] = &["TABLES", "TRIGGERS", "EVENTS", "OPEN"];
const OF_OBJECT: &[&str] =
    &["COLUMNS", "FIELDS", "INDEX", "INDEXES", "KEYS", "CREATE", "FUNCTION", "PROCEDURE", "PACKAGE"];
/// What a server has that executes statements.
const OF_SERVER: &[&str] = &[
    "ENGINE",
    "PRIVILEGES",
    "PROFILE",
    "PROFILES",
    "STORAGE",
    "AUTHORS",
    "CONTRIBUTORS",
    "LOCALES",
    "PARSE_TREE",
    "LIBRARY",
    "EXPLAIN",
    "ANALYZE",
    "USER_STATISTICS",
    "QUERY_RESPONSE_TIME",
];

impl Parser<'_> {
    /// SHOW, behind its first word.
    pub(super) fn show(&mut self) -> Result<Statement, SqlError> {
        let scope = self.scope_keyword();
        if scope.is_some() {
            self.advance()?;
        }
        let scope_or_session = scope.unwrap_or(Scope::Session);
        if self.eat("VARIABLES")? {
            return Ok(Statement::Show(Show::Variables { scope: scope_or_session, filter: self.filter()? }));
        }
        if self.eat("STATUS")? {
            return Ok(Statement::Show(Show::Status { scope: scope_or_session, filter: self.filter()? }));
        }
        if scope.is_some() {
            return self.unexpected();
        }
        self.show_what()
    }

    fn show_what(&mut self) -> Result<Statement, SqlError> {
        let show = if self.eat("BINARY")? {
            self.show_binary()?
        } else if self.eat("MASTER")? {
            if self.eat("STATUS")? {
                Show::BinaryLogStatus
            } else {
                self.expect("LOGS")?;
                Show::BinaryLogs
            }
        } else if self.eat("BINLOG")? {
            self.show_binlog()?
        } else if self.eat("REPLICAS")? {
            Show::Replicas(Words::New)
        } else if self.is("REPLICA") || self.is("SLAVE") || self.is("ALL") {
            self.show_replica()?
        } else if self.is("COUNT") || self.is("WARNINGS") || self.is("ERRORS") {
            self.show_warnings()?
        } else if self.eat("FULL")? {
            return self.show_full();
        } else if self.eat("PROCESSLIST")? {
            Show::ProcessList { full: false }
        } else if self.eat_any(&["DATABASES", "SCHEMAS"])? {
            Show::Databases(self.filter()?)
        } else if self.eat("GRANTS")? {
            Show::Grants(self.grantee()?)
        } else if self.eat("ENGINES")? {
            Show::Engines
        } else if self.eat("PLUGINS")? {
            Show::Plugins
        } else if self.eat("COLLATION")? {
            Show::Collations(self.filter()?)
        } else if self.eat("CHARSET")? {
            Show::CharacterSets(self.filter()?)
        } else if self.eat("CHARACTER")? {
            self.expect("SET")?;
            Show::CharacterSets(self.filter()?)
        } else {
            return self.show_of_tables();
        };
        Ok(Statement::Show(show))
    }

    /// Behind SHOW BINARY.
    fn show_binary(&mut self) -> Result<Show, SqlError> {
        if self.eat("LOGS")? {
            return Ok(Show::BinaryLogs);
        }
        self.expect("LOG")?;
        self.expect("STATUS")?;
        Ok(Show::BinaryLogStatus)
    }

    /// Behind SHOW BINLOG.
    fn show_binlog(&mut self) -> Result<Show, SqlError> {
        if self.eat("STATUS")? {
            return Ok(Show::BinaryLogStatus);
        }
        self.expect("EVENTS")?;
        let file = if self.eat("IN")? { Some(self.string()?) } else { None };
        let from = if self.eat("FROM")? { Some(self.number()?) } else { None };
        Ok(Show::BinlogEvents { file, from, limit: self.limit()? })
    }

    /// SHOW REPLICA, SHOW SLAVE, SHOW ALL.
    fn show_replica(&mut self) -> Result<Show, SqlError> {
        let all = self.eat("ALL")?;
        if all {
            let words = if self.eat("REPLICAS")? {
                Words::New
            } else {
                self.expect("SLAVES")?;
                Words::Old
            };
            self.expect("STATUS")?;
            return Ok(Show::ReplicaStatus { words, all, channel: None });
        }
        let words = if self.eat("REPLICA")? {
            Words::New
        } else {
            self.expect("SLAVE")?;
            Words::Old
        };
        if self.eat("HOSTS")? {
            return Ok(Show::Replicas(words));
        }
        // MariaDB names a connection before STATUS, MySQL a channel behind it.
        let connection = if self.is("STATUS") { None } else { Some(self.string()?) };
        self.expect("STATUS")?;
        let channel = self.for_channel()?;
        Ok(Show::ReplicaStatus { words, all, channel: channel.or(connection) })
    }

    /// `FOR CHANNEL 'x'`, or nothing.
    pub(super) fn for_channel(&mut self) -> Result<Option<String>, SqlError> {
        if !self.eat("FOR")? {
            return Ok(None);
        }
        self.expect("CHANNEL")?;
        self.string_or_name().map(Some)
    }

    /// SHOW WARNINGS, ERRORS, and their COUNT(*).
    fn show_warnings(&mut self) -> Result<Show, SqlError> {
        let count = self.eat("COUNT")?;
        if count {
            self.expect_sign("(")?;
            self.expect_sign("*")?;
            self.expect_sign(")")?;
        }
        let errors_only = self.eat("ERRORS")?;
        if !errors_only {
            self.expect("WARNINGS")?;
        }
        Ok(Show::Warnings { errors_only, count, limit: self.limit()? })
    }

    /// Behind SHOW FULL.
    fn show_full(&mut self) -> Result<Statement, SqlError> {
        if self.eat("PROCESSLIST")? {
            return Ok(Statement::Show(Show::ProcessList { full: true }));
        }
        self.show_of_tables()
    }

    /// What a server shows of its tables and its engine, none of which is here.
    fn show_of_tables(&mut self) -> Result<Statement, SqlError> {
        self.eat("EXTENDED")?;
        self.eat("FULL")?;
        if self.eat_any(IN_DATABASE)? {
            self.eat("TABLES")?;
            return self.show_in_database();
        }
        if self.eat("TABLE")? {
            self.expect("STATUS")?;
            return self.show_in_database();
        }
        let refusal = if self.is("RELAYLOG") {
            Refusal::RelayLog
        } else if OF_OBJECT.iter().any(|word| self.is(word)) {
            Refusal::Tables
        } else if OF_SERVER.iter().any(|word| self.is(word)) {
            Refusal::Other(format!("SHOW {}", self.name()?.to_ascii_uppercase()))
        } else {
            return self.unexpected();
        };
        self.skip_statement()?;
        Ok(Statement::Refused(refusal))
    }

    /// `[FROM | IN database] [LIKE … | WHERE …]`.
    fn show_in_database(&mut self) -> Result<Statement, SqlError> {
        let database = if self.eat_any(&["FROM", "IN"])? { Some(self.name()?) } else { None };
        self.filter()?;
        Ok(Statement::Show(Show::InDatabase(database)))
    }

    /// Behind SHOW GRANTS: whose; `None` is the user of the session.
    fn grantee(&mut self) -> Result<Option<String>, SqlError> {
        if !self.eat("FOR")? {
            return Ok(None);
        }
        if self.eat("CURRENT_USER")? {
            if self.eat_sign("(")? {
                self.expect_sign(")")?;
            }
            return Ok(None);
        }
        let name = self.string_or_name()?;
        // The host reads like a user variable: 'user'@'host'.
        if !self.is_end() {
            self.advance()?;
        }
        Ok(Some(name))
    }

    /// `LIKE 'pattern'`, `WHERE condition`, or nothing.
    fn filter(&mut self) -> Result<Filter, SqlError> {
        if self.eat("LIKE")? {
            return self.string().map(Filter::Like);
        }
        if self.eat("WHERE")? {
            return self.expression().map(Filter::Where);
        }
        Ok(Filter::None)
    }
}
