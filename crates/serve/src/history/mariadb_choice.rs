//! What a MariaDB reader gets, as `send_event_to_slave` in `sql/sql_repl.cc` chooses.
//!
//! A reader by GTID says the last transaction that it has of each domain. All transactions of the domain up to just that
//! one are left out, and then all are sent; a list of GTIDs says once where the reader is.

use super::seen::{After, Seen, Verdict};
use crate::dump::refusal::Refusal;
use crate::dump::request::DumpRequest;
use codec::event::boundary::BoundaryTracker;
use codec::event::{EventHeader, EventType, GtidEvent, HEADER_LEN};
use codec::gtid::{MariadbGtid, MariadbGtidState, TransactionId};

/// `MARIA_SLAVE_CAPABILITY_TOLERATE_HOLES` and `MARIA_SLAVE_CAPABILITY_GTID`: a reader that is not disturbed by events that are
/// left out, and one that knows GTIDs.
const TOLERATES_HOLES: u8 = 2;
const KNOWS_GTIDS: u8 = 4;

/// Bytes of one GTID in a GTID_LIST event: domain, server, number.
const ENTRY_BYTES: usize = 16;

/// How far a reader is in one domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Started {
    /// The last transaction that it has.
    pub(crate) gtid: MariadbGtid,
    /// When it came, nothing of the domain was here. Whether the transaction is, is looked at when the first of the domain comes.
    pub(crate) on_empty_domain: bool,
}

/// The choice for one dump.
#[derive(Debug)]
pub(crate) struct MariadbChoice {
    /// Of the domains in which the reader's transaction has not passed yet.
    pub(crate) state: Vec<Started>,
    /// Of the domains in which the last wanted transaction has not passed yet.
    pub(crate) until: Option<Vec<MariadbGtid>>,
    by_gtid: bool,
    strict: bool,
    annotate: bool,
    capability: u8,
    /// What has passed, in the order in which a server would list it.
    passed: Passed,
    /// A transaction is left out; ends with it.
    skips: Option<BoundaryTracker>,
    /// The dump ends with this transaction.
    ends: Option<BoundaryTracker>,
    /// The reader's transaction has just passed: a list says so behind it.
    owes_list: bool,
    /// What was wanted had all passed before the file.
    done_before: bool,
}

impl MariadbChoice {
    /// By file and position.
    pub(crate) fn by_position(request: &DumpRequest) -> MariadbChoice {
        MariadbChoice {
            state: Vec::new(),
            until: None,
            by_gtid: false,
            strict: false,
            annotate: request.annotate,
            capability: request.capability,
            passed: Passed::default(),
            skips: None,
            ends: None,
            owes_list: false,
            done_before: false,
        }
    }

    /// By GTID.
    pub(crate) fn by_gtid(
        request: &DumpRequest,
        strict: bool,
        state: Vec<Started>,
        until: Option<Vec<MariadbGtid>>,
    ) -> MariadbChoice {
        MariadbChoice { state, until, by_gtid: true, strict, ..MariadbChoice::by_position(request) }
    }

    /// Whether the reader asks by GTID.
    pub(crate) fn is_by_gtid(&self) -> bool {
        self.by_gtid
    }

    /// Whether the reader has nothing any more of what follows (`slave_connection_state::is_pos_reached`).
    pub(crate) fn is_reached(&self) -> bool {
        self.state.iter().all(|started| started.on_empty_domain)
    }

    /// Whether a transaction is one that the reader has.
    pub(crate) fn leaves_out(&self, id: MariadbGtid) -> bool {
        let has = |last: &MariadbGtid| last.domain == id.domain && id.sequence <= last.sequence;
        self.state.iter().any(|started| has(&started.gtid))
    }

    /// A file is begun.
    pub(crate) fn begin_file(&mut self) {
        self.done_before = self.until.as_ref().is_some_and(Vec::is_empty);
    }

    pub(crate) fn looks_into(&self, event_type: EventType) -> bool {
        let follows_group = self.skips.is_some() || self.ends.is_some();
        (event_type == EventType::QUERY && follows_group)
            || (event_type == EventType::MARIADB_GTID_LIST && self.until.is_some())
    }

    pub(crate) fn decide(&mut self, seen: &Seen<'_>, gtid: Option<&GtidEvent>) -> Result<Verdict, Refusal> {
        let event_type = seen.header.event_type;
        if event_type == EventType::MARIADB_START_ENCRYPTION {
            return Ok(Verdict::Omit); // It was sent with the format description.
        }
        if event_type == EventType::MARIADB_GTID_LIST && self.by_gtid && self.until.is_some() {
            self.passed = Passed::listed(seen.bytes.get(HEADER_LEN..).unwrap_or_default())?;
        }
        if let Some(GtidEvent { id: Some(TransactionId::Mariadb(id)), .. }) = gtid
            && self.by_gtid
            && (!self.state.is_empty() || self.until.is_some())
        {
            self.passed.insert(*id);
            let skips = self.reaches_start(*id)? | self.reaches_until(*id);
            if skips {
                self.skips = Some(BoundaryTracker::new());
            }
        }
        if let Some(tracker) = &mut self.skips {
            if ends_group(tracker, seen)? {
                self.skips = None;
            }
            return Ok(Verdict::Omit);
        }
        self.for_its_capability(event_type)
    }

