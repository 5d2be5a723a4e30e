//! The functions that clients ask for.

use crate::answer::error;
use crate::answer::session_state::context::Context;
use crate::sql::Value;
use codec::ServerKind;
use codec::gtid::GtidSet;
use codec::packet::ErrPacket;
use sha2::{Digest, Sha256};

/// Longest text that a function makes, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Calls the function of this name, in lower case.
///
/// # Errors
/// 1305 for one that there is not, 1582 for another number of arguments, and what the function itself refuses.
pub(in crate::answer) fn call(
    context: &Context,
    name: &str,
    arguments: &[Value],
) -> Result<Value, ErrPacket> {
    let value = match (name, arguments) {
        ("version", []) => Value::Text(context.facts.version()),
        ("connection_id", []) => Value::Integer(context.client.connection_id.into()),
        ("user" | "session_user" | "system_user", []) => {
            Value::Text(format!("{}@{}", context.client.user, context.client.host))
        }
        ("current_user", []) => {
            Value::Text(format!("{}@{}", context.client.user, context.client.account_host))
        }
        ("database" | "schema", []) => context.session.database.as_deref().map_or(Value::Null, Value::text),
        ("last_insert_id", []) => Value::Integer(0),
        ("uuid", []) => Value::Text(uuid(context.facts.random())),
        ("if", [condition, then, otherwise]) => {
            if condition.is_true() == Some(true) { then } else { otherwise }.clone()
        }
        ("ifnull", [value, otherwise]) => if *value == Value::Null { otherwise } else { value }.clone(),
        ("nullif", [value, other]) => {
            if value.compare(other).is_some_and(|order| order.is_eq()) {
                Value::Null
            } else {
                value.clone()
            }
        }
        ("coalesce", [_, ..]) => {
            arguments.iter().find(|value| **value != Value::Null).cloned().unwrap_or(Value::Null)
        }
        ("concat", [_, ..]) => concat(arguments)?,
        ("lower" | "lcase", [value]) => map_text(value, |text| text.to_lowercase()),
        ("upper" | "ucase", [value]) => map_text(value, |text| text.to_uppercase()),
        ("sha2", [value, bits]) => sha2(value, bits),
        ("gtid_subset" | "gtid_subtract", [left, right]) if context.facts.kind() == ServerKind::MySql => {
            gtids(context, name, left, right)?
        }
        ("binlog_gtid_pos", [file, offset]) if context.facts.kind() == ServerKind::MariaDb => {
            match (file.to_text(), offset.to_integer()) {
                (Some(file), Some(offset)) => {
                    let position = u64::try_from(offset)
                        .ok()
                        .and_then(|offset| context.facts.gtid_position(&file, offset));
                    position.map_or(Value::Null, Value::Text)
                }
                _ => Value::Null,
            }
        }
        _ => match moment(context, name, arguments) {
            Some(value) => value,
            None if is_known(context, name) => return Err(error::wrong_arguments(name)),
            None => return Err(error::unknown_function(name)),
        },
    };
    Ok(value)
}

/// Functions of the time; `None` for any other, and for other arguments.
fn moment(context: &Context, name: &str, arguments: &[Value]) -> Option<Value> {
    use super::time::Zone;

    let (now, zone) = (context.facts.now(), context.session.zone());
    let digits = match arguments {
        [] => Some(0),
        [Value::Integer(digits @ 0..=6)] => usize::try_from(*digits).ok(),
        _ => None,
    };
    let text = |zone: Zone, digits: usize| zone.datetime(now, digits).map_or(Value::Null, Value::Text);
    let part = |zone: Zone, digits: usize, range: std::ops::RangeFrom<usize>| {
        zone.datetime(now, digits).map_or(Value::Null, |text| Value::text(&text[range]))
    };
    let date = |zone: Zone| zone.datetime(now, 0).map_or(Value::Null, |text| Value::text(&text[..10]));
    Some(match (name, arguments) {
        ("unix_timestamp", []) => Value::Integer(now.div_euclid(1_000_000).into()),
        ("unix_timestamp", [moment]) => match moment.to_text().map(|text| zone.parse_datetime(&text)) {
            None => Value::Null,
            Some(parsed) => Value::Integer(parsed.unwrap_or(0).div_euclid(1_000_000).into()),
        },
        ("now" | "current_timestamp" | "localtime" | "localtimestamp" | "sysdate", _) => text(zone, digits?),
        ("utc_timestamp", _) => text(Zone::UTC, digits?),
        ("curdate" | "current_date", []) => date(zone),
        ("utc_date", []) => date(Zone::UTC),
        ("curtime" | "current_time", _) => part(zone, digits?, 11..),
        ("utc_time", _) => part(Zone::UTC, digits?, 11..),
        _ => return None,
    })
}

/// Whether there is a function of this name, for other arguments.
fn is_known(context: &Context, name: &str) -> bool {
    let own = match context.facts.kind() {
        ServerKind::MySql => ["gtid_subset", "gtid_subtract"].as_slice(),
        ServerKind::MariaDb => &["binlog_gtid_pos"],
    };
    const NAMES: &[&str] = &[
        "version",
        "connection_id",
        "user",
        "session_user",
        "system_user",
        "current_user",
        "database",
        "schema",
        "last_insert_id",
        "uuid",
        "if",
        "ifnull",
        "nullif",
        "coalesce",
        "concat",
        "lower",
        "lcase",
        "upper",
        "ucase",
        "sha2",
        "unix_timestamp",
        "now",
        "current_timestamp",
        "localtime",
        "localtimestamp",
        "sysdate",
        "utc_timestamp",
        "curdate",
        "current_date",
        "utc_date",
        "curtime",
        "current_time",
        "utc_time",
    ];
    NAMES.contains(&name) || own.contains(&name)
}

fn map_text(value: &Value, map: impl Fn(&str) -> String) -> Value {
    value.to_text().map_or(Value::Null, |text| Value::Text(map(&text)))
}

fn concat(arguments: &[Value]) -> Result<Value, ErrPacket> {
    let mut all = String::new();
    for argument in arguments {
        let Some(text) = argument.to_text() else { return Ok(Value::Null) };
        if all.len() + text.len() > TEXT_BYTES_MAX {
            return Err(error::not_supported(format!("CONCAT makes at most {TEXT_BYTES_MAX} bytes here")));
        }
        all.push_str(&text);
    }
    Ok(Value::Text(all))
}

fn gtids(context: &Context, function: &str, left: &Value, right: &Value) -> Result<Value, ErrPacket> {
    let (Some(left), Some(right)) = (left.to_text(), right.to_text()) else { return Ok(Value::Null) };
    // Reading a set costs more than going through its bytes.
    context.spend((left.len() + right.len()) * 4)?;
    let set =
        |text: &str| text.parse::<GtidSet>().map_err(|error| error::malformed_gtids(&error.to_string()));
    let (left, right) = (set(&left)?, set(&right)?);
    Ok(match function {
        "gtid_subset" => Value::truth(right.contains_set(&left)),
        _ => Value::Text(left.subtract(&right).to_string()),
    })
}

/// A receiver asks for this of `@@gtid_executed`, which may be long, to see whether something has changed. Of the lengths
/// that a server has, 256 bits are known here (0 means the same); NULL for others, as for a length that no server has.
fn sha2(value: &Value, bits: &Value) -> Value {
    if !matches!(bits.to_integer(), Some(0 | 256)) {
        return Value::Null;
    }
    map_text(value, |text| Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A UUID of random bytes, version 4.
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    codec::gtid::Uuid::from_bytes(bytes).to_string()
}
