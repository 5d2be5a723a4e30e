//! The answers to statements: what [`Facts`] and a session's own state say, as rows, OK or an error; or what the
//! session is to do. No I/O and no clock of its own.
//!
//! | file | noun |
//! |---|---|
//! | `facts.rs` | what answers are made of: the copy, its source, readers, the client |
//! | `session_state/` | what a session's statements leave behind; `Context`: facts, client and session of one statement, and the limit of its work |
//! | `evaluate/` | the value of an expression |
//! | `variables/` | system variables |
//! | `set/` | SET; character sets |
//! | `show/` | SHOW |
//! | `reply.rs` | an answer, and what a session may be asked to do |
//! | `act.rs` | statements that the session carries out |
//! | `privilege.rs` | what an account needs for them, and what it has |
//! | `rows.rs`, `error.rs` | result sets; errors with a server's numbers |
//! | `clients.rs`, `made_up.rs` | tests: what each client sends and needs to get, of a made-up copy |

mod act;
mod error;
mod evaluate;
mod facts;
mod privilege;
pub(crate) mod purge;
mod reply;
mod rows;
mod session_state;
mod set;
mod show;
mod variables;

#[cfg(test)]
mod clients;
#[cfg(test)]
mod made_up;
#[cfg(test)]
mod tests;

use crate::sql::{Select, Show, Statement, Value};
use codec::packet::ErrPacket;
use evaluate::{evaluate, no_row};
use session_state::context::Context;
/// The databases that may be used here, in lower case: the servers' own, which every account may use, and some clients name
/// in their login. They are as empty as the rest.
pub const DATABASES: &[&str] = &["information_schema", "performance_schema"];

pub use facts::{Client, Facts, LogFile, Receiving, Replica, SemiSync, SessionLine, Upstream};
pub use privilege::may_dump;
pub use reply::{Action, Answer};
pub use rows::{Column, ColumnKind, Row, Rows, binlog_event_columns};
pub use session_state::{SessionState, USER_VARIABLES_BYTES_MAX, USER_VARIABLES_MAX};
pub use set::charset::collation_of;

/// Answers a statement, and keeps what it sets in the session.
pub fn answer(
    statement: &Statement,
    session: &mut SessionState,
    client: &Client,
    facts: &dyn Facts,
) -> Answer {
    let context = Context::new(facts, client, session);
    let (answer, changed) = match compute(&context, statement) {
        Ok((answer, changed)) => (answer, changed),
        Err(error) => (Answer::Error(error), None),
    };
    if let Some(changed) = changed {
        *session = changed;
    }
    // SHOW WARNINGS tells of the statement before, and so does not begin anew.
    let is_diagnostic = matches!(statement, Statement::Show(Show::Warnings { .. }));
    match &answer {
        Answer::Error(error) => session.remember(error),
        _ if is_diagnostic => {}
        _ => (session.last_error, session.last_warning) = (None, None),
    }
    answer
}

/// The answer, and the session as the statement leaves it where it changes something.
fn compute(context: &Context, statement: &Statement) -> Result<(Answer, Option<SessionState>), ErrPacket> {
    let in_transaction = |is: bool| {
        let mut session = context.session.clone();
        session.in_transaction = is;
        Ok((Answer::Done, Some(session)))
    };
    let answer = match statement {
        Statement::Select(query) => Answer::Rows(select(context, query)?),
        Statement::Do(list) => {
            for expression in list {
                evaluate(context, expression, &no_row, "field list")?;
            }
            Answer::Done
        }
        Statement::Set(assignments) => return Ok((Answer::Done, Some(set::changed(context, assignments)?))),
        Statement::Show(what) => show::show(context, what)?,
        Statement::Use(name) => {
            if !DATABASES.contains(&name.to_ascii_lowercase().as_str()) {
                return Err(error::unknown_database(name));
            }
            let mut session = context.session.clone();
            session.use_database(Some(name));
            return Ok((Answer::Done, Some(session)));
        }
        Statement::Kill { connection, query_only } => act::kill(context, connection, *query_only)?,
        Statement::Purge(purge) => act::purge(context, purge)?,
        Statement::Replica(command) => act::replica(context, *command)?,
        Statement::Begin => return in_transaction(true),
        Statement::Commit | Statement::Rollback => return in_transaction(false),
        Statement::Refused(refusal) => return Err(error::refused(refusal)),
    };
    Ok((answer, None))
}

/// The one row of a SELECT without a table.
fn select(context: &Context, query: &Select) -> Result<Rows, ErrPacket> {
    let mut columns = Vec::with_capacity(query.items.len());
    let mut row = Vec::with_capacity(query.items.len());
    for item in &query.items {
        let value = evaluate(context, &item.expression, &no_row, "field list")?;
        let kind = match value {
            Value::Integer(_) => ColumnKind::Integer,
            _ => ColumnKind::Text,
        };
        columns.push(Column { title: item.title.clone(), kind });
        row.push(value.to_text());
    }
    let is_wanted = match &query.condition {
        Some(condition) => evaluate(context, condition, &no_row, "where clause")?.is_true() == Some(true),
        None => true,
    };
    let rows = if is_wanted { vec![row] } else { Vec::new() };
    Ok(Rows::of(columns, rows).limited(query.limit))
}
