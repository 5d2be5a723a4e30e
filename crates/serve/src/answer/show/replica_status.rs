//! SHOW REPLICA STATUS: our own receiving in the columns that operators and their tools know.
//!
//! Columns as MySQL 9.7 and MariaDB 11.8 show them. What a server applies, binlogd stores: the positions of the
//! applier are those of what is durable, and the relay log is the copy.

use crate::answer::evaluate::time::Zone;
use crate::answer::facts::{Receiving, Upstream};
use crate::answer::rows::{Column, Rows};
use crate::answer::session_state::context::Context;
use crate::answer::variables::gtid_lines;
use crate::sql::Words;
use codec::ServerKind;

/// Columns in order, in the new words, each with its value.
struct Columns(Vec<(Column, Option<String>)>);

impl Columns {
    fn text(&mut self, title: &str, value: impl ToString) {
        self.0.push((Column::text(title), Some(value.to_string())));
    }

    /// A number, or NULL.
    fn number(&mut self, title: &str, value: impl Into<Option<u64>>) {
        self.0.push((Column::integer(title), value.into().map(|number| number.to_string())));
    }

    /// Columns that have nothing to say.
    fn empty(&mut self, titles: &[&str]) {
        for title in titles {
            self.text(title, "");
        }
    }
}

/// The one row. MariaDB has the old words always; `all` is SHOW ALL SLAVES STATUS, which has two columns more in front.
pub(in crate::answer) fn replica_status(context: &Context, words: Words, all: bool) -> Rows {
    let upstream = context.facts.upstream();
    let kind = context.facts.kind();
    let mut columns = Columns(Vec::new());
    if all {
        columns.text("Connection_name", "");
        columns.text("Replica_SQL_State", storing(&upstream));
    }
    both(&mut columns, &upstream);
    match kind {
        ServerKind::MySql => mysql(&mut columns, &upstream, context),
        ServerKind::MariaDb => mariadb(&mut columns, &upstream),
    }
    if all {
        columns.number("Retried_transactions", 0);
        columns.text("Gtid_Slave_Pos", &upstream.durable_gtids);
    }
    let old = words == Words::Old || kind == ServerKind::MariaDb;
    let (columns, row) = columns.0.into_iter().unzip();
    let rename =
        |column: Column| if old { Column { title: in_old_words(&column.title), ..column } } else { column };
    Rows::of(Vec::into_iter(columns).map(rename).collect(), vec![row])
}

fn in_old_words(title: &str) -> String {
    match title {
        "Get_Source_public_key" => "Get_master_public_key".to_owned(),
        // Not every Replica is one: Replicate_Do_DB.
        _ => title.replace("Source", "Master").replace("Replica_", "Slave_"),
    }
}

fn storing(upstream: &Upstream) -> &'static str {
    match upstream.receiving {
        Receiving::No => "",
        _ => "Stores what arrives; binlogd applies nothing",
    }
}

