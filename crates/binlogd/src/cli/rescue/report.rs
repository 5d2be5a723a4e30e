//! What a rescue has found and done, for people and for programs.

use super::super::{style, units};
use repair::rescue::{Compared, Found, Lack, Lacked, Version, time};
use serde_json::{Value, json};

/// What was found, for people and for programs.
pub(super) struct Report<'a>(pub(super) &'a Found);

impl Report<'_> {
    pub(super) fn show(&self, listed_max: usize) {
        let Found { name, host, version, plan, .. } = self.0;
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
        // What is left out has just been shown, and nothing is compared yet.
        for lack in self.0.lacks().iter().filter(|lack| !matches!(lack, Lack::LeftOut(..))) {
            warn(&lack.to_string());
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
        let Found { name, host, version, plan, .. } = self.0;
        let version = style::clean(version);
        let passed_over = self.0.compared.passed_over();
        if !passed_over.is_empty() {
            outln!("{host} ({version}) does not have all that the copy of {name} holds");
            warn(&passed_over);
        } else if plan.lacked().next().is_some() {
            // What is left out has been shown.
        } else if self.0.lacks().is_empty() {
            outln!("{host} ({version}) has every transaction that the copy of {name} holds");
        } else if !self.0.peers.is_empty() {
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

    /// The last word. It says "all" only when it was all.
    pub(super) fn done(&self, verified: &str) {
        let Found { host, plan, .. } = self.0;
        let lacks = self.0.lacks();
        let count = plan.transactions.len() as u64;
        let which = if lacks.is_empty() { "all" } else { "these" };
        outln!(
            "{host} now has {which} {}, {verified}: {}",
            units::counted(count, "transaction"),
            plan.gtids.to_line()
        );
        lacks.iter().for_each(|lack| warn(&lack.to_string()));
    }

    pub(super) fn json(&self, handed_over: bool) {
        let Found { name, host, version, plan, peers, compared: all } = self.0;
        let complete = plan.refused.is_empty()
            && self.0.lacks().is_empty()
            && all.differing() == 0
            && (handed_over || plan.transactions.is_empty());
        let transactions: Vec<Value> = plan.transactions.iter().map(described).collect();
        let left_out: Vec<Value> = plan.left_out.iter().map(described).collect();
        let refused: Vec<Value> = plan
            .refused
            .iter()
            .map(|(lacked, why)| json!({ "gtid": lacked.id.to_string(), "reason": why, "changes": lacked.changes }))
            .collect();
        let report = json!({
            "source": name,
            "target": host,
            "target_version": version,
            "gtids": plan.gtids.to_line(),
            "transactions": transactions,
            "cannot_be_handed_over": refused,
            "left_out": left_out,
            "not_in_the_copy": plan.not_held.to_line(),
            "lost_once": plan.lost_once.to_line(),
            "gtids_given_twice": plan.given_twice,
            "given_twice": plan.given_twice_gtids.to_line(),
            "loss_accepted": plan.accepted.to_line(),
            "without_gtid": plan.anonymous,
            "peers": peers,
            "compared": compared(all),
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
        "began_at": lacked.began(),
        "bytes": lacked.size(),
        "changes": lacked.changes,
        "timeline": lacked.timeline,
        "file": lacked.file_name(),
        "position": lacked.at,
    })
}

/// One line a transaction, in columns.
fn table(transactions: &[Lacked]) -> Vec<String> {
    let cells: Vec<[String; 4]> = transactions
        .iter()
        .map(|lacked| {
            let changes = style::clean(&lacked.changes.join(", "));
            [lacked.id.to_string(), lacked.began(), units::bytes(lacked.size()), changes]
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

/// A warning of one line or several.
pub(super) fn warn(text: &str) {
    outln!("warning: {}", style::clean_lines(text));
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
