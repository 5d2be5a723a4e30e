//! Writes the seed corpora, and the regressions that are written by hand: `cargo run --example seeds`.
//!
//! Seeds are small inputs that are valid, so that the fuzzer starts behind the first checks. A regression that the
//! fuzzer found is committed as it is, with a name that says what was wrong.

use codec::event::HEADER_LEN;
use scripted_source::event::{self, heartbeat_v2};
use std::fs;
use std::path::Path;
use targets::binlog::{self, Binlog, code};
use targets::dump_framer::HUGE;
use targets::script::{ARTIFICIAL, CHECKSUM, PADDED, POSITION, SIZE, SPECIAL};

const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const SOUND: u8 = SIZE | POSITION | CHECKSUM;
const MADE_UP: u8 = SIZE | CHECKSUM | ARTIFICIAL;

fn main() -> std::io::Result<()> {
    write(
        "corpus",
        [
            ("client", client()),
            ("cursor", cursor()),
            ("dump_framer", dump_framer()),
            ("event_peek", event_peek()),
            ("gtid_set", gtid_set()),
            ("recover_tail", recover_tail()),
            ("rows", rows()),
            ("search_index", search_index()),
            ("session", session()),
            ("sql", sql()),
        ],
    )?;
    write(
        "regressions",
        [
            ("cursor", cursor_regressions()),
            ("dump_framer", dump_framer_regressions()),
            ("recover_tail", recover_tail_regressions()),
        ],
    )
}

