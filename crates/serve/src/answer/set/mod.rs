//! SET: everything is checked before anything is changed, so that a statement that fails leaves nothing behind.

pub(in crate::answer) mod charset;

use super::error;
use super::evaluate::{evaluate, no_row};
use super::session_state::{SETTING_BYTES_MAX, SessionState};
use super::variables;
use crate::answer::evaluate::time::Zone;
use crate::answer::session_state::context::Context;
use crate::answer::variables::variable_table::{Held, Kind, Variable};
use crate::sql::{Assignment, Expression, Scope, Value};
use codec::packet::{ErrPacket, printable};

/// Variables with two names.
const ALIASES: &[(&str, &str)] =
    &[("tx_isolation", "transaction_isolation"), ("tx_read_only", "transaction_read_only")];

/// Modes of `sql_mode`, of both servers and all versions.
const SQL_MODES: &[&str] = &[
    "ALLOW_INVALID_DATES",
    "ANSI",
    "ANSI_QUOTES",
    "DB2",
    "EMPTY_STRING_IS_NULL",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "HIGH_NOT_PRECEDENCE",
    "IGNORE_BAD_TABLE_OPTIONS",
    "IGNORE_SPACE",
    "MAXDB",
    "MSSQL",
    "MYSQL323",
    "MYSQL40",
    "NO_AUTO_CREATE_USER",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "NO_DIR_IN_CREATE",
    "NO_ENGINE_SUBSTITUTION",
    "NO_FIELD_OPTIONS",
    "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_ZERO_DATE",
    "NO_ZERO_IN_DATE",
    "ONLY_FULL_GROUP_BY",
    "ORACLE",
    "PAD_CHAR_TO_FULL_LENGTH",
    "PIPES_AS_CONCAT",
    "POSTGRESQL",
    "REAL_AS_FLOAT",
    "SIMULTANEOUS_ASSIGNMENT",
    "STRICT_ALL_TABLES",
    "STRICT_TRANS_TABLES",
    "TIME_ROUND_FRACTIONAL",
    "TIME_TRUNCATE_FRACTIONAL",
    "TRADITIONAL",
];

const ISOLATIONS: &[&str] = &["READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"];

