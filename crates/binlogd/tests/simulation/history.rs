//! Scripted binary logs, and what is known of them: where transactions end, and which GTIDs are executed there.

use binlog::testing::Random;
use codec::event::EventType;
use codec::gtid::{Gtid, GtidSet, GtidState, Tag, Uuid};
use scripted_source::{LogFile, LogOptions, SourceLog, event};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A binary log, written a transaction at a time by this module, which so knows all boundaries without looking for them.
#[derive(Debug, Clone)]
pub struct History {
    pub log: SourceLog,
    /// Where a copy may end, by file, and the GTIDs that it then holds; `None` where the test does not say.
    boundaries: BTreeMap<String, BTreeMap<u64, Option<GtidState>>>,
    /// GTIDs that `log` does not count.
    tagged: Option<GtidState>,
    knows_gtids: bool,
    /// The transactions with a GTID, in order: what a replica applies.
    transactions: Vec<Arc<Transaction>>,
}

/// A transaction as it goes from server to server.
#[derive(Debug)]
pub struct Transaction {
    pub gtid: Gtid,
    /// Its events behind the GTID event.
    events: Vec<(EventType, Vec<u8>)>,
}

impl History {
    pub fn new(options: LogOptions) -> History {
        History::copied(options, GtidSet::new())
    }

    /// The history of a server that began as a copy of one that had executed `applied`.
    pub fn copied(options: LogOptions, applied: GtidSet) -> History {
        let knows_gtids = options.gtids;
        let log = SourceLog::copied(options, applied);
        let (boundaries, transactions) = (BTreeMap::new(), Vec::new());
        let mut history = History { log, boundaries, tagged: None, knows_gtids, transactions };
        history.note_file();
        history
    }

    /// What may be found at the end of a copy: `None` when `position` is no boundary.
    pub fn boundary(&self, file: &str, position: u64) -> Option<&Option<GtidState>> {
        self.boundaries.get(file)?.get(&position)
    }

    /// Lets `write` append what is one whole unit: a transaction, or an event outside any.
    pub fn unit(&mut self, write: impl FnOnce(&mut SourceLog)) {
        let (files, events) = (self.log.files().len(), self.live().event_count());
        write(&mut self.log);
        self.note_transaction(files - 1, events);
        if self.log.files().len() != files {
            let closed = &self.log.files()[files - 1];
            let (name, len) = (closed.name.clone(), closed.bytes.len() as u64);
            let gtids = self.gtids();
            self.boundaries.entry(name).or_default().insert(len, gtids);
            self.note_file();
            return;
        }
        let end = self.log.end();
        let gtids = self.gtids();
        self.boundaries.entry(end.file).or_default().insert(end.position, gtids);
    }

    /// As [`History::unit`], and the source asks for an acknowledgement of it.
    pub fn flagged(&mut self, write: impl FnOnce(&mut SourceLog)) {
        self.unit(|log| {
            write(log);
            log.flag_last();
        });
    }

    /// The beginning of a transaction that never ends: the source crashes inside it.
    pub fn stump(&mut self) {
        self.log.event(EventType::ANONYMOUS_GTID, &[0; 25]);
        self.log.event(EventType::QUERY, &event::query("BEGIN"));
        self.log.event(EventType::TABLE_MAP, &event::table_map());
        self.log.crash();
        self.note_file();
    }

    fn live(&self) -> &LogFile {
        self.log.files().last().expect("a log has a file")
    }

    /// Notes the transaction that begins with this event of this file, if one does.
    fn note_transaction(&mut self, file: usize, first: usize) {
        let file = &self.log.files()[file];
        let Some((head, _)) = file.event(first).filter(|(event, _)| event[4] == EventType::GTID.0) else {
            return;
        };
        let trailer = if self.log.options().checksum { 4 } else { 0 };
        let uuid = Uuid::from_bytes(head[20..36].try_into().expect("16 bytes"));
        let gno = u64::from_le_bytes(head[36..44].try_into().expect("8 bytes"));
        let rest = (first + 1..file.event_count()).map(|index| file.event(index).expect("it exists").0);
        let events = rest
            .filter(|event| event[4] != EventType::ROTATE.0)
            .map(|event| (EventType(event[4]), event[19..event.len() - trailer].to_vec()))
            .collect();
        self.transactions
            .push(Arc::new(Transaction { gtid: Gtid { uuid, tag: Tag::default(), gno }, events }));
    }

