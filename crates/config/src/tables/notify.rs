//! The `[notify]` table: who is told when the judgement of a source changes.

use super::super::document::Document;
use super::super::error::Findings;
use super::super::key::ReloadEffect::AtOnce;
use super::super::key::{DAY, HOUR, Section, implied, ms, unset};
use super::super::table::table;
use std::time::Duration;
use wire::Secret;

table! {
    /// Who is told when the judgement of a source changes, and who is asked while all goes on. Without this
    /// table nobody is. Nothing waits for a receiver; one that is down is tried again, and told the newest.
    struct NotifyConfig, NotifyKeys for Section::Notify, AtOnce;

    /// Command for sh -c. It has BINLOGD_SOURCE, BINLOGD_LEVEL, BINLOGD_BEFORE, BINLOGD_REASONS and
    /// BINLOGD_HEADLINE in its environment, and one line of JSON on standard input. It has been told when it
    /// ends with 0 within 30 s. Do not hand over to the background: what is left of it then is killed.
    command: Option<String> = unset("\"/usr/local/bin/tell-dba\"");
    /// URL to which the same line of JSON is posted. It has been told when it answers with 2xx within 10 s.
    /// The URL is taken for a secret, and never shown.
    webhook: Option<Secret> = unset("\"https://alerts.example/hook/token\"");
    /// A source is not told of more often than this, to each receiver. What changed and changed back
    /// meanwhile is not told.
    at_most_every: Duration = implied("\"10s\"", "\"1m\"").lasting(ms(1000), HOUR);
    /// URL that is asked (GET) again and again while binlogd runs and its judgement is not critical: for a
    /// service that calls somebody when it is not asked any more. Never shown either.
    heartbeat: Option<Secret> = unset("\"https://alive.example/ping/token\"");
    /// Pause between two of these requests; 1m where it is not given.
    heartbeat_every: Duration = implied("\"1m\"", "\"5m\"").lasting(ms(1000), DAY);
}

/// Reads the table; `Some(None)` where there is none.
pub(super) fn build(document: &Document, findings: &mut Findings) -> Option<Option<NotifyConfig>> {
    let table = document.one(Section::Notify);
    if table.items.is_empty() {
        return Some(None);
    }
    let keys = NotifyKeys::read(&table, findings);
    if keys.command.given.is_none() && keys.webhook.given.is_none() && keys.heartbeat.given.is_none() {
        findings.error(&table.place, "[notify] tells nobody: give command, webhook or heartbeat");
    }
    keys.whole().map(Some)
}
