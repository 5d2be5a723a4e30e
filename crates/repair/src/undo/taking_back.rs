//! What is taken back, from the search to the rows that are another's now. Nothing is changed by that.

use super::inverse::Inverse;
use super::look::changed;
use super::objections::objections;
use super::script::{Script, shown};
use crate::detail::{Known, Place, each_part};
use crate::hear::{Event, Hear};
use crate::searched::{FoundAt, Outcome, SearchedSource, each_found};
use codec::ServerKind;
use codec::gtid::TransactionId;
use points::criteria::Criteria;
use points::transaction::Transaction;
use status::units;
use std::collections::HashSet;

/// So many rows are told of an error.
const ROWS_TOLD: usize = 20;

/// What is asked for.
pub struct Request<'a> {
    /// The source.
    pub sources: &'a [SearchedSource],
    /// Which of its transactions.
    pub criteria: Criteria,
    /// More than so many are refused; 0 for no limit.
    pub limit: u64,
    /// Take back what is there where the copy does not have all of the GTIDs that are asked for.
    pub missing_ok: bool,
    /// Whether a server is asked which rows are as they were left.
    pub rows: Rows,
}

/// What becomes of rows that are not as these transactions left them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Nobody looks: the script stops at the first of them.
    NotLookedAt,
    /// They are told, whatever they are.
    Told,
    /// They are left out.
    LeftOut,
    /// Nothing is taken back where there is one.
    Refused,
}

/// What is taken back.
#[derive(Debug)]
pub struct TakingBack {
    inverse: Inverse,
    /// The transactions, one line each.
    pub transactions: Vec<String>,
    /// The rows that are not as these transactions left them, one line each.
    pub changed: Vec<String>,
    /// So many rows there were before those were left out.
    pub rows_looked_at: usize,
}

/// Why nothing is taken back.
#[derive(Debug, thiserror::Error)]
pub enum NotTakenBack {
    /// The search was not whole, for these reasons.
    #[error("not everything could be searched: nothing is taken back")]
    Searched(Vec<String>),
    /// There are more than may be.
    #[error("there are more than {}: --limit 0 takes all", units::counted(*.0, "transaction"))]
    More(u64),
    /// Nothing was found; these GTIDs the copy does not have.
    #[error("nothing was found{}", .0.as_ref().map_or_else(String::new, |gtids| format!(": {NOT_THERE} {gtids}")))]
    NothingFound(Option<String>),
    /// A server, which was needed, is not there or cannot be asked.
    #[error("{0}")]
    Server(String),
    /// Refused, for these reasons.
    #[error("refused, nothing is taken back:\n{}", .0.join("\n"))]
    Refused(Vec<String>),
    /// Nothing but numbers of a sequence was changed.
    #[error("refused, nothing is taken back: the numbers of the sequence {0} are not given back")]
    Sequence(String),
    /// No rows were changed.
    #[error("nothing is to be taken back: no rows were changed")]
    NoRows,
    /// No row is as it was left.
    #[error("nothing is to be taken back: no row is as these transactions left it")]
    NoneAsLeft,
    /// Some rows are not as they were left: one line each.
    #[error(
        "rows that are not as these transactions left them: {} of {}; nothing was changed. --plan tells all of them, \
         --leave-out-changed takes back the others{}",
        units::count(changed.len() as u64), units::count(*rows as u64), first_lines(changed)
    )]
    NotAsLeft {
        /// Of so many.
        rows: usize,
        /// These.
        changed: Vec<String>,
    },
}

fn first_lines(rows: &[String]) -> String {
    rows.iter().take(ROWS_TOLD).map(|row| format!("\n{row}")).collect()
}

const NOT_THERE: &str = "the copy does not have";

impl TakingBack {
    /// Finds it. `known` is what the log and a server say of tables.
    ///
    /// # Errors
    /// [`NotTakenBack`].
    pub fn find(
        request: &Request<'_>,
        known: &mut Known,
        hear: &mut Hear<'_>,
    ) -> Result<TakingBack, NotTakenBack> {
        let mut gathered = Gathered::of(request, known)?;
        if let Some(note) = gathered.outcome.undecided_in_words() {
            hear(Event::Note(&note));
        }
        let missing = if request.missing_ok { None } else { gathered.missing(request)? };
        let Gathered { inverse, transactions, .. } = gathered;
        let Some(mut inverse) = inverse else { return Err(NotTakenBack::NothingFound(missing)) };
        if let Some(gtids) = missing {
            inverse.refuse(format!("{NOT_THERE} {gtids} (--missing-ok takes back the others)"));
        }
        if let Some(connection) = known.connection() {
            let objections = objections(connection, &inverse.tables)
                .map_err(|error| NotTakenBack::Server(error.to_string()))?;
            objections.into_iter().for_each(|why| inverse.refuse(why));
        }
        let refusals: Vec<String> = inverse.refusals().map(str::to_owned).collect();
        if !refusals.is_empty() {
            return Err(NotTakenBack::Refused(refusals));
        }
        if let Some(sequence) = inverse.sequences.iter().next().filter(|_| inverse.rows() == 0) {
            return Err(NotTakenBack::Sequence(sequence.clone()));
        }
        for doubt in &inverse.doubts {
            let note = format!("{doubt}: whether its columns are the same still, --schema compares");
            hear(Event::Note(&note));
        }
        for sequence in &inverse.sequences {
            hear(Event::Note(&format!("the numbers of the sequence {sequence} are not given back")));
        }
        if inverse.rows() == 0 {
            return Err(NotTakenBack::NoRows);
        }
        let rows_looked_at = inverse.rows();
        let mut all = TakingBack { inverse, transactions, changed: Vec::new(), rows_looked_at };
        if request.rows != Rows::NotLookedAt {
            all.look(request.rows, known)?;
        }
        Ok(all)
    }

