//! The answer to PURGE BINARY LOGS, in the servers' words as far as they have any.

use crate::answer::Answer;
use binlog::purge::plan::{NoSuchFile, Plan};
use codec::ServerKind;
use codec::packet::ErrPacket;
use std::io;

/// ER_UNKNOWN_TARGET_BINLOG.
const UNKNOWN_LOG: (u16, &str) = (1373, "Target log not found in binlog index");
/// ER_LOG_IN_USE. No server gives it as the answer to a purge, but MariaDB has no other number for a file that stays.
const IN_USE: u16 = 1378;
/// ER_WARN_PURGE_LOG_IN_USE: MySQL's purge stops at the first file in use with this warning, also when that is the first one
/// of all (`MYSQL_BIN_LOG::purge_logs`), and the statement succeeds.
const NOT_PURGED: u16 = 1867;
/// ER_BINLOG_PURGE_FATAL_ERR.
const FAILED: (u16, &str) = (1377, "Fatal error during log purge");

/// Says what a purge has done, and in the log too.
pub(crate) fn answer(purged: io::Result<Plan>, source: &str, kind: ServerKind) -> Answer {
    let plan = match purged {
        Ok(plan) => plan,
        Err(error) if error.get_ref().is_some_and(|inner| inner.is::<NoSuchFile>()) => {
            return Answer::Error(packet(UNKNOWN_LOG.0, UNKNOWN_LOG.1.to_owned()));
        }
        Err(error) => {
            tracing::error!(source, "a purge has failed: {error}");
            return Answer::Error(packet(FAILED.0, format!("{}: {error}", FAILED.1)));
        }
    };
    let gone = plan.goes();
    if let (Some(first), Some(last)) = (gone.first(), gone.last()) {
        let (files, bytes, from, through) = (gone.len(), plan.bytes(), &first.name, &last.name);
        tracing::info!(source, files, bytes, "purged {from} to {through} by a statement");
    }
    let Some((file, why)) = plan.kept() else { return Answer::Done };
    let (name, why, wanted) =
        (&file.name, why.join("; "), plan.files.iter().filter(|judged| judged.is_wanted).count());
    let told = format!(
        "file {name} was not purged because {why}, purged only {} out of {wanted} files.",
        gone.len()
    );
    Answer::Warned(packet(if kind == ServerKind::MySql { NOT_PURGED } else { IN_USE }, told))
}

fn packet(code: u16, message: String) -> ErrPacket {
    ErrPacket { code, sqlstate: "HY000".to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::purge::order::LogFile;
    use binlog::purge::plan::Judged;

    fn kept() -> Plan {
        let file =
            LogFile { folder: "0001-x".into(), name: "b.000001".to_owned(), bytes: 4, is_of_present: true };
        Plan { files: vec![Judged { file, stays: Some(vec!["of a slot".to_owned()]), is_wanted: true }] }
    }

    #[test]
    fn a_file_that_is_not_there_is_not_a_disk_that_lost_one() {
        let code = |error| match answer(Err(error), "a", ServerKind::MySql) {
            Answer::Error(packet) => packet.code,
            _ => panic!("an error"),
        };
        assert_eq!(code(io::Error::new(io::ErrorKind::NotFound, NoSuchFile("b.000009".to_owned()))), 1373);
        assert_eq!(code(io::Error::new(io::ErrorKind::NotFound, "timeline.toml is gone")), 1377);
    }

    /// As at a server: the statement succeeds, and warns.
    #[test]
    fn nothing_that_went_is_a_warning() {
        for (kind, number) in [(ServerKind::MySql, 1867), (ServerKind::MariaDb, 1378)] {
            let Answer::Warned(packet) = answer(Ok(kept()), "a", kind) else { panic!("a warning") };
            let told = "file b.000001 was not purged because of a slot, purged only 0 out of 1 files.";
            assert_eq!((packet.code, packet.message.as_str()), (number, told));
        }
    }
}
