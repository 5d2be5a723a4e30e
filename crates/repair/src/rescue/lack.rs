//! What the target lacks when everything was handed over, or may lack.

use crate::rescue::compare::compared::Compared;
use codec::gtid::{GtidState, TransactionId};
use status::units;
use std::fmt;

/// One reason why "all" would not be true.
#[derive(Debug)]
pub enum Lack<'a> {
    /// A transaction that the operator has left out, and what it changes.
    LeftOut(TransactionId, &'a [String]),
    /// What a peer alone holds, or that it could not be asked: a sentence.
    AtPeer(&'a str),
    /// What was executed before the copy began.
    Before(GtidState),
    /// What the copy never got.
    NeverCopied(&'a GtidState),
    /// What was purged or moved away.
    MovedAway(&'a GtidState),
    /// So many GTIDs were given to two transactions each.
    GivenTwice(u64, &'a GtidState),
    /// So many transactions have no GTID.
    Anonymous(u64),
    /// What the target counts as there, and its binary log does not hold.
    PassedOver(&'a Compared),
}

impl fmt::Display for Lack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::LeftOut(id, changes) => {
                // Its positions name the newest transaction only.
                let unseen = match id {
                    TransactionId::Mysql(_) => "",
                    TransactionId::Mariadb(_) => {
                        "; MariaDB counts it as there, so no rescue will tell it again"
                    }
                };
                write!(f, "left out, and missing there: {id} ({}){unseen}", changes.join(", "))
            }
            Lack::AtPeer(sentence) => f.write_str(sentence),
            Lack::Before(gtids) => write!(
                f,
                "it also lacks {}, which were executed before the copy began and stand in none of its files: a backup of the \
                 source has them",
                gtids.to_line()
            ),
            Lack::NeverCopied(gtids) => write!(
                f,
                "it also lacks {}, which the copy never got, because the source had purged them or could not read them (a gap): a \
                 backup of the source has them",
                gtids.to_line()
            ),
            Lack::MovedAway(gtids) => write!(
                f,
                "it also lacks {}, which stood in files that were purged or moved away ([[purged]] or kept_from in timeline.toml), \
                 unless they were executed before these: replay these files from a backup with the server's own mysqlbinlog; or stop \
                 binlogd, put the files back, take those lines out of timeline.toml, and start binlogd again",
                gtids.to_line()
            ),
            Lack::GivenTwice(count, gtids) => write!(
                f,
                "{} given twice, and the copy holds two transactions under each; none of them is handed over: {}. \
                 binlogd forks lists them, and records with --settle that the data is as it should be",
                units::counted_were(*count, "GTID"),
                gtids.to_line()
            ),
            Lack::Anonymous(count) => write!(
                f,
                "{} of the copy {} no GTID; nobody can say whether the target has them: compare its tables, or \
                 restore a backup and replay the files behind it with the server's own mysqlbinlog",
                units::counted(*count, "transaction"),
                if *count == 1 { "has" } else { "have" }
            ),
            Lack::PassedOver(compared) => f.write_str(&compared.passed_over()),
        }
    }
}