    /// Whether the transaction is one that the reader has.
    fn reaches_start(&mut self, id: MariadbGtid) -> Result<bool, Refusal> {
        let Some(at) = self.state.iter().position(|started| started.gtid.domain == id.domain) else {
            return Ok(false);
        };
        let Started { gtid, on_empty_domain } = self.state[at];
        let is_same_server = id.server_id == gtid.server_id;
        if on_empty_domain {
            // The first of a domain of which nothing was here when the reader came.
            if !is_same_server || id.sequence < gtid.sequence {
                return Err(not_found(gtid, Some(id)));
            }
            self.state[at].on_empty_domain = false;
        }
        if is_same_server && id.sequence >= gtid.sequence {
            if self.strict && id.sequence > gtid.sequence {
                return Err(hole(gtid));
            }
            self.owes_list = true;
            self.state.remove(at);
        }
        Ok(!is_same_server || id.sequence <= gtid.sequence)
    }

    /// Whether the transaction is behind what the reader wants.
    fn reaches_until(&mut self, id: MariadbGtid) -> bool {
        let Some(until) = &mut self.until else { return false };
        let Some(at) = until.iter().position(|gtid| gtid.domain == id.domain) else { return true };
        let last = until[at];
        if id.server_id != last.server_id || id.sequence < last.sequence {
            return false;
        }
        until.remove(at);
        if until.is_empty() {
            self.ends = Some(BoundaryTracker::new());
        }
        id.sequence > last.sequence
    }

    fn for_its_capability(&self, event_type: EventType) -> Result<Verdict, Refusal> {
        let is_known = match event_type {
            EventType::MARIADB_ANNOTATE_ROWS => self.annotate,
            EventType::MARIADB_GTID | EventType::MARIADB_GTID_LIST | EventType::MARIADB_BINLOG_CHECKPOINT => {
                self.capability >= KNOWS_GTIDS
            }
            _ => true,
        };
        match is_known {
            true => Ok(Verdict::Send),
            false if event_type != EventType::MARIADB_GTID && self.capability >= TOLERATES_HOLES => {
                Ok(Verdict::Omit)
            }
            false => Err(Refusal::Text(
                "this reader does not know MariaDB's own events. One that does says so by SET \
                 @mariadb_slave_capability = 4 before its dump"
                    .to_owned(),
            )),
        }
    }

    pub(crate) fn after(&mut self, seen: &Seen<'_>) -> After {
        let mut after = After::default();
        if self.owes_list && self.skips.is_none() {
            self.owes_list = false;
            after.reached = Some(self.passed.list());
        }
        let is_over = match &mut self.ends {
            Some(tracker) => ends_group(tracker, seen).unwrap_or(true),
            None => self.done_before && !is_part_of_group(&seen.header),
        };
        if is_over {
            after.until = Some(self.passed.list());
        }
        after
    }
}

/// Whether the group of events, which began with the tracker, ends with this event.
fn ends_group(tracker: &mut BoundaryTracker, seen: &Seen<'_>) -> Result<bool, Refusal> {
    let step = tracker.advance(&seen.header, seen.bytes, seen.start, seen.end).map_err(|_| Refusal::Bogus)?;
    Ok(step.boundary)
}

/// `Log_event::is_part_of_group` in MariaDB's `sql/log_event.h`.
fn is_part_of_group(header: &EventHeader) -> bool {
    matches!(
        header.event_type,
        EventType::MARIADB_GTID
            | EventType::INTVAR
            | EventType::RAND
            | EventType::USER_VAR
            | EventType::TABLE_MAP
            | EventType::MARIADB_ANNOTATE_ROWS
    )
}

/// What passed by, as `rpl_binlog_state` keeps it: domains and their servers as they came first, and of each domain which
/// server wrote last.
#[derive(Debug, Default)]
struct Passed {
    domains: Vec<(Vec<MariadbGtid>, usize)>,
}

impl Passed {
    /// As a GTID_LIST event's body lists it, which is no order of domains.
    fn listed(body: &[u8]) -> Result<Passed, Refusal> {
        MariadbGtidState::decode_gtid_list(body).map_err(|_| Refusal::Bogus)?;
        let mut passed = Passed::default();
        for entry in body.get(4..).unwrap_or_default().chunks_exact(ENTRY_BYTES) {
            let number =
                |at: usize| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
            let sequence = u64::from(number(8)) | u64::from(number(12)) << 32;
            passed.insert(MariadbGtid { domain: number(0), server_id: number(4), sequence });
        }
        Ok(passed)
    }

    fn insert(&mut self, id: MariadbGtid) {
        let found = self.domains.iter_mut().find(|(servers, _)| servers[0].domain == id.domain);
        let Some((servers, last)) = found else { return self.domains.push((vec![id], 0)) };
        *last = servers.iter().position(|gtid| gtid.server_id == id.server_id).unwrap_or(servers.len());
        match servers.get_mut(*last) {
            Some(gtid) => *gtid = id,
            None => servers.push(id),
        }
    }

    /// In each domain the others first, the last one at its end.
    fn list(&self) -> Vec<MariadbGtid> {
        let mut list = Vec::new();
        for (servers, last) in &self.domains {
            let others = servers.iter().enumerate().filter(|(at, _)| at != last);
            list.extend(others.map(|(_, gtid)| *gtid));
            list.push(servers[*last]);
        }
        list
    }
}

/// The reader's transaction is none of ours. `newest` is the last that is known of its domain.
pub(crate) fn not_found(gtid: MariadbGtid, newest: Option<MariadbGtid>) -> Refusal {
    let mut said = format!(
        "Error: connecting slave requested to start from GTID {gtid}, which is not in the master's binlog"
    );
    if newest.is_some_and(|newest| newest.sequence >= gtid.sequence) {
        said += ". Since the master's binlog contains GTIDs with higher sequence numbers, it probably means that the \
                 slave has diverged due to executing extra erroneous transactions";
    }
    Refusal::Text(said)
}

fn hole(gtid: MariadbGtid) -> Refusal {
    Refusal::Text(format!(
        "The binlog on the master is missing the GTID {gtid} requested by the slave (even though both a prior and a \
         subsequent sequence number does exist), and GTID strict mode is enabled"
    ))
}
