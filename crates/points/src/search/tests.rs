use super::*;
use crate::effects::Effects;
use crate::glob::TableGlob;
use crate::testing::{COMMITTED, insert, statement};
use crate::wanted_gtids::WantedGtids;
use binlog::storage::posix::PosixStorage;
use binlog::testing::{FileBuilder, SERVER_UUID};

const NAME: &str = "b.000001";

/// Ten thousand transactions, about 2 MB; each hundredth is of a table of its own, and number 5000 drops one.
fn copy() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut file = FileBuilder::new().previous_gtids("");
    for number in 1..=10_000 {
        match number {
            5000 => statement(&mut file, number, "DROP TABLE `gone`"),
            _ if number % 1000 == 0 => insert(&mut file, number, &format!("rare{number}"), 9),
            _ => insert(&mut file, number, "orders", 2),
        }
    }
    std::fs::write(dir.path().join(NAME), file.rotate("b.000002").finish()).unwrap();
    dir
}

fn found(dir: &Path, is_sealed: bool, criteria: &Criteria) -> (Vec<u64>, Searched) {
    let mut numbers = Vec::new();
    let mut sink = |transaction: &Transaction| {
        let (_, number) = crate::index::Origin::of(&transaction.id.unwrap());
        numbers.push(number);
        true
    };
    let searched = search_file(&PosixStorage, dir, NAME, is_sealed, true, criteria, &mut sink).unwrap();
    (numbers, searched)
}

fn each_criterion() -> Vec<(Criteria, Vec<u64>)> {
    let any = Criteria::default;
    let gtids = |text: &str| Some(WantedGtids::parse(&format!("{SERVER_UUID}:{text}")).unwrap());
    let tables = |text: &str| vec![TableGlob::parse(text).unwrap()];
    vec![
        (Criteria { gtids: gtids("7000:9000-9001:20000"), ..any() }, vec![7000, 9000, 9001]),
        (Criteria { gtids: gtids("20000"), ..any() }, vec![]),
        (
            Criteria { from: Some(COMMITTED as i64 + 4999), until: Some(COMMITTED as i64 + 5001), ..any() },
            vec![4999, 5000],
        ),
        (Criteria { tables: tables("shop.rare3000"), ..any() }, vec![3000]),
        (Criteria { tables: tables("shop.none"), ..any() }, vec![]),
        (Criteria { kinds: Effects::DROP, ..any() }, vec![5000]),
        (Criteria { kinds: Effects::DROP, tables: tables("shop.orders"), ..any() }, vec![]),
        (Criteria { min_rows: 9, from: Some(COMMITTED as i64 + 8000), ..any() }, vec![8000, 9000, 10_000]),
        (Criteria { text: Some(b"drop table".to_vec()), ..any() }, vec![5000]),
        (Criteria { thread: Some(8), ..any() }, vec![5000]),
    ]
}

#[test]
fn an_index_finds_what_a_walk_finds() {
    let dir = copy();
    let size = std::fs::metadata(dir.path().join(NAME)).unwrap().len();
    for (number, (criteria, expected)) in each_criterion().into_iter().enumerate() {
        let (by_walk, walked) = found(dir.path(), false, &criteria);
        assert_eq!(by_walk, expected, "{criteria:?}");
        assert!(walked.walked > size * 9 / 10 && !walked.had_index);
        let (first, searched) = found(dir.path(), true, &criteria);
        assert_eq!((first, searched.made_index), (expected.clone(), number == 0), "{criteria:?}");
        let (again, searched) = found(dir.path(), true, &criteria);
        assert_eq!((again, searched.had_index), (expected, true), "{criteria:?}");
        if criteria.text.is_none() && criteria.thread.is_none() {
            assert!(searched.walked < size / 2, "{searched:?} of {size}: {criteria:?}");
        }
    }
}

