//! The errors of answers, with a server's own numbers and texts (MySQL Server Error Message Reference).

use crate::sql::Refusal;
use codec::packet::ErrPacket;

fn packet(code: u16, sqlstate: &str, message: String) -> ErrPacket {
    ErrPacket { code, sqlstate: sqlstate.to_owned(), message }
}

/// A statement that is understood and not done.
pub(super) fn refused(refusal: &Refusal) -> ErrPacket {
    not_supported(refusal.sentence())
}

/// 1235 with a sentence.
pub(super) fn not_supported(sentence: impl Into<String>) -> ErrPacket {
    packet(1235, "42000", sentence.into())
}

pub(super) fn unknown_variable(name: &str) -> ErrPacket {
    packet(1193, "HY000", format!("Unknown system variable '{name}'"))
}

/// `scope` is GLOBAL or SESSION, or what else a variable is: read only.
pub(super) fn wrong_scope(name: &str, is: &str) -> ErrPacket {
    packet(1238, "HY000", format!("Variable '{name}' is a {is} variable"))
}

pub(super) fn global_only(name: &str) -> ErrPacket {
    packet(1229, "HY000", format!("Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL"))
}

pub(super) fn wrong_value(name: &str, value: &str) -> ErrPacket {
    packet(1231, "42000", format!("Variable '{name}' can't be set to the value of '{value}'"))
}

pub(super) fn wrong_type(name: &str) -> ErrPacket {
    packet(1232, "42000", format!("Incorrect argument type to variable '{name}'"))
}

pub(super) fn unknown_column(name: &str, place: &str) -> ErrPacket {
    packet(1054, "42S22", format!("Unknown column '{name}' in '{place}'"))
}

pub(super) fn unknown_function(name: &str) -> ErrPacket {
    packet(1305, "42000", format!("FUNCTION {name} does not exist"))
}

pub(super) fn wrong_arguments(function: &str) -> ErrPacket {
    packet(1582, "42000", format!("Incorrect parameter count in the call to native function '{function}'"))
}

pub(super) fn out_of_range() -> ErrPacket {
    packet(1690, "22003", "BIGINT value is out of range".to_owned())
}

pub(super) fn malformed_gtids(why: &str) -> ErrPacket {
    packet(1772, "HY000", format!("Malformed GTID set specification: {why}"))
}

pub(super) fn unknown_character_set(name: &str) -> ErrPacket {
    packet(1115, "42000", format!("Unknown character set: '{name}'"))
}

pub(super) fn unknown_collation(name: &str) -> ErrPacket {
    packet(1273, "HY000", format!("Unknown collation: '{name}'"))
}

pub(super) fn wrong_collation(collation: &str, character_set: &str) -> ErrPacket {
    packet(1253, "42000", format!("COLLATION '{collation}' is not valid for CHARACTER SET '{character_set}'"))
}

pub(super) fn unknown_time_zone(name: &str) -> ErrPacket {
    packet(1298, "HY000", format!("Unknown or incorrect time zone: '{name}'"))
}

pub(super) fn unknown_database(name: &str) -> ErrPacket {
    packet(1049, "42000", format!("Unknown database '{name}'. binlogd has binary logs and no databases"))
}

pub(super) fn no_database() -> ErrPacket {
    packet(1046, "3D000", "No database selected. binlogd has binary logs and no databases".to_owned())
}

pub(super) fn unknown_thread(id: i128) -> ErrPacket {
    packet(1094, "HY000", format!("Unknown thread id: {id}"))
}

pub(super) fn not_owner(id: u32) -> ErrPacket {
    packet(1095, "HY000", format!("You are not owner of thread {id}"))
}

pub(super) fn no_such_log_to_show() -> ErrPacket {
    packet(
        1220,
        "HY000",
        "Error when executing command SHOW BINLOG EVENTS: Could not find target log".to_owned(),
    )
}

pub(super) fn unknown_log() -> ErrPacket {
    packet(1373, "HY000", "Target log not found in binlog index".to_owned())
}

pub(super) fn wrong_datetime(value: &str) -> ErrPacket {
    packet(1292, "22007", format!("Incorrect DATETIME value: '{value}'"))
}

pub(super) fn unknown_channel(name: &str) -> ErrPacket {
    packet(3074, "HY000", format!("Replica channel '{name}' does not exist."))
}

pub(super) fn unknown_connection(name: &str) -> ErrPacket {
    packet(1617, "HY000", format!("There is no master connection '{name}'"))
}

pub(super) fn no_such_grant(user: &str) -> ErrPacket {
    packet(1141, "42000", format!("There is no such grant defined for user '{user}'"))
}

/// A privilege that the account does not have. `why` says what could help, where anything could.
pub(super) fn access_denied(privilege: &str, why: &str) -> ErrPacket {
    let message = format!(
        "Access denied; you need (at least one of) the {privilege} privilege(s) for this operation. {why}"
    );
    packet(1227, "42000", message)
}
