//! A host that is another binlogd: what it says of its timelines.
//!
//! Its port presents the server whose log it receives now, and sends the files of several. So it is asked for its timelines, and
//! each connection reads one of them alone (`mirror.rs`).

use super::above_error::AboveError;
use super::peer;
use crate::attempt::attempt_error::AttemptError;
use binlog::timeline::described;
use binlog::timeline::described::{Described, Descriptions};
use binlog::timeline::extent::Extent;
use source::complaint::ER_UNKNOWN_SYSTEM_VARIABLE;
use source::identify::{SourceIdentity, SourceSemiSync};
use wire::{Connection, ResultSet, WireError};

/// How the `version_comment` of a binlogd begins, which is no server's.
const COMMENT: &str = "binlogd";

/// Asks a host for its timelines. `None` where it is a server.
///
/// # Errors
/// When the connection fails, or a binlogd does not tell.
pub(crate) fn ask(connection: &mut Connection) -> Result<Option<Descriptions>, AttemptError> {
    let statement = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('binlogd_timelines', 'version_comment')";
    if !is_binlogd(connection.query(statement))? {
        return Ok(None);
    }
    let above = match connection.query("SELECT @@global.binlogd_history") {
        Ok(rows) => match rows.first().unwrap_or_default() {
            "" => return Err(AboveError::Nothing.into()),
            text => described::parse(text).map_err(AboveError::Senseless)?,
        },
        Err(WireError::Server { code: ER_UNKNOWN_SYSTEM_VARIABLE, .. }) => by_extents(connection)?,
        Err(error) => return Err(error.into()),
    };
    Ok(Some(above))
}

/// Whether it is one, by its variables. Whoever answers with an error has not said that it is a server: a binlogd that is taken for one
/// would send files of several servers as those of one.
fn is_binlogd(answer: Result<ResultSet, WireError>) -> Result<bool, AttemptError> {
    let rows = match answer {
        Ok(rows) => rows,
        Err(WireError::Server { code: ER_UNKNOWN_SYSTEM_VARIABLE, .. }) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let value = |name: &str| {
        let is_it = |row: &usize| {
            rows.get(*row, "Variable_name").is_some_and(|found| found.eq_ignore_ascii_case(name))
        };
        (0..rows.rows.len()).find(is_it).map(|row| rows.get(row, "Value").unwrap_or_default())
    };
    let says_so = value("version_comment").is_some_and(|comment| comment.starts_with(COMMENT));
    match value("binlogd_timelines") {
        Some(_) => Ok(true),
        None if says_so => Err(AboveError::Old.into()),
        None => Ok(false),
    }
}

/// Of a binlogd that tells of its timelines only where they begin and end.
fn by_extents(connection: &mut Connection) -> Result<Descriptions, AttemptError> {
    let said = peer::ask(connection).map_err(|error| match error {
        peer::PeerError::Wire(error) => AttemptError::from(error),
        error => AboveError::Senseless(error.to_string()).into(),
    })?;
    let described = |extent: Extent| Described {
        name: extent.timeline.clone(),
        extent: Some(extent),
        is_pending: false,
        info: None,
        unreadable: None,
    };
    let timelines: Vec<Described> = said.extents.into_iter().map(described).collect();
    let live = timelines.len().checked_sub(1).ok_or(AboveError::Nothing)?;
    Ok(Descriptions { timelines, live, is_past_known: true })
}

/// What stands for the source while one timeline is received: its server. What was executed is what the binlogd `presented` holds.
/// Of one that is not written any more there is nothing to acknowledge. And a binlogd is no standby, whatever it says of `read_only`.
pub(crate) fn identity(presented: &SourceIdentity, of: &Described, is_live: bool) -> SourceIdentity {
    let mut source = presented.clone();
    of.server_uuid().clone_into(&mut source.uuid);
    if let Some(info) = &of.info {
        (source.kind, source.version) = (info.server_kind, info.server_version.clone());
    }
    if !is_live {
        source.semi_sync = SourceSemiSync::Absent;
    }
    source.is_read_only = false;
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binlogd_that_does_not_tell_its_timelines_is_no_server() {
        let said = |pairs: &[(&str, &str)]| {
            let bytes = |text: &str| Some(text.as_bytes().to_vec());
            let rows = pairs.iter().map(|(name, value)| vec![bytes(name), bytes(value)]).collect();
            is_binlogd(Ok(ResultSet { columns: vec!["Variable_name".to_owned(), "Value".to_owned()], rows }))
        };
        let comment = ("version_comment", "binlogd, which keeps and serves binary logs");
        assert!(said(&[("binlogd_timelines", ""), comment]).unwrap());
        assert!(
            !said(&[("version_comment", "MySQL Community Server - GPL")]).unwrap() && !said(&[]).unwrap()
        );
        let refused = said(&[comment]).unwrap_err().to_string();
        assert!(refused.contains("older version") && refused.contains("update that binlogd"), "{refused}");
    }

    #[test]
    fn only_who_does_not_know_the_variable_is_a_server() {
        let said = |code, message: &str| {
            let (sqlstate, message) = ("HY000".to_owned(), message.to_owned());
            is_binlogd(Err(WireError::Server { code, sqlstate, message }))
        };
        assert!(!said(ER_UNKNOWN_SYSTEM_VARIABLE, "Unknown system variable").unwrap());
        for (code, message) in
            [(1105, "not now"), (1053, "Server shutdown in progress"), (1040, "Too many connections")]
        {
            let error = said(code, message).unwrap_err();
            assert!(error.to_string().contains(message) && error.is_of_host(), "{error}");
        }
        let denied =
            WireError::AccessDenied { code: 1227, sqlstate: "42000".to_owned(), message: "no".to_owned() };
        assert!(is_binlogd(Err(denied)).is_err());
    }
}
