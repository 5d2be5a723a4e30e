//! What is shown of the binary logs and of replication.

use crate::answer::error;
use crate::answer::facts::{LogFile, Replica};
use crate::answer::reply::{Action, Answer};
use crate::answer::rows::{Column, Rows, some};
use crate::answer::session_state::context::Context;
use crate::answer::variables::gtid_lines;
use crate::sql::{Limit, Words, version_number};
use codec::ServerKind;

/// Since when MySQL's SHOW BINARY LOGS tells of encryption.
const ENCRYPTED_FROM: u32 = 80_014;

/// Offset of a file's first event: behind its magic bytes.
const FIRST_EVENT: u64 = 4;

/// SHOW BINARY LOGS.
pub(in crate::answer) fn binary_logs(context: &Context) -> Rows {
    let tells_encryption = context.facts.kind() == ServerKind::MySql
        && version_number(&context.facts.version()) >= ENCRYPTED_FROM;
    let mut columns = vec![Column::text("Log_name"), Column::unsigned("File_size")];
    if tells_encryption {
        columns.push(Column::text("Encrypted"));
    }
    let row = |file: LogFile| {
        let mut row = vec![Some(file.name), some(file.size)];
        if tells_encryption {
            row.push(some("No"));
        }
        row
    };
    Rows::of(columns, context.facts.binary_logs().into_iter().map(row).collect())
}

/// SHOW BINARY LOG STATUS: the end of what readers may have; no row where there is nothing yet.
pub(in crate::answer) fn binary_log_status(context: &Context) -> Rows {
    let has_gtids = context.facts.kind() == ServerKind::MySql;
    let mut columns = vec![
        Column::text("File"),
        Column::unsigned("Position"),
        Column::text("Binlog_Do_DB"),
        Column::text("Binlog_Ignore_DB"),
    ];
    if has_gtids {
        columns.push(Column::text("Executed_Gtid_Set"));
    }
    let row = context.facts.binary_logs().pop().map(|end| {
        let mut row = vec![Some(end.name), some(end.size), some(""), some("")];
        if has_gtids {
            row.push(Some(gtid_lines(context, &context.facts.gtid_executed())));
        }
        row
    });
    Rows::of(columns, row.into_iter().collect())
}

/// SHOW BINLOG EVENTS, which reads a file and so is the session's to do.
pub(in crate::answer) fn binlog_events(
    context: &Context,
    file: Option<&str>,
    from: Option<u64>,
    limit: Limit,
) -> Answer {
    let files = context.facts.binary_logs();
    let file = match file {
        None => files.first(),
        Some(name) => files.iter().find(|file| file.name == name),
    };
    match file {
        Some(file) => Answer::Act(Action::BinlogEvents {
            file: file.name.clone(),
            from: from.unwrap_or(FIRST_EVENT),
            end: file.size,
            limit,
        }),
        None => Answer::Error(error::no_such_log_to_show()),
    }
}

/// SHOW REPLICAS.
pub(in crate::answer) fn replicas(context: &Context, words: Words) -> Rows {
    let has_uuid = context.facts.kind() == ServerKind::MySql;
    let (server_id, source_id, uuid) = match words {
        Words::New => ("Server_Id", "Source_Id", "Replica_UUID"),
        Words::Old => ("Server_id", "Master_id", "Slave_UUID"),
    };
    let mut columns = vec![
        Column::integer(server_id),
        Column::text("Host"),
        Column::integer("Port"),
        Column::integer(source_id),
    ];
    if has_uuid {
        columns.push(Column::text(uuid));
    }
    let own_id = context.facts.server_id();
    let row = |replica: Replica| {
        let mut row = vec![some(replica.server_id), Some(replica.host), some(replica.port), some(own_id)];
        if has_uuid {
            row.push(Some(replica.uuid));
        }
        row
    };
    Rows::of(columns, context.facts.replicas().into_iter().map(row).collect())
}
