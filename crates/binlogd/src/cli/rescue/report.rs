//! What a rescue has found and done, for people and for programs.

use super::super::rescue_guard::passed_over;
use super::super::{style, units};
use binlog::forks::{Fate, Forks, Place};
use binlog::storage::posix::PosixStorage;
use codec::gtid::TransactionId;
use config::HostPort;
use repair::detail::Known;
use repair::rescue::print::{Purpose, Script};
use repair::rescue::{Compared, Lacked, Plan, Version};
use serde_json::{Value, json};
use std::io;
use std::path::Path;

/// What was found, for people and for programs.
pub(super) struct Report<'a> {
    /// Name of the source.
    pub(super) name: &'a str,
    /// The target.
    pub(super) host: &'a HostPort,
    /// Version of the target.
    pub(super) version: &'a str,
    pub(super) plan: &'a Plan,
    /// What peers alone hold, and those that could not be asked: a sentence each.
    pub(super) peers: Vec<String>,
    /// What the target has already, compared; empty where nothing was.
    pub(super) compared: Compared,
}

impl Report<'_> {
    /// What the target lacks although its GTIDs count it as there, as its binary log shows; empty when it is nothing known.
    pub(super) fn passed_over(&self) -> String {
        passed_over(&self.compared)
    }

    pub(super) fn show(&self, listed_max: usize) {
        let Report { name, host, version, plan, .. } = self;
        let (count, version) = (plan.lacked().count(), style::clean(version));
        if count > 0 {
            outln!(
                "{host} ({version}) lacks {} ({}) that the copy of {name} holds: {}",
                units::counted(count as u64, "transaction"),
                units::bytes(plan.size()),
                plan.all_lacked().to_line()
            );
            let listed = plan.transactions.len().min(listed_max);
            for line in table(&plan.transactions[..listed]) {
                outln!("  {line}");
            }
            if plan.transactions.len() > listed {
                let more = units::count((plan.transactions.len() - listed) as u64);
                outln!("  … and {more} more; --dry-run lists all");
            }
            let refused: Vec<Lacked> = plan.refused.iter().map(|(lacked, _)| lacked.clone()).collect();
            for (title, lacked) in [("cannot be handed over", &refused), ("are left out", &plan.left_out)] {
                if !lacked.is_empty() {
                    outln!("{}, which {title}:", units::count(lacked.len() as u64));
                    for line in table(lacked) {
                        outln!("  {line}");
                    }
                }
            }
        }
        // What is left out has just been shown.
        for line in self.missing_but_left_out() {
            outln!("warning: {line}");
        }
        if !plan.accepted.is_empty() {
            let accepted = plan.accepted.to_line();
            outln!("note: the loss of {accepted} was accepted, and they are not handed over");
        }
        if !plan.lost_once.is_empty() {
            outln!(
                "note: it lost {} once and has these GTIDs now: handed back since, or given to other transactions after its \
                 crash; if clients wrote to it before a rescue, compare the rows",
                plan.lost_once.to_line()
            );
        }
    }

    /// The last word when nothing is to be handed over, after what is there was compared.
    pub(super) fn nothing_to_do(&self) {
        let Report { name, host, version, plan, .. } = self;
        let passed_over = self.passed_over();
        let version = style::clean(version);
        if !passed_over.is_empty() {
            outln!("{host} ({version}) does not have all that the copy of {name} holds");
            outln!("warning: {passed_over}");
        } else if plan.lacked().next().is_some() {
            // What is left out has been shown.
        } else if self.missing().is_empty() {
            outln!("{host} ({version}) has every transaction that the copy of {name} holds");
        } else if !self.peers.is_empty() {
            outln!(
                "{host} ({version}) lacks nothing of the copy of {name}; what that copy itself lacks is said above"
            );
        } else if plan.gtids_known {
            outln!("{host} ({version}) has every transaction with a GTID that the copy of {name} holds");
        } else {
            outln!(
                "nobody can say what {host} ({version}) lacks of the copy of {name}: the copy has no GTIDs"
            );
        }
    }

    /// What the target lacks, or may lack, when everything was handed over.
    pub(super) fn missing(&self) -> Vec<String> {
        let left_out = self.plan.left_out.iter().map(|lacked| {
            // Its positions name the newest transaction only.
            let unseen = match lacked.id {
                TransactionId::Mysql(_) => "",
                TransactionId::Mariadb(_) => "; MariaDB counts it as there, so no rescue will tell it again",
            };
            let changes = style::clean(&lacked.changes.join(", "));
            format!("left out, and missing there: {} ({changes}){unseen}", lacked.id)
        });
        let passed_over = Some(self.passed_over()).filter(|text| !text.is_empty());
        left_out.chain(self.missing_but_left_out()).chain(passed_over).collect()
    }

    fn missing_but_left_out(&self) -> Vec<String> {
        let plan = self.plan;
        let mut missing = self.peers.clone();
        let before = plan.not_held.subtract(&plan.never_copied).subtract(&plan.moved_away);
        if !before.is_empty() {
            missing.push(format!(
                "it also lacks {}, which were executed before the copy began and stand in none of its files: a backup of the \
                 source has them",
                before.to_line()
            ));
        }
        if !plan.never_copied.is_empty() {
            missing.push(format!(
                "it also lacks {}, which the copy never got, because the source had purged them or could not read them (a gap): a \
                 backup of the source has them",
                plan.never_copied.to_line()
            ));
        }
        if !plan.moved_away.is_empty() {
            missing.push(format!(
                "it also lacks {}, which stood in files that were purged or moved away ([[purged]] or kept_from in timeline.toml), \
                 unless they were executed before these: replay these files from a backup with the server's own mysqlbinlog; or stop \
                 binlogd, put the files back, take those lines out of timeline.toml, and start binlogd again",
                plan.moved_away.to_line()
            ));
        }
        if plan.given_twice > 0 {
            missing.push(format!(
                "{} given twice, and the copy holds two transactions under each; none of them is handed over: {}. \
                 binlogd forks lists them, and records with --settle that the data is as it should be",
                units::counted_were(plan.given_twice, "GTID"),
                plan.given_twice_gtids.to_line()
            ));
        }
        if plan.anonymous > 0 {
            missing.push(format!(
                "{} of the copy {} no GTID; nobody can say whether the target has them: compare its tables, or \
                 restore a backup and replay the files behind it with the server's own mysqlbinlog",
                units::counted(plan.anonymous, "transaction"),
                if plan.anonymous == 1 { "has" } else { "have" }
            ));
        }
        missing
    }

    /// The last word. It says "all" only when it was all.
    pub(super) fn done(&self, verified: &str) {
        let Report { host, plan, .. } = self;
        let missing = self.missing();
        let count = plan.transactions.len() as u64;
        let which = if missing.is_empty() { "all" } else { "these" };
        outln!(
            "{host} now has {which} {}, {verified}: {}",
            units::counted(count, "transaction"),
            plan.gtids.to_line()
        );
        for line in missing {
            outln!("warning: {line}");
        }
    }

    /// Of each GTID that was given twice, and of what the target lacks: what a rescue hands over as comments.
    pub(super) fn statements(&self, source_folder: &Path, overwrite: bool) -> io::Result<Vec<u8>> {
        let mut script =
            Script::new("", !self.plan.transactions.is_empty(), overwrite, Known::default(), false);
        let mut printed = Vec::new();
        if let Some(forks) = Forks::read(&PosixStorage, source_folder, || true)? {
            for (id, lost) in forks.open(Fate::GivenTwice) {
                script.versions(&id, lost, Fate::GivenTwice)?;
                printed.push(id);
            }
        }
        let by_rescue = self
            .plan
            .transactions
            .iter()
            .map(|lacked| (lacked, "binlogd rescue hands it over".to_owned(), Purpose::Read));
        let refused = self.plan.refused.iter().map(|(lacked, why)| {
            (lacked, format!("binlogd rescue cannot hand it over: {why}"), Purpose::Read)
        });
        let left_out = self.plan.left_out.iter().map(|lacked| (lacked, "left out".to_owned(), Purpose::Run));
        for (lacked, how, purpose) in by_rescue.chain(refused).chain(left_out) {
            if printed.contains(&lacked.id) {
                continue;
            }
            let place = Place { path: lacked.path.as_path().into(), at: lacked.at, end: lacked.end };
            let about = format!("which {} lacks; {how}; {}", self.host, time(lacked.timestamp));
            script.transaction(&lacked.id, &place, &about, purpose)?;
        }
        Ok(script.finish())
    }

    /// Why nothing is sent at all.
    pub(super) fn refusal(&self) -> String {
        let ids: Vec<String> = self.plan.refused.iter().map(|(lacked, _)| lacked.id.to_string()).collect();
        let refused: Vec<String> = self
            .plan
            .refused
            .iter()
            .map(|(lacked, why)| format!("  {} ({}): {why}", lacked.id, place(lacked)))
            .collect();
        // Those that wait for a decision, or for their place, any program would have to leave out.
        let by_statements = self.plan.refused.len() as u64 > self.plan.refused_for_order;
        let how = if by_statements {
            "A replica, or the server's own mysqlbinlog, can take them from the files named. "
        } else {
            ""
        };
        format!(
            "nothing was sent, because these transactions cannot be handed over{}:\n{}\n{}To hand over the others without them: \
             --leave-out {}",
            if by_statements { " by statements" } else { "" },
            refused.join("\n"),
            how,
            ids.join(",")
        )
    }

    pub(super) fn json(&self, handed_over: bool) {
        let plan = self.plan;
        let complete = plan.refused.is_empty()
            && self.missing().is_empty()
            && self.compared.differing() == 0
            && (handed_over || plan.transactions.is_empty());
        let transactions: Vec<Value> = plan.transactions.iter().map(described).collect();
        let left_out: Vec<Value> = plan.left_out.iter().map(described).collect();
        let refused: Vec<Value> = self
            .plan
            .refused
            .iter()
            .map(|(lacked, why)| json!({ "gtid": lacked.id.to_string(), "reason": why, "changes": lacked.changes }))
            .collect();
        let report = json!({
            "source": self.name,
            "target": self.host.to_string(),
            "target_version": self.version,
            "gtids": self.plan.gtids.to_line(),
            "transactions": transactions,
            "cannot_be_handed_over": refused,
            "left_out": left_out,
            "not_in_the_copy": self.plan.not_held.to_line(),
            "lost_once": self.plan.lost_once.to_line(),
            "gtids_given_twice": self.plan.given_twice,
            "given_twice": self.plan.given_twice_gtids.to_line(),
            "loss_accepted": self.plan.accepted.to_line(),
            "without_gtid": self.plan.anonymous,
            "peers": self.peers,
            "compared": compared(&self.compared),
            "handed_over": handed_over,
            "complete": complete,
        });
        outln!("{}", serde_json::to_string_pretty(&report).expect("plain data"));
    }
}

