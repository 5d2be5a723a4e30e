use super::*;
use codec::event::{TableColumns, TableMap};

fn event(event_type: EventType, body: &[u8]) -> Vec<u8> {
    let mut event = vec![0; HEADER_LEN];
    event[TYPE_AT] = event_type.0;
    event.extend_from_slice(body);
    event
}

#[test]
fn a_table_map_gets_another_name_and_keeps_its_columns() {
    let body =
        [&[7, 0, 0, 0, 0, 0, 1, 0][..], b"\x04shop\0\x06orders\0\x02\x03\x0f\x02\x40\x00\x02", &[1, 1, 0]]
            .concat();
    let old = event(EventType::TABLE_MAP, &body);
    let name = "binlogd_restore_0000cafe_0";
    let new = table_map(&old, 3, 77, (name, "orders")).unwrap();
    let (names, columns) = (TableMap::parse(&new).unwrap(), TableColumns::parse(&new).unwrap());
    assert_eq!((names.schema, names.table), (name.as_bytes(), &b"orders"[..]));
    let before = TableColumns::parse(&old).unwrap();
    assert_eq!(columns, TableColumns { table_id: [3, 0, 0, 0, 0, 0], ..before });
    assert_eq!(u32::from_le_bytes(new[SIZE_AT..SIZE_AT + 4].try_into().unwrap()) as usize, new.len());
    assert_eq!(new[SERVER_ID_AT..SERVER_ID_AT + 4], [77, 0, 0, 0]);
    for len in 0..HEADER_LEN + 8 + 6 + 8 {
        let cut = table_map(&old[..len], 3, 77, (name, "orders"));
        assert!(cut.is_none_or(|cut| TableColumns::parse(&cut).is_err()), "{len} bytes");
    }
    assert_eq!(table_map(&old, 3, 77, (&"x".repeat(256), "orders")), None);
}

#[test]
fn rows_get_the_number_and_flags_of_ours() {
    let body = [9, 0, 0, 0, 0, 0, STATEMENT_END | RELAXED_UNIQUE_CHECKS, 0, 2, 0, 1, 0xff, 0, 42, 0, 0, 0];
    let old = event(EventType::WRITE_ROWS, &body);
    let mut new = rows(EventType::WRITE_ROWS, &old, (3, 77), 100).unwrap();
    assert_eq!(new[FLAGS_AT], NO_FOREIGN_KEY_CHECKS);
    assert!(is_without_foreign_keys(&new) && !is_without_foreign_keys(&old));
    end_statement(&mut new);
    assert_eq!(new[FLAGS_AT], NO_FOREIGN_KEY_CHECKS | STATEMENT_END);
    assert_eq!(new[HEADER_LEN..HEADER_LEN + 6], [3, 0, 0, 0, 0, 0]);
    assert_eq!(new[FLAGS_AT + 2..], body[8..]);
    assert!(rows(EventType::XID, &old, (3, 77), 100).is_err());
    assert!(rows(EventType::WRITE_ROWS, &old[..HEADER_LEN + 7], (3, 77), 100).is_err());
}

/// As MariaDB packs them: zlib behind a byte that says so, and the length.
#[test]
fn what_mariadb_has_compressed_is_unpacked() {
    let plain: Vec<u8> = [0, 42, 0, 0, 0].repeat(50);
    // A stored block of zlib.
    let len = plain.len() as u16;
    let mut zlib = vec![0x78, 1, 1];
    zlib.extend([len.to_le_bytes(), (!len).to_le_bytes()].concat());
    zlib.extend(&plain);
    let (a, b) = plain.iter().fold((1u32, 0u32), |(a, b), byte| {
        ((a + u32::from(*byte)) % 65521, (b + a + u32::from(*byte)) % 65521)
    });
    zlib.extend((b << 16 | a).to_be_bytes());
    let body = [&[9, 0, 0, 0, 0, 0, 1, 0, 1, 0xff][..], &[0x81, plain.len() as u8], &zlib].concat();
    let old = event(EventType::MARIADB_WRITE_ROWS_COMPRESSED_V1, &body);
    let new = rows(EventType::MARIADB_WRITE_ROWS_COMPRESSED_V1, &old, (3, 77), 1000).unwrap();
    let parsed = RowsEvent::parse(EventType::WRITE_ROWS_V1, &new).unwrap().unwrap();
    assert_eq!((new[TYPE_AT], parsed.rows), (EventType::WRITE_ROWS_V1.0, &plain[..]));
    assert!(rows(EventType::MARIADB_WRITE_ROWS_COMPRESSED_V1, &old, (3, 77), 100).is_err());
}