/// What one assignment changes.
enum Change {
    User(String, Value),
    /// As [`SessionState::set_setting`] takes it.
    Setting(&'static str, Option<Option<String>>),
}

/// Carries out the assignments of one SET. All values are computed from what stood before the statement, as a server
/// does.
///
/// # Errors
/// With the server's error of the first assignment that cannot be done; nothing is changed then.
pub(super) fn changed(context: &Context, assignments: &[Assignment]) -> Result<SessionState, ErrPacket> {
    let mut changes = Vec::new();
    for assignment in assignments {
        check(context, assignment, &mut changes)?;
    }
    let mut session = context.session.clone();
    for change in changes {
        match change {
            Change::User(name, value) => session.set_user_variable(&name, value)?,
            Change::Setting(name, value) => {
                for (alias, other) in ALIASES {
                    if name == *alias {
                        session.set_setting(other, value.clone());
                    } else if name == *other {
                        session.set_setting(alias, value.clone());
                    }
                }
                session.set_setting(name, value);
            }
        }
    }
    Ok(session)
}

fn check(context: &Context, assignment: &Assignment, changes: &mut Vec<Change>) -> Result<(), ErrPacket> {
    match assignment {
        Assignment::User { name, value } => {
            changes.push(Change::User(name.clone(), evaluate(context, value, &no_row, "field list")?));
        }
        Assignment::System { scope, name, value } => system(context, *scope, name, value.as_ref(), changes)?,
        Assignment::Names { character_set, collation } => {
            names(character_set.as_deref(), collation.as_deref(), changes)?
        }
        Assignment::CharacterSet(name) => {
            let set = name.as_deref().map(character_set).transpose()?;
            for name in ["character_set_client", "character_set_results"] {
                changes.push(Change::Setting(name, set.map(|set| Some(set.to_owned()))));
            }
            for name in ["character_set_connection", "collation_connection"] {
                changes.push(Change::Setting(name, None));
            }
        }
        Assignment::Transaction { scope: Some(Scope::Global), .. } => return Err(global_refused()),
        // Without a scope the next transaction is meant, and no transaction does anything here.
        Assignment::Transaction { scope: None, .. } => {}
        Assignment::Transaction { scope: Some(Scope::Session), isolation, read_only } => {
            if let Some(level) = isolation {
                changes.push(Change::Setting("transaction_isolation", Some(Some((*level).to_owned()))));
            }
            if let Some(read_only) = read_only {
                changes.push(Change::Setting("transaction_read_only", Some(Some(on_off(*read_only)))));
            }
        }
    }
    Ok(())
}

fn on_off(is_on: bool) -> String {
    if is_on { "ON" } else { "OFF" }.to_owned()
}

fn global_refused() -> ErrPacket {
    error::access_denied(
        "SUPER or SYSTEM_VARIABLES_ADMIN",
        "Nobody has them here: binlogd's own settings are keys of its configuration, the source's are set on the source",
    )
}

fn system(
    context: &Context,
    scope: Option<Scope>,
    name: &str,
    value: Option<&Expression>,
    changes: &mut Vec<Change>,
) -> Result<(), ErrPacket> {
    let variable = variables::find(context, name)?;
    match (variable.held, scope) {
        (Held::ReadOnly, _) => return Err(error::wrong_scope(name, "read only")),
        (Held::Session, Some(Scope::Global)) => return Err(error::wrong_scope(name, "SESSION")),
        (_, Some(Scope::Global)) => return Err(global_refused()),
        (Held::Global, _) => return Err(error::global_only(name)),
        (Held::Both | Held::Session, _) => {}
    }
    let setting = match value {
        None => None,
        Some(value) => Some(checked(variable, evaluate(context, value, &no_row, "field list")?)?),
    };
    // The collation of the connection goes with its character set.
    let beside = match (variable.name, setting.as_ref().and_then(Option::as_deref)) {
        ("character_set_connection", Some(set)) => {
            let default = charset::find(set).map(|set| set.collations[0].0.to_owned());
            Some(Change::Setting("collation_connection", Some(default)))
        }
        ("collation_connection", Some(collation)) => {
            let set = charset::find_collation(collation).map(|(set, _)| set.name.to_owned());
            Some(Change::Setting("character_set_connection", Some(set)))
        }
        _ => None,
    };
    changes.push(Change::Setting(variable.name, setting));
    changes.extend(beside);
    Ok(())
}

/// A value as SHOW VARIABLES has it, when the variable takes it.
fn checked(variable: &Variable, value: Value) -> Result<Option<String>, ErrPacket> {
    let name = variable.name;
    let Some(text) = value.to_text() else {
        // Only this one can be NULL: results are then sent as they are.
        let may_be_null = name == "character_set_results";
        return if may_be_null { Ok(None) } else { Err(error::wrong_value(name, "NULL")) };
    };
    if text.len() > SETTING_BYTES_MAX {
        return Err(error::wrong_value(name, &printable(text.as_bytes(), 64)));
    }
    let one_of = |values: &[&str]| values.contains(&text.to_ascii_uppercase().as_str());
    let wrong = || Err(error::wrong_value(name, &text));
    Ok(Some(match variable.kind {
        Kind::Integer => match value {
            Value::Integer(number) => number.clamp(0, u64::MAX.into()).to_string(),
            _ => return Err(error::wrong_type(name)),
        },
        Kind::Boolean if one_of(&["1", "ON", "TRUE"]) => on_off(true),
        Kind::Boolean if one_of(&["0", "OFF", "FALSE"]) => on_off(false),
        Kind::Boolean => return wrong(),
        Kind::CharacterSet => character_set(&text)?.to_owned(),
        Kind::Collation => match charset::find_collation(&text) {
            Some((_, collation)) => collation,
            None => return Err(error::unknown_collation(&text)),
        },
        Kind::TimeZone if Zone::parse(&text).is_some() => text,
        Kind::TimeZone => return Err(error::unknown_time_zone(&text)),
        Kind::Isolation if one_of(ISOLATIONS) => text.to_ascii_uppercase(),
        Kind::Isolation => return wrong(),
        Kind::SqlMode if value == Value::Integer(0) => String::new(),
        Kind::SqlMode => {
            let modes: Vec<String> = text
                .split(',')
                .map(|mode| mode.trim().to_ascii_uppercase())
                .filter(|mode| !mode.is_empty())
                .collect();
            if let Some(unknown) = modes.iter().find(|mode| !SQL_MODES.contains(&mode.as_str())) {
                return Err(error::wrong_value(name, unknown));
            }
            // ANSI is a name for several, and the lexer must know of this one.
            let ansi =
                modes.iter().any(|mode| mode == "ANSI") && !modes.iter().any(|mode| mode == "ANSI_QUOTES");
            if ansi { format!("ANSI_QUOTES,{}", modes.join(",")) } else { modes.join(",") }
        }
        Kind::Text => text,
    }))
}

fn character_set(name: &str) -> Result<&'static str, ErrPacket> {
    charset::find(name).map(|set| set.name).ok_or_else(|| error::unknown_character_set(name))
}

fn names(set: Option<&str>, collation: Option<&str>, changes: &mut Vec<Change>) -> Result<(), ErrPacket> {
    const CHARACTER_SETS: [&str; 3] =
        ["character_set_client", "character_set_connection", "character_set_results"];
    let Some(set) = set else {
        changes.extend(CHARACTER_SETS.map(|name| Change::Setting(name, None)));
        changes.push(Change::Setting("collation_connection", None));
        return Ok(());
    };
    let set = charset::find(set).ok_or_else(|| error::unknown_character_set(set))?;
    let collation = match collation {
        None => set.collations[0].0.to_owned(),
        Some(name) => match charset::find_collation(name) {
            None => return Err(error::unknown_collation(name)),
            Some((of, _)) if of != set => return Err(error::wrong_collation(name, set.name)),
            Some((_, collation)) => collation,
        },
    };
    changes.extend(CHARACTER_SETS.map(|name| Change::Setting(name, Some(Some(set.name.to_owned())))));
    changes.push(Change::Setting("collation_connection", Some(Some(collation))));
    Ok(())
}
