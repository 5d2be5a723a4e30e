//! MariaDB by GTID, over timelines.

use super::*;

/// A file of a MariaDB server: what came before it, and transactions of one statement each.
fn mariadb_file(before: &str, transactions: &str) -> Vec<u8> {
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

fn mariadb_timeline(number: u32, reason: Reason, before: &str, lacks: &str) -> Timeline {
    Timeline {
        server_kind: ServerKind::MariaDb,
        server_version: "11.8.3-MariaDB-log".into(),
        reason,
        gtid_before: before.into(),
        source_lacks: lacks.into(),
        ..first_timeline(&format!("mariadb-{number}"))
    }
}

fn behind(state: &str) -> From {
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

#[test]
fn mariadb_serves_nothing_of_before_a_fork() {
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
    let got = copy.read(behind(""));
    assert!(got.refused().starts_with("Could not find GTID state requested by slave"), "{got:?}");
}