/// The comparison of what the target has already, for programs. Lists hold the first ones.
fn compared(compared: &Compared) -> Value {
    let version = |version: &Version| {
        json!({
            "began_at": time(version.began),
            "bytes": version.size,
            "changes": version.changes,
            "place": version.place,
        })
    };
    let different = compared.different.iter().map(|difference| {
        json!({
            "gtid": difference.id.to_string(),
            "in_the_copy": version(&difference.copy),
            "on_the_target": version(&difference.target),
        })
    });
    let missing = compared
        .missing
        .iter()
        .map(|missing| json!({ "gtid": missing.id.to_string(), "in_the_copy": version(&missing.copy) }));
    json!({
        "same": compared.same,
        "different": compared.differing(),
        "differences": different.collect::<Vec<_>>(),
        "missing": compared.missing(),
        "missing_gtids": compared.missing_gtids.to_string(),
        "missing_transactions": missing.collect::<Vec<_>>(),
        "not_in_its_log": compared.not_in_its_log,
        "not_in_its_log_gtids": compared.not_in_its_log_gtids.to_string(),
        "not_comparable": compared.unclear,
    })
}

/// One transaction for programs.
fn described(lacked: &Lacked) -> Value {
    json!({
        "gtid": lacked.id.to_string(),
        "began_at": time(lacked.timestamp),
        "bytes": lacked.size(),
        "changes": lacked.changes,
        "timeline": lacked.timeline,
        "file": file_name(&lacked.path),
        "position": lacked.at,
    })
}

