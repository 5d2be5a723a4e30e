//! SHOW.

pub(in crate::answer) mod logs;
pub(in crate::answer) mod replica_status;

use super::error;
use super::evaluate::{evaluate, like};
use super::facts::SessionLine;
use super::privilege::{self, Privilege};
use super::reply::Answer;
use super::rows::{Column, ColumnKind, Row, Rows, some};
use super::variables;
use crate::answer::session_state::context::Context;
use crate::answer::set::charset::{CHARACTER_SETS, CharacterSet};
use crate::answer::show::replica_status::replica_status;
use crate::sql::{Filter, Limit, Show, Value, version_number};
use codec::ServerKind;
use codec::packet::ErrPacket;

/// Longest part of a statement that SHOW PROCESSLIST shows without FULL, in characters, as a server.
const STATEMENT_CHARS_MAX: usize = 100;

/// Answers a SHOW.
///
/// # Errors
/// With the server's error.
pub(super) fn show(context: &Context, show: &Show) -> Result<Answer, ErrPacket> {
    let rows = match show {
        Show::Variables { scope, filter } => kept(context, pairs(variables::list(context, *scope)), filter)?,
        Show::Status { scope: _, filter } => kept(context, pairs(status(context)), filter)?,
        Show::BinaryLogs => {
            privilege::need(context, Privilege::ReadStatus)?;
            logs::binary_logs(context)
        }
        Show::BinaryLogStatus => {
            privilege::need(context, Privilege::ReadStatus)?;
            logs::binary_log_status(context)
        }
        Show::BinlogEvents { file, from, limit } => {
            privilege::need(context, Privilege::Read)?;
            return Ok(logs::binlog_events(context, file.as_deref(), *from, *limit));
        }
        Show::Replicas(words) => {
            privilege::need(context, Privilege::Read)?;
            logs::replicas(context, *words)
        }
        Show::ReplicaStatus { words, all, channel } => {
            privilege::need(context, Privilege::ReadStatus)?;
            match (channel.as_deref(), context.facts.kind()) {
                (None | Some(""), _) => {}
                (Some(name), ServerKind::MySql) => return Err(error::unknown_channel(name)),
                (Some(name), ServerKind::MariaDb) => return Err(error::unknown_connection(name)),
            }
            replica_status(context, *words, *all)
        }
        Show::ProcessList { full } => process_list(context, *full),
        Show::Warnings { errors_only, count, limit } => warnings(context, *errors_only, *count, *limit),
        Show::Databases(filter) => kept(context, Rows::new(vec![Column::text("Database")]), filter)?,
        Show::InDatabase(Some(name)) => return Err(error::unknown_database(name)),
        Show::InDatabase(None) => return Err(error::no_database()),
        Show::Grants(of) => grants(context, of.as_deref())?,
        Show::Engines => Rows::new(
            ["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"].map(Column::text).to_vec(),
        ),
        Show::Plugins => {
            Rows::new(["Name", "Status", "Type", "Library", "License"].map(Column::text).to_vec())
        }
        Show::CharacterSets(filter) => kept(context, character_sets(), filter)?,
        Show::Collations(filter) => kept(context, collations(), filter)?,
    };
    Ok(Answer::Rows(rows))
}

/// The rows that a filter keeps.
fn kept(context: &Context, rows: Rows, filter: &Filter) -> Result<Rows, ErrPacket> {
    let Rows { columns, rows } = rows;
    let mut kept = Vec::new();
    for row in rows {
        let is_kept = match filter {
            Filter::None => true,
            Filter::Like(pattern) => like(context, row[0].as_deref().unwrap_or(""), pattern)?,
            Filter::Where(condition) => {
                let lookup = |name: &str| column(&columns, &row, name);
                evaluate(context, condition, &lookup, "where clause")?.is_true() == Some(true)
            }
        };
        if is_kept {
            kept.push(row);
        }
    }
    // A column that there is not is an error also where no row is left to look at.
    if let (Filter::Where(condition), true) = (filter, kept.is_empty()) {
        let lookup = |name: &str| column(&columns, &vec![None; columns.len()], name);
        evaluate(context, condition, &lookup, "where clause")?;
    }
    Ok(Rows::of(columns, kept))
}

/// The value of a column in a row; `None` where there is no such column.
fn column(columns: &[Column], row: &Row, name: &str) -> Option<Value> {
    let at = columns.iter().position(|column| column.title.eq_ignore_ascii_case(name))?;
    Some(match &row[at] {
        None => Value::Null,
        Some(text) if columns[at].kind != ColumnKind::Text => {
            text.parse().map_or_else(|_| Value::text(text), Value::Integer)
        }
        Some(text) => Value::text(text),
    })
}

