//! MariaDB by GTID, over timelines.

use super::*;

/// A file of a MariaDB server: what came before it, and transactions of one statement each.
pub(super) fn mariadb_file(before: &str, transactions: &str) -> Vec<u8> {
    let mut bytes = FileBuilder::new().finish();
    let mut event = |code: u8, server_id: u32, body: &[u8]| {
        let end = bytes.len() + HEADER_LEN + body.len() + CHECKSUM_LEN;
        let mut event = 1_700_000_000u32.to_le_bytes().to_vec();
        event.push(code);
        event.extend_from_slice(&server_id.to_le_bytes());
        event.extend_from_slice(&((HEADER_LEN + body.len() + CHECKSUM_LEN) as u32).to_le_bytes());
        event.extend_from_slice(&(end as u32).to_le_bytes());
        event.extend_from_slice(&[0, 0]);
        event.extend_from_slice(body);
        event.extend_from_slice(&crc32fast::hash(&event).to_le_bytes());
        bytes.extend_from_slice(&event);
    };
    let mut list = Vec::new();
    before.parse::<MariadbGtidState>().unwrap().encode_gtid_list(&mut list);
    event(163, 1, &list);
    for word in transactions.split_whitespace() {
        let gtid: MariadbGtid = word.parse().unwrap();
        let mut body = gtid.sequence.to_le_bytes().to_vec();
        body.extend_from_slice(&gtid.domain.to_le_bytes());
        body.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0]); // FL_STANDALONE
        event(162, gtid.server_id, &body);
        let mut query = vec![0u8; 14];
        query.extend_from_slice(b"DROP TABLE t");
        event(2, gtid.server_id, &query);
    }
    bytes
}

pub(super) fn mariadb_timeline(number: u32, reason: Reason, before: &str, lacks: &str) -> Timeline {
    Timeline {
        server_kind: ServerKind::MariaDb,
        server_version: "11.8.3-MariaDB-log".into(),
        reason,
        gtid_before: before.into(),
        source_lacks: lacks.into(),
        ..first_timeline(&format!("mariadb-{number}"))
    }
}

pub(super) fn behind(state: &str) -> From {
    let state = state.split(',').filter(|gtid| !gtid.is_empty()).map(|gtid| gtid.parse().unwrap()).collect();
    From::Mariadb(MariadbStart { state, ..MariadbStart::default() })
}

#[test]
fn mariadb_over_a_switch_of_servers_each_transaction_comes_once() {
    let mut copy = Copy::new();
    copy.timeline(
        mariadb_timeline(1, Reason::First, "", ""),
        &[
            ("b.000001", mariadb_file("", "0-1-1 5-1-1 0-1-2")),
            ("b.000002", mariadb_file("5-1-1,0-1-2", "0-1-3")),
        ],
    );
    copy.timeline(
        mariadb_timeline(2, Reason::SourceChanged, "5-1-1,0-1-3", ""),
        &[
            ("c.000001", mariadb_file("", "0-1-1 0-1-2 5-1-1 0-1-3 0-2-4")),
            ("c.000002", mariadb_file("5-1-1,0-1-3,0-2-4", "5-2-2 0-2-5")),
        ],
    );
    let read = |state: &str| copy.read(behind(state)).mariadb_gtids();
    assert_eq!(read(""), "0-1-1 0-1-2 5-1-1 0-1-3 0-2-4 5-2-2 0-2-5", "the successor has all of it");
    assert_eq!(read("0-1-2,5-1-1"), "0-1-3 0-2-4 5-2-2 0-2-5");
    assert_eq!(read("0-2-4,5-1-1"), "5-2-2 0-2-5");
    assert_eq!(read("0-2-5,5-2-2"), "");
    let diverged = copy.read(behind("0-9-4,5-1-1"));
    assert!(diverged.refused().contains("requested to start from GTID 0-9-4"), "{diverged:?}");
}

/// A server that does not log what it replicates never comes to what the reader has last.
#[test]
fn mariadb_does_not_leave_out_everything_for_ever() {
    let mut copy = Copy::new();
    copy.timeline(
        mariadb_timeline(1, Reason::First, "", ""),
        &[("b.000001", mariadb_file("", "0-1-1 0-1-2"))],
    );
    copy.timeline(
        mariadb_timeline(2, Reason::SourceChanged, "0-1-2", ""),
        &[("c.000001", mariadb_file("", "0-2-3")), ("c.000002", mariadb_file("0-2-3", "0-2-4"))],
    );
    let got = copy.read(behind("0-1-1"));
    assert_eq!(got.mariadb_gtids(), "0-1-2");
    assert!(got.refused().contains("does not say where it goes on"), "{got:?}");
    assert_eq!(copy.read(behind("0-2-3")).mariadb_gtids(), "0-2-4");
}