    /// Applies the next transaction of `source` that this server has not executed; false where there is none.
    pub fn replicate(&mut self, source: &History) -> bool {
        let executed = self.log.executed_set();
        let next = source.transactions.iter().find(|transaction| !executed.contains(&transaction.gtid));
        let Some(next) = next.cloned() else { return false };
        self.flagged(|log| log.append_applied(next.gtid, &next.events));
        true
    }

    /// GTIDs of the transactions that stand in the file up to `position`, whoever executed them first.
    pub fn gtids_within(&self, file: &str, position: u64) -> GtidSet {
        let Some(boundaries) = self.boundaries.get(file) else { return GtidSet::new() };
        let at = |position| match boundaries.range(..=position).next_back() {
            Some((_, Some(GtidState::Mysql(set)))) => set.clone(),
            _ => GtidSet::new(),
        };
        at(position).subtract(&at(4))
    }

    fn gtids(&self) -> Option<GtidState> {
        let mut gtids = GtidState::from(self.log.executed_set());
        if let Some(tagged) = &self.tagged {
            gtids.union_with(tagged).ok()?;
        }
        self.knows_gtids.then_some(gtids)
    }

    /// A file has begun: its magic, its format description and PREVIOUS_GTIDS.
    fn note_file(&mut self) {
        let gtids = self.gtids();
        let file = self.log.files().last().expect("a log has a file");
        let ends = [4, file.end_of(0), file.end_of(1)].map(|end| (end, gtids.clone()));
        self.boundaries.insert(file.name.clone(), BTreeMap::from(ends));
    }

    /// A transaction whose GTID has a tag. `log` does not count it, so no file may follow.
    pub fn tagged(&mut self) {
        const UUID: u8 = 0x11;
        // The library's integers of one byte are the value times two; signed ones are doubled once more.
        let flags = [0, 2, 2];
        let number = [4, 4];
        let tag = b"\x06\x06tag";
        let clock_time_and_version = [8, 0, 10, 4, 12, 2, 18, 200];
        let fields = [&flags[..], &[UUID * 2; 16], &number, tag, &clock_time_and_version].concat();
        let mut body = [&[2, 0, 0], &fields[..]].concat();
        body[1] = (body.len() as u8) * 2;
        self.tagged = "11111111-1111-1111-1111-111111111111:tag:1".parse().map(GtidState::Mysql).ok();
        assert!(self.tagged.is_some(), "this GTID can be read");
        self.flagged(|log| {
            log.event(EventType::GTID_TAGGED, &body);
            log.event(EventType::QUERY, &event::query("BEGIN"));
            log.event(EventType::XID, &event::xid(7));
        });
    }
}

/// A transaction of rows as it is written without its own length: the grammar alone tells its end.
fn plain(log: &mut SourceLog, rest: &[(EventType, Vec<u8>)]) {
    let mut body = [0; 25];
    body[..4].copy_from_slice(&log.options().microseconds.to_le_bytes());
    log.event(EventType::ANONYMOUS_GTID, &body);
    for (event_type, body) in rest {
        log.event(*event_type, body);
    }
}

fn query(text: &str) -> (EventType, Vec<u8>) {
    (EventType::QUERY, event::query(text))
}

fn rows(event_type: EventType, len: usize) -> [(EventType, Vec<u8>); 2] {
    [(EventType::TABLE_MAP, event::table_map()), (event_type, event::write_rows(3, len))]
}