    /// Which rows are another's now, and what becomes of them.
    fn look(&mut self, rows: Rows, known: &mut Known) -> Result<(), NotTakenBack> {
        let connection = known.connection();
        let connection = connection.ok_or_else(|| NotTakenBack::Server("there is no server".to_owned()))?;
        let changed = changed(connection, &self.inverse).map_err(NotTakenBack::Server)?;
        let all = (0..).zip(self.inverse.in_order()).filter(|(number, _)| changed.contains(number));
        self.changed = all.map(|(number, step)| shown(number + 1, step)).collect();
        match rows {
            Rows::NotLookedAt | Rows::Told => Ok(()),
            Rows::Refused if self.changed.is_empty() => Ok(()),
            Rows::Refused => Err(NotTakenBack::NotAsLeft {
                rows: self.rows_looked_at,
                changed: std::mem::take(&mut self.changed),
            }),
            Rows::LeftOut => {
                self.inverse.leave_out(&changed);
                if self.rows() == 0 { Err(NotTakenBack::NoneAsLeft) } else { Ok(()) }
            }
        }
    }

    /// So many rows are taken back.
    pub fn rows(&self) -> usize {
        self.inverse.rows()
    }

    /// The tables, each a schema and a name.
    pub fn tables(&self) -> impl Iterator<Item = &(String, String)> {
        self.inverse.tables.keys()
    }

    /// The script that does it.
    pub fn script(&self) -> Script<'_> {
        Script { inverse: &self.inverse, transactions: &self.transactions, left_out: &self.changed }
    }
}

/// Everything that is asked for, in the order of the log.
#[derive(Default)]
struct Gathered {
    inverse: Option<Inverse>,
    transactions: Vec<String>,
    seen: HashSet<TransactionId>,
    outcome: Outcome,
}

impl Gathered {
    fn of(request: &Request<'_>, known: &mut Known) -> Result<Gathered, NotTakenBack> {
        let asked = known.connection().map(|server| server.server_kind());
        let packet = known.connection().map(|server| server.query("SELECT @@max_allowed_packet")).transpose();
        let packet = packet.map_err(|error| NotTakenBack::Server(error.to_string()))?;
        let packet_bytes_max = packet.and_then(|answer| answer.first()?.parse().ok());
        let mut all = Gathered::default();
        let outcome =
            each_found(request.sources, &request.criteria, request.limit, &mut |at, transaction| {
                let inverse = all.inverse.get_or_insert_with(Inverse::default);
                inverse.packet_bytes_max = packet_bytes_max;
                add(inverse, at, transaction, known, asked, &mut all.seen, &mut all.transactions);
            });
        if outcome.failed() {
            return Err(NotTakenBack::Searched(outcome.errors));
        }
        if outcome.is_enough {
            return Err(NotTakenBack::More(request.limit));
        }
        all.outcome = outcome;
        Ok(all)
    }

    /// The GTIDs that are asked for and stand nowhere, in words.
    fn missing(&mut self, request: &Request<'_>) -> Result<Option<String>, NotTakenBack> {
        let Some(wanted) = &request.criteria.gtids else { return Ok(None) };
        if wanted.not_among(self.seen.iter()).is_none() {
            return Ok(None);
        }
        // What the other options leave out is there.
        let any = Criteria { gtids: Some(wanted.clone()), ..Criteria::default() };
        let seen = &mut self.seen;
        let outcome = each_found(request.sources, &any, 0, &mut |_, transaction| seen.extend(transaction.id));
        if outcome.failed() {
            return Err(NotTakenBack::Searched(outcome.errors));
        }
        Ok(wanted.not_among(self.seen.iter()))
    }
}

/// Adds the inverse of one transaction, or why it has none.
fn add(
    inverse: &mut Inverse,
    at: FoundAt<'_>,
    transaction: &Transaction,
    known: &mut Known,
    asked: Option<ServerKind>,
    seen: &mut HashSet<TransactionId>,
    transactions: &mut Vec<String>,
) {
    let kind = match transaction.id {
        Some(TransactionId::Mariadb(_)) => ServerKind::MariaDb,
        _ => ServerKind::MySql,
    };
    if asked.is_some_and(|asked| asked != kind) {
        inverse.refuse("the server that is asked is of another kind than the log".to_owned());
    }
    let name = transaction.id.map_or_else(|| "a transaction without a GTID".to_owned(), |id| id.to_string());
    if transaction.id.is_some_and(|id| !seen.insert(id)) {
        inverse.refuse(format!("{name} stands in the log twice: choose one with --timeline"));
    }
    if transaction.xid.is_some() {
        inverse.refuse(format!(
            "{name} is a half of an XA transaction, whose other half decides whether it counts"
        ));
    }
    let (timeline, file) = (&at.timeline.name, &at.searched.name);
    transactions.push(format!("{name}, {timeline}/{file} at {}", transaction.at));
    let place = Place::of(timeline, file, transaction.at);
    known.is_at(&at.source.name, place, transaction.committed.micros.div_euclid(1_000_000));
    if let Err(error) = each_part(at.file, transaction, known, &mut |part| inverse.add(&part)) {
        inverse.refuse(format!("{name} cannot be read: {error}"));
    }
    inverse.end();
}
