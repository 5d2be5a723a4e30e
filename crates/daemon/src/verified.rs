//! What `binlogd verify` has left in the folders of the sources, for the status.

use binlog::storage::posix::PosixStorage;
use binlog::verify::outcome;
use status::{DaemonMonitor, SourceMonitor, Verified, units};
use std::collections::BTreeSet;

/// Looks whether there is news.
#[derive(Debug, Default)]
pub(super) struct VerifiedLook {
    /// Sources whose file cannot be read: that is said once.
    failed: BTreeSet<String>,
}

impl VerifiedLook {
    /// Reads the file of each source, and says in the log when a copy is damaged.
    pub(super) fn take(&mut self, monitor: &DaemonMonitor) {
        for source in monitor.sources() {
            match outcome::read(&PosixStorage, &monitor.data_dir().join(source.name())) {
                Ok(outcome) => {
                    self.failed.remove(source.name());
                    let verified = outcome.map(|it| Verified { at: it.at, findings: it.findings });
                    publish(&source, verified);
                }
                Err(error) => {
                    if self.failed.insert(source.name().to_owned()) {
                        tracing::warn!(
                            source = source.name(),
                            "what binlogd verify found last cannot be read: {error}"
                        );
                    }
                }
            }
        }
    }
}

fn publish(source: &SourceMonitor, verified: Option<Verified>) {
    let before = source.facts().verified;
    if before == verified {
        return;
    }
    source.update_facts(|facts| facts.verified = verified);
    match verified {
        Some(Verified { at, findings }) if findings > 0 => tracing::error!(
            source = source.name(),
            "binlogd verify found damage in the copy at {at}: {}. Run it again to see which \
             (docs/runbook.md, \"The copy is damaged\")",
            units::counted(findings, "problem")
        ),
        Some(Verified { at, .. }) if before.is_some_and(|before| before.findings > 0) => {
            tracing::info!(source = source.name(), "binlogd verify found no damage any more, at {at}");
        }
        _ => {}
    }
}