/// The new source's file says what came before it, so it is known from there on that nothing of it was lost.
#[test]
fn mariadb_serves_the_older_timeline_up_to_the_fork() {
    let mut copy = Copy::new();
    copy.timeline(
        mariadb_timeline(1, Reason::First, "", ""),
        &[("b.000001", mariadb_file("", "0-1-1 0-1-2 0-1-3"))],
    );
    copy.timeline(
        mariadb_timeline(2, Reason::Fork, "0-1-3", "0-1-3"),
        &[("c.000001", mariadb_file("0-1-1", "0-1-2 0-2-3"))],
    );
    assert_eq!(copy.read(behind("0-1-1")).mariadb_gtids(), "0-1-2 0-2-3");
    assert_eq!(copy.read(behind("")).mariadb_gtids(), "0-1-1 0-1-2 0-2-3");
    // What the reader has was lost: nobody knows what else it has.
    let got = copy.read(behind("0-1-3"));
    assert!(got.refused().contains("GTID 0-1-3, which is not in the master's binlog"), "{got:?}");
    let got = copy.read(at("b.000001", 4));
    assert!(got.refused().contains("lost transactions"), "{got:?}");
}

/// The fork lies in an older timeline's second file of three, and the new source's logs begin later still.
#[test]
fn mariadb_readers_of_files_before_a_fork_are_led_over_it() {
    let mut copy = Copy::new();
    copy.timeline(
        mariadb_timeline(1, Reason::First, "", ""),
        &[
            ("b.000001", mariadb_file("", "0-1-1 5-1-1 0-1-2")),
            ("b.000002", mariadb_file("5-1-1,0-1-2", "0-1-3 0-1-4 0-1-5")),
            ("b.000003", mariadb_file("5-1-1,0-1-5", "0-1-6")),
        ],
    );
    copy.timeline(
        mariadb_timeline(2, Reason::Fork, "5-1-1,0-1-6", "0-1-6"),
        &[
            ("c.000001", mariadb_file("5-1-1,0-1-3", "0-1-4 0-2-5")),
            ("c.000002", mariadb_file("5-1-1,0-1-4,0-2-5", "0-2-6")),
        ],
    );
    let all = "0-1-1 5-1-1 0-1-2 0-1-3 0-1-4 0-2-5 0-2-6";
    let got = copy.read(behind(""));
    assert_eq!(got.mariadb_gtids(), all);
    assert!(got.eof, "{got:?}");
    assert_eq!(copy.read(behind("0-1-2,5-1-1")).mariadb_gtids(), "0-1-3 0-1-4 0-2-5 0-2-6");
    assert_eq!(copy.read(behind("0-1-3,5-1-1")).mariadb_gtids(), "0-1-4 0-2-5 0-2-6");
    assert_eq!(copy.read(behind("0-2-5,5-1-1")).mariadb_gtids(), "0-2-6");
    for lost in ["0-1-5,5-1-1", "0-1-6,5-1-1"] {
        let got = copy.read(behind(lost));
        assert!(got.refused().contains("which is not in the master's binlog"), "{lost}: {got:?}");
    }
    // By position the first file is as it was; behind the fork the names mean nothing.
    let got = copy.read(at("b.000001", 4));
    assert_eq!(got.mariadb_gtids(), "0-1-1 5-1-1 0-1-2");
    assert!(got.refused().contains("b.000002: the source has lost transactions"), "{got:?}");
}

/// A server that lost its tail goes on in a file of the same name: nothing was lost in the files before it.
#[test]
fn mariadb_readers_of_whole_files_before_a_fork_are_led_over_it() {
    let mut copy = Copy::new();
    let same = |reason, before: &str, lacks: &str| mariadb_timeline(1, reason, before, lacks);
    copy.timeline(
        same(Reason::First, "", ""),
        &[("b.000001", mariadb_file("", "0-1-1 0-1-2")), ("b.000002", mariadb_file("0-1-2", "0-1-3 0-1-4"))],
    );
    copy.timeline(
        same(Reason::Fork, "0-1-4", "0-1-4"),
        &[("b.000002", mariadb_file("0-1-2", "0-1-3")), ("b.000003", mariadb_file("0-1-3", "0-1-5"))],
    );
    assert_eq!(copy.read(behind("")).mariadb_gtids(), "0-1-1 0-1-2 0-1-3 0-1-5");
    assert_eq!(copy.read(behind("0-1-1")).mariadb_gtids(), "0-1-2 0-1-3 0-1-5");
    assert_eq!(copy.read(at("b.000001", 4)).mariadb_gtids(), "0-1-1 0-1-2 0-1-3 0-1-5");
}

/// What the copy has of the reader's domain is newer than what the reader has: waiting would not help.
#[test]
fn mariadb_readers_that_went_another_way_are_refused_by_a_copy_that_lags() {
    let mut copy = Copy::new();
    copy.timeline(
        mariadb_timeline(1, Reason::First, "", ""),
        &[("b.000001", mariadb_file("", "0-1-1 0-1-2 0-1-3"))],
    );
    copy.monitor = Some(Arc::new(SourceMonitor::new("s")));
    assert!(copy.read(behind("0-9-3")).refused().contains("slave has diverged"));
    let got = copy.read(behind("0-1-9"));
    assert!(matches!(&got.ended, Err(DumpError::Behind(error)) if error.code == 1105), "{got:?}");
}