/// Every kind of transaction, every event type outside any, and every end of a file.
pub fn every_kind(options: LogOptions) -> History {
    let mut history = History::new(options);
    row_transactions(&mut history);
    history.flagged(|log| log.rotate());
    statements(&mut history);
    history.unit(|log| log.restart());
    without_lengths(&mut history);
    history.stump();
    mariadb(&mut history);
    history.unit(|log| log.crash());
    unusual(&mut history);
    history.unit(|log| log.rotate());
    history.unit(|log| log.rotate());
    history.flagged(|log| log.transaction(100));
    if history.knows_gtids {
        history.tagged();
    }
    history
}

fn row_transactions(history: &mut History) {
    history.flagged(|log| log.transaction(10));
    history.unit(|log| log.transaction(700));
    history.flagged(|log| log.transaction(5_000));
    for event_type in [
        EventType::UPDATE_ROWS,
        EventType::DELETE_ROWS,
        EventType::PARTIAL_UPDATE_ROWS,
        EventType::WRITE_ROWS_V1,
        EventType::UPDATE_ROWS_V1,
        EventType::DELETE_ROWS_V1,
    ] {
        let [map, rows] = rows(event_type, 60);
        let note = (EventType::ROWS_QUERY, b"\x08UPDATE t".to_vec());
        history.flagged(|log| {
            log.append_transaction(&[query("BEGIN"), note, map, rows, (EventType::XID, event::xid(1))])
        });
    }
    history.flagged(|log| log.append_transaction(&[(EventType::TRANSACTION_PAYLOAD, vec![9; 900])]));
    history.flagged(|log| log.append_transaction(&[query("BEGIN"), query("COMMIT")]));
}

fn statements(history: &mut History) {
    history.flagged(|log| log.ddl("CREATE TABLE t (a INT)"));
    history.unit(|log| log.append_transaction(&[query("BEGIN"), query("DELETE FROM t"), query("ROLLBACK")]));
    let set = [
        query("BEGIN"),
        (EventType::INTVAR, vec![2; 9]),
        (EventType::RAND, vec![1; 16]),
        (EventType::USER_VAR, vec![1, 0, 0, 0, b'v', 1]),
        query("INSERT INTO t VALUES (RAND())"),
        (EventType::XID, event::xid(2)),
    ];
    history.flagged(|log| log.append_transaction(&set));
    let load = [
        query("BEGIN"),
        (EventType::BEGIN_LOAD_QUERY, vec![1; 80]),
        (EventType::APPEND_BLOCK, vec![1; 600]),
        (EventType::EXECUTE_LOAD_QUERY, event::query("LOAD DATA")),
        (EventType::XID, event::xid(3)),
    ];
    history.flagged(|log| log.append_transaction(&load));
    let [map, inserted] = rows(EventType::WRITE_ROWS, 30);
    let prepare = [query("XA START X'31',X'',1"), map, inserted, query("XA END X'31',X'',1")];
    let prepare = [&prepare[..], &[(EventType::XA_PREPARE, vec![0; 20])]].concat();
    history.flagged(|log| log.append_transaction(&prepare));
    history.flagged(|log| log.append_transaction(&[query("XA COMMIT X'31',X'',1")]));
}

fn without_lengths(history: &mut History) {
    let [map, inserted] = rows(EventType::WRITE_ROWS, 300);
    let commit = (EventType::XID, event::xid(4));
    history.flagged(|log| plain(log, &[query("BEGIN"), map.clone(), inserted.clone(), commit]));
    history.flagged(|log| plain(log, &[query("DROP TABLE t")]));
    history.unit(|log| plain(log, &[query("BEGIN"), map.clone(), inserted.clone(), query("COMMIT")]));
    history.flagged(|log| plain(log, &[(EventType::TRANSACTION_PAYLOAD, vec![4; 50])]));
    let prepare = [query("XA START X'32',X'',1"), map, inserted, query("XA END X'32',X'',1")];
    let prepare = [&prepare[..], &[(EventType::XA_PREPARE, vec![0; 20])]].concat();
    history.flagged(|log| plain(log, &prepare));
    let view = [(EventType::TRANSACTION_CONTEXT, vec![3; 40]), query("CREATE TABLE u (a INT)")];
    history.flagged(|log| log.append_transaction(&view));
}