fn both(columns: &mut Columns, upstream: &Upstream) {
    let error = (u64::from(upstream.error_number), upstream.error.as_str());
    columns.text("Replica_IO_State", &upstream.state);
    columns.text("Source_Host", &upstream.host);
    columns.text("Source_User", &upstream.user);
    columns.number("Source_Port", u64::from(upstream.port));
    columns.number("Connect_Retry", 60);
    columns.text("Source_Log_File", &upstream.file);
    columns.number("Read_Source_Log_Pos", upstream.received);
    columns.text("Relay_Log_File", &upstream.file);
    columns.number("Relay_Log_Pos", upstream.durable);
    columns.text("Relay_Source_Log_File", &upstream.file);
    let running = match upstream.receiving {
        Receiving::No => "No",
        Receiving::Connecting => "Connecting",
        Receiving::Yes => "Yes",
    };
    columns.text("Replica_IO_Running", running);
    columns.text("Replica_SQL_Running", if upstream.receiving == Receiving::No { "No" } else { "Yes" });
    columns.empty(&[
        "Replicate_Do_DB",
        "Replicate_Ignore_DB",
        "Replicate_Do_Table",
        "Replicate_Ignore_Table",
        "Replicate_Wild_Do_Table",
        "Replicate_Wild_Ignore_Table",
    ]);
    // The applier's, which there is none.
    columns.number("Last_Errno", 0);
    columns.text("Last_Error", "");
    columns.number("Skip_Counter", 0);
    columns.number("Exec_Source_Log_Pos", upstream.durable);
    columns.number("Relay_Log_Space", upstream.received);
    columns.text("Until_Condition", "None");
    columns.text("Until_Log_File", "");
    columns.number("Until_Log_Pos", 0);
    columns.text("Source_SSL_Allowed", if upstream.tls.is_some() { "Yes" } else { "No" });
    columns.empty(&[
        "Source_SSL_CA_File",
        "Source_SSL_CA_Path",
        "Source_SSL_Cert",
        "Source_SSL_Cipher",
        "Source_SSL_Key",
    ]);
    columns.number("Seconds_Behind_Source", upstream.seconds_behind);
    columns.text("Source_SSL_Verify_Server_Cert", "No");
    columns.number("Last_IO_Errno", error.0);
    columns.text("Last_IO_Error", error.1);
    columns.number("Last_SQL_Errno", 0);
    columns.empty(&["Last_SQL_Error", "Replicate_Ignore_Server_Ids"]);
    columns.number("Source_Server_Id", u64::from(upstream.server_id));
}

fn mysql(columns: &mut Columns, upstream: &Upstream, context: &Context) {
    let gtids = gtid_lines(context, &upstream.durable_gtids);
    // As a server writes it here: 261122 23:43:06.
    let error_time = upstream.error_time.and_then(|micros| Zone::UTC.datetime(micros, 0));
    let error_time = error_time.map_or(String::new(), |time| time[2..].replace('-', ""));
    columns.text("Source_UUID", &upstream.server_uuid);
    columns.text("Source_Info_File", "");
    columns.number("SQL_Delay", 0);
    columns.number("SQL_Remaining_Delay", None);
    columns.text("Replica_SQL_Running_State", storing(upstream));
    columns.number("Source_Retry_Count", 0);
    columns.text("Source_Bind", "");
    columns.text("Last_IO_Error_Timestamp", error_time);
    columns.empty(&["Last_SQL_Error_Timestamp", "Source_SSL_Crl", "Source_SSL_Crlpath"]);
    columns.text("Retrieved_Gtid_Set", &gtids);
    columns.text("Executed_Gtid_Set", &gtids);
    columns.number("Auto_Position", 0);
    columns.empty(&["Replicate_Rewrite_DB", "Channel_Name"]);
    columns.text("Source_TLS_Version", upstream.tls.as_deref().unwrap_or(""));
    columns.text("Source_public_key_path", "");
    columns.number("Get_Source_public_key", 0);
    columns.text("Network_Namespace", "");
}

fn mariadb(columns: &mut Columns, upstream: &Upstream) {
    columns.empty(&["Source_SSL_Crl", "Source_SSL_Crlpath"]);
    columns.text("Using_Gtid", "No");
    columns.text("Gtid_IO_Pos", &upstream.durable_gtids);
    columns.empty(&["Replicate_Do_Domain_Ids", "Replicate_Ignore_Domain_Ids"]);
    columns.text("Parallel_Mode", "none");
    columns.number("SQL_Delay", 0);
    columns.number("SQL_Remaining_Delay", None);
    columns.text("Replica_SQL_Running_State", storing(upstream));
    for title in ["Replica_DDL_Groups", "Replica_Non_Transactional_Groups", "Replica_Transactional_Groups"] {
        columns.number(title, 0);
    }
    columns.text("Replicate_Rewrite_DB", "");
}
