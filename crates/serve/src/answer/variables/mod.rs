//! The values of system variables.

pub(in crate::answer) mod variable_table;

use super::error;
use crate::answer::session_state::context::Context;
use crate::answer::variables::variable_table::{Fact, Held, Kind, Origin, VARIABLES, Variable};
use crate::sql::{Scope, Value, version_number};
use codec::ServerKind;
use codec::packet::ErrPacket;

/// The variable of this name, where the server that is presented has one.
///
/// # Errors
/// 1193 where there is none.
pub(super) fn find(context: &Context, name: &str) -> Result<&'static Variable, ErrPacket> {
    let found = VARIABLES.binary_search_by(|variable| variable.name.cmp(name)).ok().map(|at| &VARIABLES[at]);
    let found = found.filter(|variable| is_there(context, variable));
    found.ok_or_else(|| error::unknown_variable(name))
}

fn is_there(context: &Context, variable: &Variable) -> bool {
    variable.servers.include(context.facts.kind(), version_number(&context.facts.version()))
}

/// `@@name` and `@@scope.name` of a SELECT.
///
/// # Errors
/// 1193 for a variable that there is not, 1238 for one that has no value of this scope.
pub(super) fn read(context: &Context, scope: Option<Scope>, name: &str) -> Result<Value, ErrPacket> {
    let variable = find(context, name)?;
    match (scope, variable.held) {
        (Some(Scope::Global), Held::Session) => return Err(error::wrong_scope(name, "SESSION")),
        // MariaDB gives the global value.
        (Some(Scope::Session), Held::Global | Held::ReadOnly)
            if context.facts.kind() == ServerKind::MySql =>
        {
            return Err(error::wrong_scope(name, "GLOBAL"));
        }
        _ => {}
    }
    let Some(text) = shown(context, variable, scope.unwrap_or(Scope::Session)) else {
        return Ok(Value::Null);
    };
    Ok(match variable.kind {
        Kind::Boolean => Value::truth(text == "ON"),
        Kind::Integer => text.parse().map_or(Value::Text(text), Value::Integer),
        _ => Value::Text(text),
    })
}

/// Names and values as SHOW VARIABLES has them.
pub(super) fn list(context: &Context, scope: Scope) -> Vec<(&'static str, Option<String>)> {
    let wanted = |variable: &&Variable| {
        is_there(context, variable) && !(scope == Scope::Global && variable.held == Held::Session)
    };
    VARIABLES.iter().filter(wanted).map(|variable| (variable.name, shown(context, variable, scope))).collect()
}

/// The value as SHOW VARIABLES has it; `None` is NULL.
pub(super) fn shown(context: &Context, variable: &Variable, scope: Scope) -> Option<String> {
    let setting = context.session.setting(variable.name).filter(|_| scope == Scope::Session);
    setting.cloned().unwrap_or_else(|| Some(global(context, variable)))
}

fn global(context: &Context, variable: &Variable) -> String {
    let facts = context.facts;
    let said = || facts.source_variable(variable.name);
    let either = |mysql: &str, mariadb: &str| match facts.kind() {
        ServerKind::MySql => mysql.to_owned(),
        ServerKind::MariaDb => mariadb.to_owned(),
    };
    match variable.origin {
        Origin::Fixed(value) => value.to_owned(),
        Origin::Either(mysql, mariadb) => either(mysql, mariadb),
        Origin::Source(value) => said().unwrap_or_else(|| value.to_owned()),
        Origin::SourceEither(mysql, mariadb) => said().unwrap_or_else(|| either(mysql, mariadb)),
        Origin::Fact(fact) => of_fact(context, fact),
    }
}

fn of_fact(context: &Context, fact: Fact) -> String {
    let facts = context.facts;
    match fact {
        Fact::Version => facts.version(),
        Fact::VersionOfEngine => {
            let version = facts.version();
            version.split('-').next().unwrap_or(&version).to_owned()
        }
        Fact::ServerId => facts.server_id().to_string(),
        Fact::ServerUuid => facts.server_uuid().unwrap_or_default(),
        Fact::GtidExecuted => gtid_lines(context, &facts.gtid_executed()),
        Fact::GtidPurged => gtid_lines(context, &facts.gtid_purged()),
        Fact::GtidBinlogState => facts.gtid_binlog_state(),
        Fact::Hostname => facts.hostname(),
        Fact::Port => facts.port().to_string(),
        Fact::MaxAllowedPacket => facts.max_allowed_packet().to_string(),
        Fact::SemiSyncEnabled => if facts.semi_sync().enabled { "ON" } else { "OFF" }.to_owned(),
        Fact::SemiSyncTimeout => facts.semi_sync().timeout.as_millis().to_string(),
        Fact::SemiSyncCount => facts.semi_sync().wait_for.to_string(),
        Fact::WaitTimeout => facts.wait_timeout().as_secs().to_string(),
        Fact::NetWriteTimeout => facts.net_write_timeout().as_secs().to_string(),
        Fact::ConnectionsMax => facts.connections_max().to_string(),
        Fact::ConnectionId => context.client.connection_id.to_string(),
        Fact::InTransaction => u8::from(context.session.in_transaction).to_string(),
        Fact::Timestamp => {
            let now = facts.now();
            format!("{}.{:06}", now.div_euclid(1_000_000), now.rem_euclid(1_000_000))
        }
        Fact::RequireSecureTransport => if facts.requires_tls() { "ON" } else { "OFF" }.to_owned(),
        Fact::Timelines => facts.timelines(),
        Fact::History => facts.history(),
        Fact::ErrorCount => usize::from(context.session.last_error.is_some()).to_string(),
    }
}

/// A GTID set as MySQL shows it: a line feed behind the comma between two UUIDs.
pub(super) fn gtid_lines(context: &Context, set: &str) -> String {
    match context.facts.kind() {
        ServerKind::MySql => set.replace(',', ",\n"),
        ServerKind::MariaDb => set.to_owned(),
    }
}