#[test]
fn an_index_that_is_none_or_of_another_file_is_made_again() {
    let dir = copy();
    let (criteria, expected) = each_criterion().remove(0);
    let path = search_index::path(dir.path(), NAME);
    found(dir.path(), true, &criteria);
    let whole = std::fs::read(&path).unwrap();
    for damaged in [&whole[..whole.len() - 1], b"", b"nonsense"] {
        std::fs::write(&path, damaged).unwrap();
        let (numbers, searched) = found(dir.path(), true, &criteria);
        assert_eq!((numbers, searched.made_index), (expected.clone(), true));
        assert_eq!(std::fs::read(&path).unwrap(), whole, "it is kept");
    }
    // The same name, another history.
    let mut file = FileBuilder::new().previous_gtids("");
    insert(&mut file, 7000, "orders", 1);
    std::fs::write(dir.path().join(NAME), file.rotate("b.000002").finish()).unwrap();
    let (numbers, searched) = found(dir.path(), true, &criteria);
    assert_eq!((numbers, searched.made_index), (vec![7000], true));
}

#[test]
fn a_search_ends_when_it_is_enough() {
    let dir = copy();
    let mut count = 0;
    let mut sink = |_: &Transaction| {
        count += 1;
        count < 3
    };
    let searched =
        search_file(&PosixStorage, dir.path(), NAME, true, true, &Criteria::default(), &mut sink).unwrap();
    assert!(searched.is_enough && count == 3);
}

#[test]
fn who_does_not_own_the_folder_leaves_nothing_there_and_a_file_that_was_just_begun_holds_nothing() {
    let dir = copy();
    let (criteria, expected) = each_criterion().remove(0);
    let mut count = 0;
    let mut sink = |_: &Transaction| {
        count += 1;
        true
    };
    let searched = search_file(&PosixStorage, dir.path(), NAME, true, false, &criteria, &mut sink).unwrap();
    assert_eq!((searched.made_index, count), (true, expected.len()));
    assert!(!search_index::path(dir.path(), NAME).exists());
    assert!(index_of(&PosixStorage, dir.path(), NAME, true, false).unwrap().head.transactions == 10_000);
    assert!(!search_index::path(dir.path(), NAME).exists());
    let begun = FileBuilder::new().finish();
    for len in [0, 3, 4, 10, begun.len() - 1] {
        std::fs::write(dir.path().join(NAME), &begun[..len]).unwrap();
        assert_eq!(found(dir.path(), false, &Criteria::default()).0, Vec::<u64>::new(), "{len} bytes");
        assert_eq!(index_of(&PosixStorage, dir.path(), NAME, false, true).unwrap().head.transactions, 0);
    }
}

/// As of a file that stands elsewhere: the index comes from the folder, and the file is only walked where it says so.
#[test]
fn an_index_that_comes_from_elsewhere_finds_the_same() {
    let dir = copy();
    let size = std::fs::metadata(dir.path().join(NAME)).unwrap().len();
    assert!(sound_index(&PosixStorage, dir.path(), NAME).is_err(), "there is none yet");
    found(dir.path(), true, &Criteria::default());
    let bytes = sound_index(&PosixStorage, dir.path(), NAME).unwrap();
    let index = SearchIndex::parse(&bytes).unwrap();
    let file = PosixStorage.open_read(&dir.path().join(NAME)).unwrap();
    for (criteria, expected) in each_criterion() {
        let mut numbers = Vec::new();
        let mut sink = |transaction: &Transaction| {
            let (_, number) = crate::index::Origin::of(&transaction.id.unwrap());
            numbers.push(number);
            true
        };
        let searched = search_by_index(&index, &*file, &criteria, &mut sink).unwrap();
        assert_eq!((numbers, searched.had_index), (expected, true), "{criteria:?}");
        let is_anywhere = criteria.text.is_some() || criteria.thread.is_some();
        assert!(is_anywhere || searched.walked < size / 5, "{criteria:?}: {} of {size}", searched.walked);
    }
    // One that is damaged, or of another file, is not given.
    let path = search_index::path(dir.path(), NAME);
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        assert!(sound_index(&PosixStorage, dir.path(), NAME).is_err(), "byte {at}");
    }
    std::fs::write(&path, &bytes).unwrap();
    let mut log = std::fs::read(dir.path().join(NAME)).unwrap();
    log.push(0);
    std::fs::write(dir.path().join(NAME), log).unwrap();
    assert!(matches!(sound_index(&PosixStorage, dir.path(), NAME), Err(IndexError::OtherFile)));
}