fn mariadb(history: &mut History) {
    const STANDALONE: u8 = 1;
    let gtid =
        |number: u64, flags| [&number.to_le_bytes()[..], &[0, 0, 0, 0, flags, 0, 0, 0, 0, 0, 0]].concat();
    history.flagged(|log| {
        log.event(EventType::MARIADB_GTID, &gtid(1, STANDALONE));
        log.event(EventType::QUERY, &event::query("CREATE TABLE m (a INT)"));
    });
    history.flagged(|log| {
        log.event(EventType::MARIADB_GTID, &gtid(2, 0));
        log.event(EventType::MARIADB_ANNOTATE_ROWS, b"INSERT INTO m VALUES (1)");
        log.event(EventType::TABLE_MAP, &event::table_map());
        log.event(EventType::MARIADB_WRITE_ROWS_COMPRESSED_V1, &[8; 200]);
        log.event(EventType::XID, &event::xid(5));
    });
    history.unit(|log| log.event(EventType::MARIADB_BINLOG_CHECKPOINT, b"\x10\0\0\0mysql-bin.000004"));
    history.flagged(|log| {
        log.event(EventType::MARIADB_GTID, &gtid(3, 0));
        log.event(EventType::MARIADB_QUERY_COMPRESSED, &[8; 90]);
        log.event(EventType::QUERY, &event::query("COMMIT"));
    });
}

fn unusual(history: &mut History) {
    history.flagged(|log| log.append_transaction(&[(EventType::INCIDENT, b"\x01\0\x04lost".to_vec())]));
    history.unit(|log| log.event(EventType::INCIDENT, b"\x01\0\0"));
    history.unit(|log| log.event(EventType(200), &[2; 70]));
    history.unit(|log| log.event(EventType::IGNORABLE, &[2; 7]));
    history.unit(|log| log.event(EventType::VIEW_CHANGE, &[2; 90]));
    history.flagged(|log| {
        log.append_transaction(&[query("BEGIN"), (EventType(201), vec![5; 40]), query("COMMIT")])
    });
    // No body at all.
    history.unit(|log| log.event(EventType(202), &[]));
}

/// Events that are larger than a record of the journal, and than the receive buffer.
pub fn large_events() -> History {
    let mut history = History::new(LogOptions::default());
    history.flagged(|log| log.transaction(40));
    history.flagged(|log| log.transaction(300_000));
    history.flagged(|log| log.transaction(50));
    history.flagged(|log| log.transaction(1_200_000));
    history.unit(|log| log.transaction(1_100_000));
    history.flagged(|log| log.rotate());
    history.flagged(|log| log.transaction(60));
    history
}

/// One unit of any kind, small most of the time.
pub fn any_unit(history: &mut History, random: &mut Random) {
    let sizes = [0, 1, 40, 200, 1_000, 5_000, 20_000];
    let size = if random.one_in(200) { 300_000 } else { *random.pick(&sizes) };
    match random.below(24) {
        0 => history.flagged(|log| log.rotate()),
        1 => history.unit(|log| log.rotate()),
        2 => history.flagged(|log| log.ddl("CREATE TABLE t (a INT)")),
        3 => history.unit(|log| log.event(EventType(200), &vec![1; size])),
        4 => {
            history.flagged(|log| log.append_transaction(&[(EventType::TRANSACTION_PAYLOAD, vec![9; size])]))
        }
        5 => history.flagged(|log| plain(log, &[query("BEGIN"), (EventType::XID, event::xid(1))])),
        6 => history.flagged(|log| log.append_transaction(&[(EventType::INCIDENT, vec![1, 0, 0])])),
        7 => {
            let [map, inserted] = rows(EventType::WRITE_ROWS, size);
            let prepare = [query("XA START X'31',X'',1"), map, inserted, query("XA END X'31',X'',1")];
            let prepare = [&prepare[..], &[(EventType::XA_PREPARE, vec![0; 20])]].concat();
            history.flagged(|log| plain(log, &prepare));
        }
        8..=12 => history.unit(|log| log.transaction(size)),
        _ => history.flagged(|log| log.transaction(size)),
    }
}