/// One line a transaction, in columns.
fn table(transactions: &[Lacked]) -> Vec<String> {
    let cells: Vec<[String; 4]> = transactions
        .iter()
        .map(|lacked| {
            let changes = style::clean(&lacked.changes.join(", "));
            [lacked.id.to_string(), time(lacked.timestamp), units::bytes(lacked.size()), changes]
        })
        .collect();
    let heads = ["GTID", "began (UTC)", "size", "changes"].map(str::to_owned);
    let width = |column: usize| {
        cells.iter().chain([&heads]).map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let (id, began, size) = (width(0), width(1), width(2));
    [&heads]
        .into_iter()
        .chain(&cells)
        .map(|row| format!("{:<id$}  {:<began$}  {:>size$}  {}", row[0], row[1], row[2], row[3]))
        .collect()
}

fn time(seconds: u32) -> String {
    jiff::Timestamp::from_second(i64::from(seconds)).map_or_else(|_| "?".into(), |at| at.to_string())
}

fn place(lacked: &Lacked) -> String {
    format!("{}/{} at {}", lacked.timeline, file_name(&lacked.path), lacked.at)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_stand_in_columns() {
        let lacked = |id: &str, changes: &[&str]| Lacked {
            id: id.parse::<codec::gtid::Gtid>().unwrap().into(),
            timeline: "0001-a".into(),
            path: "x/b.000001".into(),
            at: 100,
            end: 400,
            timestamp: 1_700_000_000,
            changes: changes.iter().map(|change| (*change).to_owned()).collect(),
        };
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let lines = table(&[
            lacked(&format!("{uuid}:9"), &["shop.orders", "shop.lines"]),
            lacked(&format!("{uuid}:10"), &["CREATE TABLE x\x1b (id INT)"]),
        ]);
        assert_eq!(lines[0], format!("GTID{}began (UTC)            size  changes", " ".repeat(37)));
        assert_eq!(lines[1], format!("{uuid}:9   2023-11-14T22:13:20Z  300 B  shop.orders, shop.lines"));
        assert_eq!(lines[2], format!("{uuid}:10  2023-11-14T22:13:20Z  300 B  CREATE TABLE x  (id INT)"));
    }
}