fn write(folder: &str, targets: impl IntoIterator<Item = (&'static str, Seeds)>) -> std::io::Result<()> {
    for (target, inputs) in targets {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(target);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in inputs {
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}

type Seeds = Vec<(&'static str, Vec<u8>)>;

fn scripted(fixes: u8, code: u8, body: &[u8]) -> Vec<u8> {
    let mut event = vec![fixes, code, u8::try_from(body.len()).expect("a short body")];
    event.extend_from_slice(body);
    event
}

fn transaction(number: u64) -> Vec<u8> {
    [
        scripted(SOUND, code::GTID, &binlog::gtid_body(number)),
        scripted(SOUND, code::QUERY, &binlog::query_body("BEGIN")),
        scripted(SOUND, code::WRITE_ROWS, &[7; 20]),
        scripted(SOUND, code::XID, &number.to_le_bytes()),
    ]
    .concat()
}

fn mysql_file() -> Vec<u8> {
    let compressed = (HEADER_LEN + 4) * 2 + 58 + 30;
    [
        scripted(SOUND, code::FORMAT_DESCRIPTION, &binlog::format_body(1)),
        scripted(SOUND, code::PREVIOUS_GTIDS, &binlog::previous_gtids_body(&format!("{UUID}:1-5"))),
        transaction(6),
        scripted(SOUND, code::GTID, &binlog::gtid_body_with_length(7, compressed as u64)),
        scripted(SOUND, code::TRANSACTION_PAYLOAD, &[9; 30]),
        scripted(SOUND, code::ANONYMOUS_GTID, &binlog::gtid_body(0)),
        scripted(SOUND, code::QUERY, &binlog::query_body("CREATE TABLE t (a int)")),
        scripted(SOUND, code::GTID_TAGGED, &tagged_body()),
        scripted(SOUND, code::QUERY, &binlog::query_body("DROP TABLE t")),
        scripted(SOUND, code::ROTATE, &event::rotate(4, "mysql-bin.000002")),
    ]
    .concat()
}

fn mariadb_file() -> Vec<u8> {
    let mut format = binlog::format_body(1);
    format[2..16].copy_from_slice(b"11.8.1-MariaDB");
    let mut gtid = 100u64.to_le_bytes().to_vec();
    gtid.extend_from_slice(&[0; 4]);
    let standalone = [&gtid[..], &[1]].concat();
    let group = [&gtid[..], &[0]].concat();
    [
        scripted(SOUND, code::FORMAT_DESCRIPTION, &format),
        scripted(SOUND, code::MARIADB_GTID_LIST, &gtid_list()),
        scripted(SOUND, code::MARIADB_GTID, &standalone),
        scripted(SOUND, code::QUERY, &binlog::query_body("CREATE TABLE t (a int)")),
        scripted(SOUND, code::MARIADB_GTID, &group),
        scripted(SIZE | CHECKSUM, code::WRITE_ROWS, &[7; 20]),
        scripted(SOUND, code::XID, &[1; 8]),
    ]
    .concat()
}

fn gtid_list() -> Vec<u8> {
    let mut body = 2u32.to_le_bytes().to_vec();
    for server_id in [1u32, 2] {
        body.extend_from_slice(&0u32.to_le_bytes());
        body.extend_from_slice(&server_id.to_le_bytes());
        body.extend_from_slice(&99u64.to_le_bytes());
    }
    body
}

/// A GTID_TAGGED event's body with all twelve fields; every number below 64 is one byte, shifted by one.
fn tagged_body() -> Vec<u8> {
    let mut fields = vec![0, 0, 2];
    fields.extend_from_slice(&[0x22; 16]);
    fields.extend_from_slice(&[4, 2 << 2, 6, 3 << 1, b't', b'a', b'g', 8, 0, 10, 2 << 1]);
    fields.extend_from_slice(&[12, 20, 14, 18, 16, 60, 18, 14, 20, 12, 22, 2]);
    let mut body = vec![1 << 1, 0, 12 << 1];
    body.extend_from_slice(&fields);
    // One byte of a variable-length integer reaches to 127.
    body[1] = u8::try_from(body.len() << 1).expect("a short message");
    assert!(codec::gtid::decode_gtid_tagged_event(&body).is_ok());
    body
}

fn cursor() -> Seeds {
    let to = |name: &str| scripted(MADE_UP, code::ROTATE, &event::rotate(4, name));
    let again = scripted(SIZE | CHECKSUM, code::FORMAT_DESCRIPTION, &binlog::format_body(1));
    let large = scripted(SOUND | SPECIAL | PADDED, code::WRITE_ROWS, &[7; 20]);
    let beat = scripted(SIZE | CHECKSUM, code::HEARTBEAT_V2, &heartbeat_v2("mysql-bin.000001", 4));
    vec![
        (
            "oldest",
            [vec![0], to("mysql-bin.000001"), mysql_file(), to("mysql-bin.000002"), mariadb_file()].concat(),
        ),
        ("resumed", [vec![1], resent_format(), transaction(2), large, vec![9]].concat()),
        ("resumed-from-beginning", [vec![2], transaction(2), transaction(3)].concat()),
        ("empty-file", [vec![3], mysql_file(), to("mysql-bin.000002"), again].concat()),
        ("mariadb", [vec![3], mariadb_file()].concat()),
        ("heartbeat", [vec![3], beat].concat()),
        ("abandoned", [vec![3], mysql_file(), transaction(8)[..60].to_vec()].concat()),
    ]
}

/// The format description of the target's own prefix as a source sends it again: position 0, everything else the same.
fn resent_format() -> Vec<u8> {
    let prefix = Binlog::new("");
    let event = prefix.events().next().expect("a first event");
    let mut script = vec![SIZE | CHECKSUM | targets::script::RAW_HEADER];
    let mut header = event[..HEADER_LEN].to_vec();
    header[13..17].fill(0);
    script.extend_from_slice(&header);
    let body = &event[HEADER_LEN..event.len() - 4];
    script.extend_from_slice(&[code::FORMAT_DESCRIPTION, u8::try_from(body.len()).expect("a short body")]);
    script.extend_from_slice(body);
    script
}

fn dump_framer() -> Seeds {
    let start = |flags: u8, reads: [u16; 4]| {
        [vec![flags], reads.iter().flat_map(|read| read.to_le_bytes()).collect()].concat()
    };
    let sizes: Vec<u8> = [30u16, 0, 5000, 65_000]
        .iter()
        .flat_map(|size| [&[0x09][..], &size.to_le_bytes()].concat())
        .collect();
    vec![
        ("small-events", [start(1, [1, 7, 64, 300]), sizes.clone()].concat()),
        ("without-semi-sync", [start(0, [4, 4, 1, 1000]), sizes].concat()),
        (
            "in-parts",
            [start(1, [1000, 1, 60_000, 3]), vec![3, 0xff, 0xf0, 0x0b, 0x00, 0x30, 1, 40, 0]].concat(),
        ),
        ("one-packet-limit", [start(HUGE, [65_535, 65_535, 9, 65_535]), vec![4, 0x00, 1, 30, 0]].concat()),
        (
            "past-the-limit",
            [start(HUGE | 3, [65_535, 60_000, 1, 65_535]), vec![0x0c, 0x05, 1, 30, 0]].concat(),
        ),
        (
            "error",
            [start(1, [2, 3, 5, 7]), vec![1, 9, 0, 5, 8, 0xd4, 4, b'#', b'H', b'Y', b'0', b'0', b'0']]
                .concat(),
        ),
        ("end", [start(0, [2, 3, 5, 7]), vec![1, 9, 0, 6, 4, 0, 0, 0, 0]].concat()),
        ("out-of-step", [start(0, [2, 3, 5, 7]), vec![1, 9, 0, 0x21, 9, 0, 9]].concat()),
        ("lying-length", [start(0, [2, 3, 5, 7]), vec![0x11, 9, 0, 1, 0, 0, 0]].concat()),
    ]
}

fn event_peek() -> Seeds {
    let mut binlog = Binlog::new(&format!("{UUID}:1-5"));
    binlog.transaction(6);
    let beat = scripted(SIZE | CHECKSUM, code::HEARTBEAT_V2, &heartbeat_v2("mysql-bin.000001", 2 << 32));
    let old_beat = scripted(SIZE, code::HEARTBEAT, b"mysql-bin.000001");
    vec![
        ("cut", [&[0], &binlog.bytes[4..]].concat()),
        ("mysql", [vec![1], mysql_file()].concat()),
        ("mariadb", [vec![1], mariadb_file()].concat()),
        ("past-4-gib", [vec![3], mysql_file()].concat()),
        ("heartbeats", [vec![1], beat, old_beat].concat()),
        (
            "long",
            [vec![1], scripted(SIZE | PADDED, code::QUERY, &binlog::query_body("BEGIN")), vec![0xff]]
                .concat(),
        ),
    ]
}

fn gtid_set() -> Seeds {
    let with = |which: u8, bytes: &[u8]| [&[which], bytes].concat();
    let text = format!("{UUID}:1-5:7:tag:1-3,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:9");
    vec![
        ("wire", with(0, &binlog::previous_gtids_body(&format!("{UUID}:1-5:7")))),
        ("wire-tagged", with(0, &binlog::previous_gtids_body(&text))),
        ("text", with(1, text.as_bytes())),
        ("gtid-list", with(2, &gtid_list())),
        ("gtid-list-empty", with(2, &[0; 6])),
        ("mariadb-text", with(3, b"0-1-99,0-2-100,1-2-5")),
        ("tagged-event", with(4, &tagged_body())),
        ("two-sets", with(5, format!("{UUID}:1-5:7\0{UUID}:4-9:tag:1").as_bytes())),
    ]
}

fn recover_tail() -> Seeds {
    let mut whole = Binlog::new("");
    whole.transaction(1);
    let gtid = scripted(SOUND, code::ANONYMOUS_GTID, &binlog::gtid_body(0));
    vec![
        ("abandoned-transaction", [&[0x13, 0, 0][..], &gtid, &gtid].concat()),
        ("torn", vec![0x05, 9, 0]),
        ("torn-garbage", [vec![0x0d, 5, 0], b"garbage".to_vec()].concat()),
        ("half-a-transaction", [vec![0x17, 0, 0], transaction(12)[..60].to_vec()].concat()),
        ("transactions", [vec![0x1d, 0, 0], transaction(11), transaction(12)].concat()),
        ("arbitrary-file", [vec![0x00, 0, 0], whole.bytes].concat()),
        ("no-magic", [vec![0x20, 0, 0], b"\xfeb".to_vec()].concat()),
        ("other-index", [vec![0x49, 0, 0], vec![0; 30]].concat()),
        ("index-of-bytes", [vec![0x61, 0, 0], b"a\xff\n".to_vec()].concat()),
    ]
}

/// Logins, and what replicas ask afterwards.
fn client() -> Seeds {
    use codec::packet::{command, semi_sync_acknowledgement};
    use targets::client::step;
    let said = |message: &[u8]| {
        [&[step::COMMAND, u8::try_from(message.len()).expect("a short command")], message].concat()
    };
    let mut acknowledgement = Vec::new();
    semi_sync_acknowledgement(&mut acknowledgement, 1000, b"mysql-bin.000001");
    let acknowledgement = [&[step::RAW, acknowledgement.len() as u8][..], &acknowledgement].concat();
    // Capabilities, a name, no answer, a method that needs another challenge.
    let ed25519 = [&[step::OTHER_LOGIN, 25][..], &[0, 0x82, 8, 0], b"repl\0\0client_ed25519\0"].concat();
    let change = [&[0x11][..], b"repl\0\0\0\x2D\0mysql_native_password\0\x04\x01a\x01b"].concat();
    let replica = [
        said(&command::query("SELECT @@GLOBAL.SERVER_ID")),
        said(&command::register_replica(9, "host", 3306)),
        said(&command::binlog_dump(4, 2, 9, b"mysql-bin.000001")),
        acknowledgement,
    ]
    .concat();
    let by_gtids = said(&command::binlog_dump_gtid(0, 9, b"", 4, &[0; 8]));
    vec![
        ("replica", [&[1, step::LOGIN][..], &replica].concat()),
        ("replica-by-gtids", [&[0, step::LOGIN][..], &by_gtids].concat()),
        ("of-mariadb", [&[3, step::LOGIN][..], &replica].concat()),
        (
            "other-commands",
            [&[1, step::LOGIN][..], &said(&change), &said(b"\x0C\x01\0\0\0"), &said(b"\x0E")].concat(),
        ),
        ("switch", [&[9][..], &ed25519, &[step::ANSWER], &said(&command::quit())].concat()),
        ("ed25519", [&[0][..], &ed25519, &[step::PACKET, 64, 0], &[7; 64]].concat()),
        ("tls-demanded", vec![4, step::LOGIN]),
        ("no-such-method", vec![24, step::LOGIN, step::ANSWER]),
        ("too-long", [&[1, step::LOGIN, step::PACKET][..], &5000u16.to_le_bytes(), &[3; 5000]].concat()),
    ]
}

/// Sessions from the greeting to the end of the dump.
fn session() -> Seeds {
    use targets::session::step;
    let sent = |operation: u8, event: Vec<u8>| [vec![operation], event].concat();
    let format = || scripted(SOUND, code::FORMAT_DESCRIPTION, &binlog::format_body(1));
    let previous = || scripted(SOUND, code::PREVIOUS_GTIDS, &binlog::previous_gtids_body(""));
    let parts = |number: u64| {
        [
            scripted(SOUND, code::GTID, &binlog::gtid_body(number)),
            scripted(SOUND, code::QUERY, &binlog::query_body("BEGIN")),
            scripted(SOUND, code::WRITE_ROWS, &[7; 20]),
            scripted(SOUND, code::XID, &number.to_le_bytes()),
        ]
    };
    let transaction = |number: u64, bits: u8| {
        let [gtid, begin, rows, xid] = parts(number);
        [
            sent(step::EVENT | bits & step::PLAIN, gtid),
            sent(step::EVENT | bits & step::PLAIN, begin),
            sent(step::EVENT | bits & step::PLAIN, rows),
            sent(step::EVENT | bits, xid),
        ]
        .concat()
    };
    let dump = |bits: u8| {
        let plain = bits & step::PLAIN;
        [
            vec![step::ROTATE | plain],
            sent(step::EVENT | plain, format()),
            sent(step::EVENT | plain, previous()),
            transaction(1, bits),
            transaction(2, bits),
        ]
        .concat()
    };
    let known = [step::LOGIN, step::IDENTITY];
    // Settings, whether it is a binlogd, and what a replica says of itself.
    let introduced = [step::OK; 8];
    // Where nothing of the timeline has arrived yet, the source is asked how its first file begins.
    let look = [vec![step::NEXT_CONNECTION], known.to_vec(), vec![step::OK]].concat();
    let look = [look, vec![step::ROTATE | step::PLAIN], sent(step::EVENT | step::PLAIN, format())].concat();
    let purged =
        [&b"\xFF\xD4\x04#HY000Could not find first log file name in binary log index file"[..]].concat();
    let purged = [vec![step::PACKET], (purged.len() as u16).to_le_bytes().to_vec(), purged].concat();
    let other_file = scripted(MADE_UP, code::ROTATE, &event::rotate(4, "mysql-bin.000002"));
    let announced = scripted(SOUND, code::ROTATE, &event::rotate(4, "mysql-bin.000002"));
    let held = "abababab-abab-abab-abab-abababababab:1-2";
    let after_two = scripted(SOUND, code::PREVIOUS_GTIDS, &binlog::previous_gtids_body(held));
    let [gtid, begin, ..] = parts(3);
    vec![
        ("semi-sync", [&[1][..], &known, &introduced, &dump(step::FLAGGED), &look].concat()),
        ("durable", [&[3][..], &known, &introduced, &dump(step::FLAGGED), &look].concat()),
        ("asynchronous", [&[5][..], &known, &introduced[1..], &dump(step::PLAIN), &look].concat()),
        ("first", [&[0][..], &known, &introduced, &dump(step::FLAGGED), &look].concat()),
        (
            "file-not-found",
            [&[1][..], &known, &introduced, &[step::SEQUENCE, 1], &purged, &look, &look, &look, &look]
                .concat(),
        ),
        (
            "cut-in-a-transaction",
            [
                &[1][..],
                &known,
                &introduced,
                &dump(0),
                &sent(step::EVENT, gtid),
                &sent(step::EVENT, begin),
                &look,
            ]
            .concat(),
        ),
        (
            "two-files",
            [
                &[1][..],
                &known,
                &introduced,
                &dump(0),
                &sent(step::EVENT, announced),
                &sent(step::EVENT, other_file),
                &sent(step::EVENT, format()),
                &sent(step::EVENT, after_two),
                &look,
            ]
            .concat(),
        ),
        ("mariadb", mariadb_session()),
        ("refused", [&[1][..], &[step::LOGIN, step::NO_ROWS, step::NO_ROWS]].concat()),
    ]
}

/// The questions that a MariaDB source is asked, and a dump.
fn mariadb_session() -> Vec<u8> {
    use targets::session::step;
    // The version in the greeting decides.
    let known = [
        vec![step::LOGIN_MARIADB, step::BASICS, step::VARIABLE, 0, step::NO_ROWS, step::VARIABLE, 8],
        vec![step::VARIABLE, 5, step::VARIABLE, 7, step::VARIABLE, 9],
    ]
    .concat();
    let format = scripted(SOUND, code::FORMAT_DESCRIPTION, &binlog::format_body(1));
    let list = scripted(SOUND, code::MARIADB_GTID_LIST, &gtid_list());
    let sent = [step::EVENT | step::PLAIN];
    let dump = [&[step::ROTATE | step::PLAIN], &sent[..], &format, &sent, &list].concat();
    let introduced = vec![step::OK; 9];
    let look = [vec![step::NEXT_CONNECTION], known.clone(), vec![step::OK; 2], dump.clone()].concat();
    [vec![0], known, introduced, dump, look].concat()
}

fn cursor_regressions() -> Seeds {
    let to = |name: &str, position| scripted(MADE_UP, code::ROTATE, &event::rotate(position, name));
    let format = |algorithm| scripted(SOUND, code::FORMAT_DESCRIPTION, &binlog::format_body(algorithm));
    let start = [vec![3], format(1)].concat();
    let gtid = scripted(SOUND, code::ANONYMOUS_GTID, &binlog::gtid_body(0));
    let rows = scripted(SOUND, code::WRITE_ROWS, &[7; 20]);
    let unverified = scripted(SIZE | POSITION, code::WRITE_ROWS, &[7; 20]);
    let mariadb_gtid = [&[0; 8][..], &[0; 4], &[1]].concat();
    let statement = scripted(SOUND, code::QUERY, &binlog::query_body("CREATE TABLE t (a int)"));
    let bad_rotate = scripted(SOUND, code::ROTATE, b"\x04\0\0\0\0\0\0\0no-number");
    vec![
        ("same-file-begins-again", [&start[..], &transaction(1), &to("mysql-bin.000001", 4)].concat()),
        ("same-file-elsewhere", [&start[..], &transaction(1), &to("mysql-bin.000001", 500)].concat()),
        ("switch-into-the-middle", [&start[..], &to("mysql-bin.000002", 500)].concat()),
        ("no-format-description", [&[3][..], &rows].concat()),
        ("no-format-description-in-parts", [vec![3, rows[0] | SPECIAL], rows[1..].to_vec()].concat()),
        ("another-format-inside", [&start[..], &transaction(1), &format(0), &unverified].concat()),
        ("rotate-to-no-name", [&start[..], &bad_rotate].concat()),
        (
            "previous-gtids-of-garbage",
            [&start[..], &scripted(SOUND, code::PREVIOUS_GTIDS, b"short")].concat(),
        ),
        ("abandoned-transaction", [&start[..], &gtid, &gtid].concat()),
        (
            "both-kinds-of-gtid",
            [&start[..], &transaction(1), &scripted(SOUND, code::MARIADB_GTID, &mariadb_gtid), &statement]
                .concat(),
        ),
    ]
}

fn dump_framer_regressions() -> Seeds {
    // An ERR packet of 130 000 bytes: longer than the buffer.
    let error = [vec![0x0d, 2, 0xd4, 4], 32_500u16.to_le_bytes().to_vec()].concat();
    vec![("error-larger-than-the-buffer", [vec![0], vec![0xff; 8], error].concat())]
}

fn recover_tail_regressions() -> Seeds {
    vec![("index-lost-the-sealed-file", vec![0x4b, 0, 0]), ("index-is-not-utf-8", vec![0x61, 0, 0, 0xff])]
}

/// Rows of a table of many types, as `targets::rows` reads them.
fn rows() -> Seeds {
    /// A type, its metadata, and a value in a row.
    type Typed = (u8, &'static [u8], &'static [u8]);
    let types: &[Typed] = &[
        (3, &[], &[0xff; 4]),
        (8, &[], &[1; 8]),
        (4, &[4], &[0xcd, 0xcc, 0x8c, 0x3f]),
        (5, &[8], &[1, 0, 0, 0, 0, 0, 0, 0]),
        (246, &[10, 2], &[0x80, 0, 0, 1, 50]),
        (16, &[1, 2], &[1, 2, 3]),
        (13, &[], &[124]),
        (10, &[], &[0x41, 0xec, 0x0f]),
        (19, &[3], &[0x80, 0, 1, 0, 1]),
        (18, &[6], &[0x99, 0xb4, 0xc4, 0, 0, 0, 0, 1]),
        (17, &[0], &[0x65, 0x53, 0xf1, 0]),
        (15, &[40, 0], b"\x03a'\n"),
        (254, &[254, 16], b"\x02\0b"),
        (252, &[2], b"\x03\0\xc3\xa4x"),
        (254, &[247, 1], &[2]),
        (254, &[248, 1], &[3]),
    ];
    // {"a": 1}, POINT(1 1), and a vector.
    let own: &[Typed] = &[
        (245, &[4], b"\x0d\0\0\0\0\x01\0\x0c\0\x0b\0\x01\0\x05\x01\0a"),
        (255, &[4], b"\x19\0\0\0\0\0\0\0\x01\x01\0\0\0\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xf0\x3f"),
        (242, &[4], b"\x04\0\0\0\0\0\x80\x3f"),
    ];
    // Both kinds of COMPRESSED columns of MariaDB: as it is, and 40 times a letter.
    let packed: &[Typed] =
        &[(140, &[2], b"\x03\0\0ab"), (141, &[200, 0], b"\x08\x89\x28\x4b\x4a\x22\x0e\0\0")];
    let optional: &[&[u8]] = &[
        &[1, 1, 0x40],
        &[2, 3, 45, 1, 63],
        &[4, 4, 1, b'a', 1, b'b'],
        &[5, 6, 2, 1, b'x', 2, b'y', b'z'],
        &[6, 5, 2, 1, b'x', 1, b'y'],
        &[8, 1, 0],
    ];
    let script = |flags: u8, types: &[Typed], optional: &[u8], rows: usize| {
        let mut script = vec![flags, types.len() as u8];
        for (code, metadata, _) in types {
            script.push(*code);
            script.extend_from_slice(metadata);
        }
        script.extend_from_slice(&(optional.len() as u16).to_le_bytes());
        script.extend_from_slice(optional);
        let values: Vec<u8> = types.iter().flat_map(|(.., value)| value.iter().copied()).collect();
        let row = [&vec![0; types.len().div_ceil(8)][..], &values].concat();
        script.extend_from_slice(&row.repeat(rows));
        script
    };
    // Two texts of Chinese, one with a character of four bytes.
    let texts: &[Typed] =
        &[(15, &[40, 0], b"\x05\xd6\xd0\xce\xc4a"), (252, &[1], b"\x06\xd6\xd0\x81\x30\x81\x30")];
    let (mysql, mariadb) = ([types, own].concat(), [types, packed].concat());
    let table = b"\x07\0\0\0\0\0\x01\0\x04shop\0\x01t\0\x02\x03\xf5\x01\x04\x03";
    let diff = b"\x07\0\0\0\0\0\x01\0\x02\0\x02\x03\x03\0\x01\0\0\0\x03\0\0\0\x05\x01\0\x01\x01\0\x01\0\0\0\x09\0\0\0\0\x03$.a\x03\x05\x02\0";
    let len = |bytes: &[u8]| (bytes.len() as u16).to_le_bytes();
    vec![
        ("inserted", script(4, &mysql, &optional.concat(), 3)),
        ("updated", script(4 | 1 << 3, &mysql, &[], 4)),
        ("deleted", script(4 | 2 << 3 | 0x20, types, &[], 1)),
        ("of-mariadb", script(5, &mariadb, &optional.concat(), 2)),
        ("gbk-and-gb18030", script(4, texts, &[3, 2, 28, 248], 2)),
        ("some-columns", [&[0, 2, 3, 8, 0, 0, 2, 0][..], &[7; 8], &[1], &[0; 8]].concat()),
        ("partial-json", [&[2 | 3 << 3][..], &len(table), table, &len(diff), diff].concat()),
    ]
}

fn search_index() -> Seeds {
    let mut log = Binlog::new("");
    log.event(code::GTID, &binlog::gtid_body(1), false);
    log.event(code::QUERY, &binlog::query_body("DROP TABLE t"), true);
    struct Bytes(Vec<u8>);
    impl ::binlog::storage::ReadAt for Bytes {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
            let rest = self.0.get(offset as usize..).unwrap_or_default();
            let len = rest.len().min(buffer.len());
            buffer[..len].copy_from_slice(&rest[..len]);
            Ok(len)
        }
    }
    let len = log.bytes.len() as u64;
    let index = points::index::build(&Bytes(log.bytes.clone()), len, &mut |_| Ok(()))
        .expect("a sound log")
        .to_bytes();
    // Behind the table of sections, each with its length.
    let (mut from, mut sections) = (48, vec![0]);
    for section in 0..4 {
        let len =
            u32::from_le_bytes(index[12 + section * 8..16 + section * 8].try_into().expect("four bytes"))
                as usize;
        sections.extend_from_slice(&(len as u16).to_le_bytes());
        sections.extend_from_slice(&index[from..from + len]);
        from += len;
    }
    vec![("sections", sections), ("whole", [vec![1], index].concat()), ("log", [vec![2], log.bytes].concat())]
}

fn sql() -> Seeds {
    let session = |server: u8, packets: &[&str]| [&[server], packets.join("\0").as_bytes()].concat();
    vec![
        (
            "mysql-replica",
            session(
                2,
                &[
                    "SELECT UNIX_TIMESTAMP()",
                    "SELECT @@GLOBAL.SERVER_ID",
                    "SET @master_heartbeat_period = 30000001024, @source_heartbeat_period = 30000001024",
                    "SET @master_binlog_checksum = @@global.binlog_checksum",
                    "SELECT @source_binlog_checksum",
                ],
            ),
        ),
        (
            "mariadb-replica",
            session(
                4,
                &[
                    "SHOW VARIABLES LIKE 'SERVER_ID'",
                    "SET @slave_connect_state='0-1-5', skip_replication=1",
                    "SELECT binlog_gtid_pos('mysql-bin.000001',4)",
                ],
            ),
        ),
        (
            "java",
            session(
                1,
                &[
                    "/* c */SELECT  @@session.auto_increment_increment AS auto_increment_increment, @@time_zone AS `tz`",
                    "SET NAMES utf8mb4 COLLATE utf8mb4_bin, SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                    "SHOW GLOBAL VARIABLES WHERE Variable_name LIKE 'rpl%' OR Variable_name IN ('gtid_mode') AND NOT Value = 'ON'",
                ],
            ),
        ),
        (
            "administrator",
            session(
                0x82,
                &[
                    "KILL QUERY 8; PURGE BINARY LOGS BEFORE NOW() - INTERVAL 3 DAY; SHOW REPLICA STATUS FOR CHANNEL ''",
                    "SHOW BINLOG EVENTS IN 'mysql-bin.000001' FROM 4 LIMIT 2, 3; STOP SLAVE; FLUSH LOGS",
                    "/*!40101 SET @a = concat(0x41, _utf8'b', 'c\\n') */; select @a, gtid_subtract(@@gtid_executed, '') # x",
                    "set sql_mode = 'ANSI_QUOTES'",
                    "select 1 \"a\"\"b\"",
                ],
            ),
        ),
    ]
}
