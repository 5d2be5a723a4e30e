use super::*;
use crate::effects::Effects;
use crate::testing::{Bytes, COMMITTED, insert, statement};
use crate::wanted_gtids::WantedGtids;
use binlog::storage::Storage;
use binlog::storage::posix::PosixStorage;
use binlog::testing::{FileBuilder, SERVER_UUID};
use proptest::prelude::*;

/// Many transactions of a few tables, and one DROP among them.
fn log(transactions: u64) -> Vec<u8> {
    let mut file = FileBuilder::new().previous_gtids("");
    for number in 1..=transactions {
        match number {
            50 => statement(&mut file, 50, "DROP TABLE `gone`"),
            _ => insert(
                &mut file,
                number,
                ["orders", "lines", "stock"][number as usize % 3],
                number as usize % 7,
            ),
        }
    }
    file.rotate("b.000002").finish()
}

fn indexed(bytes: &[u8]) -> SearchIndex {
    build(&Bytes(bytes.to_vec()), bytes.len() as u64, &mut |_| Ok(())).unwrap()
}

#[test]
fn an_index_says_what_the_file_holds() {
    let bytes = log(200);
    let index = indexed(&bytes);
    assert_eq!(index.head.transactions, 200);
    let (first, last) = (COMMITTED as i64 + 1, COMMITTED as i64 + 200);
    assert_eq!(index.head.committed, (first, last));
    let wanted = |text: &str| {
        index.head.gtids.may_hold(&WantedGtids::parse(&format!("{SERVER_UUID}:{text}")).unwrap())
    };
    assert!(wanted("1") && wanted("200-300") && !wanted("201-300"));
    let orders = index.tables.iter().find(|table| table.name.table == "orders").unwrap();
    let expected: u64 = (1..=200).filter(|number| number % 3 == 0).map(|number| number % 7).sum();
    assert_eq!((orders.rows.written, orders.transactions, orders.effects), (expected, 66, Effects::INSERT));
    assert_eq!(index.details.definitions.len(), 1);
    assert_eq!(index.details.definitions[0].text, "DROP TABLE `gone`");
    assert_eq!(index.details.biggest.len(), 8);
    assert!(index.details.biggest.is_sorted_by(|one, two| one.end - one.at >= two.end - two.at));
    let counted: u64 = index.details.histogram.buckets.iter().map(|bucket| bucket.transactions).sum();
    assert_eq!(counted, 200);
}

#[test]
fn an_index_is_short() {
    let bytes = log(30_000);
    let index = indexed(&bytes);
    let len = index.to_bytes().len();
    assert!(len <= bytes.len() / 200, "{len} of {}", bytes.len());
    assert!(index.blocks.len() > 20, "{} blocks", index.blocks.len());
}

#[test]
fn too_many_tables_are_told_as_any() {
    let mut file = FileBuilder::new().previous_gtids("");
    for number in 1..=2000 {
        insert(&mut file, number, &format!("a_table_with_a_long_name_number_{number}"), 1);
    }
    let index = indexed(&file.finish());
    assert!(index.to_bytes().len() <= 4096);
    assert!(index.head.has_more_tables && index.tables.len() < 2000);
    let is_open = |block: &Block| block.tables == BlockTables::Any;
    assert!(index.blocks.iter().all(is_open), "each block has some that are not listed");
}

#[test]
fn what_is_written_is_read_as_a_whole_and_in_parts() {
    let bytes = log(300);
    let index = indexed(&bytes);
    assert_eq!(SearchIndex::parse(&index.to_bytes()).unwrap(), index);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("b.000001");
    std::fs::write(&path, index.to_bytes()).unwrap();
    let open = || PosixStorage.open_read(&path).unwrap();
    let file = IndexFile::open(open(), &index.head.identity).unwrap();
    assert_eq!((file.head(), &file.tables().unwrap()), (&index.head, &index.tables));
    assert_eq!(
        (file.details().unwrap(), file.blocks().unwrap()),
        (index.details.clone(), index.blocks.clone())
    );
    let other = indexed(&log(299)).head.identity;
    assert!(matches!(IndexFile::open(open(), &other), Err(IndexError::OtherFile)));
}

#[test]
fn damage_and_other_versions_are_seen() {
    let bytes = indexed(&log(60)).to_bytes();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x20;
        assert!(SearchIndex::parse(&damaged).is_err(), "byte {at}");
        assert!(SearchIndex::parse(&bytes[..at]).is_err(), "{at} bytes");
    }
    let mut later = bytes.clone();
    later[8] = super::file::VERSION as u8 + 1;
    assert!(matches!(SearchIndex::parse(&later), Err(IndexError::OtherVersion)));
}

#[test]
fn files_of_one_name_are_told_apart() {
    let (one, mut other) = (log(60), log(60));
    let end = other.len() - 30;
    other[end] ^= 1;
    let of = |bytes: &[u8]| Identity::of(&Bytes(bytes.to_vec()), bytes.len() as u64).unwrap();
    assert_eq!(of(&one), of(&one));
    assert_ne!(of(&one), of(&other));
    assert_ne!(of(&one), of(&log(61)));
    assert!(Identity::of(&Bytes(one.clone()), one.len() as u64 + 1).is_err());
}

#[test]
fn a_file_that_ends_inside_an_event_has_no_index() {
    let bytes = log(3);
    let cut = &bytes[..bytes.len() - 3];
    let error = build(&Bytes(cut.to_vec()), cut.len() as u64, &mut |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("ends inside an event"), "{error}");
}

proptest! {
    /// With its checksums made right, so that what stands in the sections is read.
    #[test]
    fn no_bytes_make_it_panic(at in 0..4000_usize, bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
        let mut file = indexed(&log(60)).to_bytes();
        let header = 48;
        let at = header + at % (file.len() - header);
        let end = (at + bytes.len()).min(file.len());
        file[at..end].copy_from_slice(&bytes[..end - at]);
        let mut from = header;
        for section in 0..4 {
            let len = u32::from_le_bytes(file[12 + section * 8..16 + section * 8].try_into().unwrap()) as usize;
            let checksum = crc32fast::hash(&file[from..from + len]);
            file[16 + section * 8..20 + section * 8].copy_from_slice(&checksum.to_le_bytes());
            from += len;
        }
        let checksum = crc32fast::hash(&file[..header - 4]);
        file[header - 4..header].copy_from_slice(&checksum.to_le_bytes());
        let _ = SearchIndex::parse(&file);
        let _ = SearchIndex::parse(&bytes);
    }
}