fn pairs(pairs: Vec<(&'static str, Option<String>)>) -> Rows {
    let columns = vec![Column::text("Variable_name"), Column::text("Value")];
    Rows::of(
        columns,
        pairs.into_iter().map(|(name, value)| vec![some(name), Some(value.unwrap_or_default())]).collect(),
    )
}

/// Counters. A server has the same for a session and for all, except those of TLS.
fn status(context: &Context) -> Vec<(&'static str, Option<String>)> {
    let facts = context.facts;
    let sessions = facts.sessions();
    let running = sessions.iter().filter(|session| session.command != "Sleep").count();
    let semi_sync = facts.semi_sync();
    let is_on = if semi_sync.enabled && semi_sync.clients > 0 { "ON" } else { "OFF" };
    let (version, cipher) = context.client.tls.clone().unwrap_or_default();
    let names = if facts.kind() == ServerKind::MySql && version_number(&facts.version()) >= 80_026 {
        [
            "Rpl_semi_sync_source_clients",
            "Rpl_semi_sync_source_no_tx",
            "Rpl_semi_sync_source_status",
            "Rpl_semi_sync_source_wait_sessions",
            "Rpl_semi_sync_source_yes_tx",
        ]
    } else {
        [
            "Rpl_semi_sync_master_clients",
            "Rpl_semi_sync_master_no_tx",
            "Rpl_semi_sync_master_status",
            "Rpl_semi_sync_master_wait_sessions",
            "Rpl_semi_sync_master_yes_tx",
        ]
    };
    let mut list = vec![
        (names[0], some(semi_sync.clients)),
        (names[1], some(semi_sync.not_acknowledged)),
        (names[2], some(is_on)),
        (names[3], some(semi_sync.waiting)),
        (names[4], some(semi_sync.acknowledged)),
    ];
    if facts.kind() == ServerKind::MariaDb {
        list.push(("Slaves_connected", some(facts.replicas().len())));
    }
    list.extend([
        ("Ssl_cipher", Some(cipher)),
        ("Ssl_version", Some(version)),
        ("Threads_connected", some(sessions.len())),
        ("Threads_running", some(running)),
        ("Uptime", some(facts.uptime_seconds())),
    ]);
    list
}

/// SHOW PROCESSLIST: everybody's sessions for who may end them, the user's own for others.
fn process_list(context: &Context, full: bool) -> Rows {
    let mut columns = vec![
        Column::integer("Id"),
        Column::text("User"),
        Column::text("Host"),
        Column::text("db"),
        Column::text("Command"),
        Column::integer("Time"),
        Column::text("State"),
        Column::text("Info"),
    ];
    let has_progress = context.facts.kind() == ServerKind::MariaDb;
    if has_progress {
        columns.push(Column::text("Progress"));
    }
    let is_shown = |line: &SessionLine| context.client.privileges.control || line.user == context.client.user;
    let row = |line: SessionLine| {
        let cut = |text: String| if full { text } else { text.chars().take(STATEMENT_CHARS_MAX).collect() };
        let mut row = vec![
            some(line.connection_id),
            Some(line.user),
            Some(line.host),
            None,
            Some(line.command),
            some(line.seconds),
            Some(line.state),
            line.statement.map(cut),
        ];
        if has_progress {
            row.push(some("0.000"));
        }
        row
    };
    Rows::of(columns, context.facts.sessions().into_iter().filter(is_shown).map(row).collect())
}

/// SHOW WARNINGS and SHOW ERRORS: the error or the warning of the statement before.
fn warnings(context: &Context, errors_only: bool, count: bool, limit: Limit) -> Rows {
    let error = context.session.last_error.iter().map(|error| ("Error", error));
    let warning = context.session.last_warning.iter().filter(|_| !errors_only);
    let all: Vec<(&str, &ErrPacket)> = error.chain(warning.map(|warning| ("Warning", warning))).collect();
    if count {
        let title = if errors_only { "@@session.error_count" } else { "@@session.warning_count" };
        return Rows::of(vec![Column::integer(title)], vec![vec![some(all.len())]]);
    }
    let columns = vec![Column::text("Level"), Column::integer("Code"), Column::text("Message")];
    let row =
        |(level, error): (&str, &ErrPacket)| vec![some(level), some(error.code), Some(error.message.clone())];
    Rows::of(columns, all.into_iter().map(row).collect()).limited(limit)
}

/// SHOW GRANTS: what the account may do here, in the words of the server's privileges.
fn grants(context: &Context, of: Option<&str>) -> Result<Rows, ErrPacket> {
    let client = context.client;
    if let Some(user) = of.filter(|user| *user != client.user) {
        return Err(error::no_such_grant(user));
    }
    let rows = privilege::grants(context.facts.kind(), &context.facts.version(), client.privileges);
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let account = format!("{}@{}", quoted(&client.user), quoted(&client.account_host));
    let title = format!("Grants for {}@{}", client.user, client.account_host);
    let row = |privileges: String| vec![Some(format!("GRANT {privileges} ON *.* TO {account}"))];
    Ok(Rows::of(vec![Column::text(title)], rows.into_iter().map(row).collect()))
}

fn character_sets() -> Rows {
    let columns = vec![
        Column::text("Charset"),
        Column::text("Description"),
        Column::text("Default collation"),
        Column::integer("Maxlen"),
    ];
    let row = |set: &CharacterSet| {
        vec![some(set.name), some(set.name), some(set.collations[0].0), some(set.bytes_max)]
    };
    Rows::of(columns, CHARACTER_SETS.iter().map(row).collect())
}

fn collations() -> Rows {
    let columns = vec![
        Column::text("Collation"),
        Column::text("Charset"),
        Column::integer("Id"),
        Column::text("Default"),
        Column::text("Compiled"),
        Column::integer("Sortlen"),
    ];
    let rows = CHARACTER_SETS.iter().flat_map(|set| {
        set.collations.iter().enumerate().map(|(at, (name, number))| {
            vec![
                some(name),
                some(set.name),
                some(number),
                some(if at == 0 { "Yes" } else { "" }),
                some("Yes"),
                some(1),
            ]
        })
    });
    Rows::of(columns, rows.collect())
}
