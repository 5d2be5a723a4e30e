//! What a comparison of the target with the copy has found.

use binlog::forks::gtid_list::GtidList;
use codec::gtid::TransactionId;
use status::units;
use std::fmt;

/// So many that differ are kept to be shown; the others are counted.
const SHOWN_MAX: usize = 20;

/// One transaction as one side has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Seconds since 1970 at which it was begun.
    pub began: u32,
    /// Length in the binary log, in bytes.
    pub size: u64,
    /// `schema.table` of its rows, the beginning of its statements.
    pub changes: Vec<String>,
    /// File and position.
    pub place: String,
}

/// Seconds since 1970 as a moment in UTC.
pub fn time(seconds: u32) -> String {
    jiff::Timestamp::from_second(i64::from(seconds)).map_or_else(|_| "?".to_owned(), |at| at.to_string())
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let began = time(self.began);
        let changes = if self.changes.is_empty() { "no changes".to_owned() } else { self.changes.join(", ") };
        write!(f, "{began}  {} bytes  {}  {changes}", self.size, self.place)
    }
}

/// A GTID that names one transaction in the copy and another one on the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The GTID.
    pub id: TransactionId,
    /// What the copy holds.
    pub copy: Version,
    /// What the target has.
    pub target: Version,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  in the copy:   {}\n  on the target: {}", self.id, self.copy, self.target)
    }
}

/// A transaction of the copy that the target counts as there, and that its binary log passes over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The GTID.
    pub id: TransactionId,
    /// What the copy holds.
    pub copy: Version,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", self.id, self.copy)
    }
}

/// The outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// Transactions that are the same on both sides.
    pub same: u64,
    /// Of these, such that the target tells in a form that cannot be compared byte by byte (rows for a statement, other columns);
    /// time, session and tables are the same.
    pub other_form: u64,
    /// GTIDs under which the two sides have different transactions, the first ones.
    pub different: Vec<Difference>,
    /// How many more there are.
    pub more_different: u64,
    /// Transactions that could not be compared because the target's binary log does not hold them (any more).
    pub not_in_its_log: u64,
    /// Which ones.
    pub not_in_its_log_gtids: GtidList,
    /// Transactions that the target counts as there, and that its binary log passes over, the first ones: it lacks them.
    pub missing: Vec<Missing>,
    /// How many more there are.
    pub more_missing: u64,
    /// All of them.
    pub missing_gtids: GtidList,
    /// GTIDs that stand in the target's log more than once, which MariaDB allows.
    pub twice: Vec<TransactionId>,
    /// Servers of which nothing was compared, because the newest of them stand further back in the target's log than was read.
    pub further_back: Vec<String>,
    /// Transactions with events that cannot be compared, and why the first of them cannot.
    pub unclear: u64,
    /// Why.
    pub unclear_reason: String,
}

impl Compared {
    /// How many differ.
    pub fn differing(&self) -> u64 {
        self.different.len() as u64 + self.more_different
    }

    /// What a person should know of a comparison in which nothing differs; begins with a semicolon, or is empty.
    pub fn remarks(&self) -> String {
        let mut text = String::new();
        if self.other_form > 0 {
            text.push_str(&format!(
                "; {} of them stand there in another form (rows for a statement, other columns), so that their time, session and tables \
                 were compared",
                units::count(self.other_form)
            ));
        }
        if self.not_in_its_log > 0 {
            text.push_str(&format!(
                "; {} could not be compared, because its binary log does not hold them (purged, or never written): {}",
                units::count(self.not_in_its_log),
                self.not_in_its_log_gtids
            ));
        }
        if !self.further_back.is_empty() {
            text.push_str(&format!(
                "; of {} nothing was compared, because the newest of that stand further back in its log than is read",
                self.further_back.join(", ")
            ));
        }
        if self.unclear > 0 {
            text.push_str(&format!(
                "; {} could not be compared: {}",
                units::count(self.unclear),
                self.unclear_reason
            ));
        }
        text
    }

    /// What the target lacks although its GTIDs count it as there; empty when it is nothing.
    pub fn passed_over(&self) -> String {
        if self.missing() == 0 {
            return String::new();
        }
        let mut text = format!(
            "it lacks {} that its GTIDs count as there: its binary log holds others of the same server before or behind \
             them, and not these: {}. MariaDB takes a server's transactions in the order of their numbers only, so they cannot be handed \
             over any more; bring their rows over by hand (mysqlbinlog shows them in the file named):",
            units::counted(self.missing(), "transaction"),
            self.missing_gtids
        );
        for missing in &self.missing {
            text.push_str(&format!("\n  {missing}"));
        }
        if self.more_missing > 0 {
            text.push_str(&format!("\n  … and {} more", units::count(self.more_missing)));
        }
        text
    }

    /// Takes one that differs.
    pub(in crate::rescue) fn differs(&mut self, difference: Difference) {
        if self.different.len() < SHOWN_MAX {
            self.different.push(difference);
        } else {
            self.more_different += 1;
        }
    }

    /// Takes one that the target's log does not hold.
    pub(in crate::rescue) fn absent(&mut self, id: TransactionId) {
        self.not_in_its_log += 1;
        self.not_in_its_log_gtids.insert(id);
    }

    /// How many are missing.
    pub fn missing(&self) -> u64 {
        self.missing.len() as u64 + self.more_missing
    }

    /// Takes one that the target lacks and counts as there.
    pub(in crate::rescue) fn misses(&mut self, missing: Missing) {
        self.missing_gtids.insert(missing.id);
        if self.missing.len() < SHOWN_MAX {
            self.missing.push(missing);
        } else {
            self.more_missing += 1;
        }
    }

    /// Takes one that cannot be compared.
    pub(in crate::rescue) fn unclear(&mut self, why: &str) {
        if self.unclear == 0 {
            self.unclear_reason = why.to_owned();
        }
        self.unclear += 1;
    }
}
