use super::*;
use crate::stock;
use age::secrecy::ExposeSecret as _;
use proptest::prelude::*;
use std::path::Path;
use std::sync::LazyLock;

/// A key, and those who have it.
struct Pair {
    recipients: Arc<Recipients>,
    opener: Opener,
}

fn identities(folder: &Path, text: &str) -> Identities {
    let path = folder.join("key");
    std::fs::write(&path, text).unwrap();
    let mut identities = Identities::new();
    identities.add_file(&path, &mut |_| None).unwrap();
    identities
}

fn pair() -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let identity = age::x25519::Identity::generate();
    let mut recipients = Recipients::new();
    recipients.add(&identity.to_public().to_string(), "test").unwrap();
    let opener = Opener::new(identities(folder.path(), identity.to_string().expose_secret()));
    Pair { recipients: Arc::new(recipients), opener }
}

/// One for the tests that need any.
static PAIR: LazyLock<Pair> = LazyLock::new(pair);

fn text(len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|at| b"etaoin shrdlu,.7"[(at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize])
        .collect()
}

/// What a commit says of an object.
fn segment(sealed: &Sealed, len: usize) -> Segment {
    let encrypted = !sealed.keys.is_empty();
    let (from, to) = (4, 4 + len as u64);
    Segment {
        from,
        to,
        sha256: sealed.sha256.clone(),
        object: names::segment("shop", "0001-u", "b.000001", from, to, &sealed.stored_sha256, encrypted),
        stored: sealed.bytes.len() as u64,
        stored_sha256: sealed.stored_sha256.clone(),
        keys: sealed.keys.clone(),
    }
}

/// As if the object had been uploaded with these bytes.
fn of_bytes(segment: &Segment, stored: &[u8]) -> Segment {
    Segment { stored: stored.len() as u64, stored_sha256: names::sha256(stored), ..segment.clone() }
}

fn sealers() -> [Sealer; 2] {
    [Sealer::new(1, None).unwrap(), Sealer::new(1, Some(Arc::clone(&PAIR.recipients))).unwrap()]
}

#[test]
fn what_is_not_encrypted_is_what_stock_zstd_reads() {
    let plain = text(300_000);
    let sealed = Sealer::new(3, None).unwrap().seal(&plain, &[]).unwrap();
    assert!(sealed.bytes.len() < plain.len() * 2 / 3, "{}", sealed.bytes.len());
    assert_eq!((sealed.sha256, sealed.stored_sha256), (names::sha256(&plain), names::sha256(&sealed.bytes)));
    let Some(read) = stock::zstd(&["-d", "-c"], &sealed.bytes) else { return };
    assert!(read == plain);
}

#[test]
fn two_uploads_of_the_same_bytes_have_two_names() {
    for mut sealer in sealers() {
        let (one, two) = (sealer.seal(b"bytes", &[]).unwrap(), sealer.seal(b"bytes", &[]).unwrap());
        assert_ne!(segment(&one, 5).object, segment(&two, 5).object);
        assert_eq!(one.sha256, two.sha256);
    }
}

#[test]
fn every_recipient_can_read_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (age::x25519::Identity::generate(), age::x25519::Identity::generate());
    let mut recipients = Recipients::new();
    recipients.add(&one.to_public().to_string(), "test").unwrap();
    recipients.add(&two.to_public().to_string(), "test").unwrap();
    let mut holders = vec![
        identities(folder.path(), one.to_string().expose_secret()),
        identities(folder.path(), two.to_string().expose_secret()),
    ];
    for kind in ["ed25519", "rsa"] {
        let path = folder.path().join(kind);
        let name = path.to_str().unwrap();
        if stock::ssh_keygen(&["-q", "-t", kind, "-N", "", "-f", name]).is_some() {
            recipients.add_file(&path.with_extension("pub")).unwrap();
            holders.push(identities(folder.path(), &std::fs::read_to_string(&path).unwrap()));
        }
    }
    let labels = recipients.labels();
    let plain = text(200_000);
    let sealed = Sealer::new(1, Some(Arc::new(recipients))).unwrap().seal(&plain, &[]).unwrap();
    assert_eq!(sealed.keys, labels);
    let segment = segment(&sealed, plain.len());
    assert!(segment.object.ends_with(".zst.age"));
    for holder in holders {
        assert!(Opener::new(holder).open(&segment, &sealed.bytes).unwrap() == plain);
    }

    check_stored(&segment, &sealed.bytes).expect("that needs no key");
    let error = PAIR.opener.open(&segment, &sealed.bytes).unwrap_err().to_string();
    for label in labels.iter().chain(&PAIR.recipients.labels()) {
        assert!(error.contains(label), "{error}");
    }
    let error = Opener::new(Identities::new()).open(&segment, &sealed.bytes).unwrap_err().to_string();
    assert!(error.contains("no private key was given"), "{error}");
}

#[test]
fn a_flipped_bit_is_seen_wherever_it_is() {
    let plain = text(400);
    for mut sealer in sealers() {
        let sealed = sealer.seal(&plain, std::slice::from_ref(&(0..100))).unwrap();
        let segment = segment(&sealed, plain.len());
        for at in 0..sealed.bytes.len() {
            let mut stored = sealed.bytes.to_vec();
            stored[at] ^= 1 << (at % 8);
            for error in [check_stored(&segment, &stored), PAIR.opener.open(&segment, &stored).map(drop)] {
                assert!(matches!(error, Err(OpenError::StoredHash { .. })), "byte {at}: {error:?}");
            }
            // Where the commit was made of the damaged object, still no wrong byte comes out.
            match PAIR.opener.open(&of_bytes(&segment, &stored), &stored) {
                Ok(read) => assert!(read == plain && sealed.keys.is_empty(), "byte {at}"),
                Err(OpenError::Decrypt { .. } | OpenError::NoIdentity { .. }) => {
                    assert!(!sealed.keys.is_empty())
                }
                Err(OpenError::Unpack { .. } | OpenError::PlainHash { .. }) => {
                    assert!(sealed.keys.is_empty())
                }
                Err(error) => panic!("byte {at}: {error}"),
            }
        }
    }
}

#[test]
fn a_cut_object_is_seen_wherever_it_ends() {
    let plain = text(400);
    for mut sealer in sealers() {
        let sealed = sealer.seal(&plain, &[]).unwrap();
        let segment = segment(&sealed, plain.len());
        for len in 0..sealed.bytes.len() {
            let stored = &sealed.bytes[..len];
            let error = PAIR.opener.open(&segment, stored).unwrap_err();
            assert!(matches!(error, OpenError::StoredLength { .. }), "{len}: {error}");
            if let Ok(read) = PAIR.opener.open(&of_bytes(&segment, stored), stored) {
                assert!(read == plain && sealed.keys.is_empty(), "{len}: only the last frame may be missing");
            }
        }
    }
}

#[test]
fn a_commit_that_says_something_else_is_not_believed() {
    let plain = text(5000);
    for mut sealer in sealers() {
        let sealed = sealer.seal(&plain, &[]).unwrap();
        let right = segment(&sealed, plain.len());
        let error = |wrong: Segment| PAIR.opener.open(&wrong, &sealed.bytes).unwrap_err();
        for to in [right.to - 1, right.to + 1] {
            assert!(matches!(error(Segment { to, ..right.clone() }), OpenError::Unpack { .. }));
        }
        for to in [right.from, 0, u64::MAX, right.from + SEGMENT_BYTES_MAX as u64 + 1] {
            assert!(matches!(error(Segment { to, ..right.clone() }), OpenError::Range { .. }));
        }
        let wrong = error(Segment { sha256: names::sha256(b"else"), ..right.clone() });
        assert!(matches!(wrong, OpenError::PlainHash { .. }));
        assert!(wrong.to_string().starts_with(&right.object), "{wrong}");
        // By its name it is of the other kind.
        let object = match right.object.strip_suffix(".age") {
            Some(name) => name.to_owned(),
            None => format!("{}.age", right.object),
        };
        let wrong = error(Segment { object, ..right.clone() });
        assert!(matches!(wrong, OpenError::Unpack { .. } | OpenError::Decrypt { .. }), "{wrong}");
    }
}

#[test]
fn a_bomb_is_unpacked_no_further_than_promised() {
    let mut bomb = Vec::new();
    zstd::stream::copy_encode(std::io::Read::take(std::io::repeat(0), 256 << 20), &mut bomb, 1).unwrap();
    assert!(bomb.len() < 1 << 20);
    let sealed = Sealer::new(1, None).unwrap().seal(&[0; 1000], &[]).unwrap();
    let plain = of_bytes(&segment(&sealed, 1000), &bomb);
    let error = PAIR.opener.open(&plain, &bomb).unwrap_err();
    assert!(matches!(error, OpenError::Unpack { .. }), "{error}");

    let encrypted = encrypt(&bomb, &PAIR.recipients).unwrap();
    let object = format!("{}.age", plain.object);
    let segment = Segment { object, ..of_bytes(&plain, &encrypted) };
    let error = PAIR.opener.open(&segment, &encrypted).unwrap_err();
    assert!(matches!(error, OpenError::Unpack { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn what_was_sealed_is_opened(
        len in prop_oneof![1..300_usize, 65_000..66_000_usize, 1..600_000_usize],
        level in prop_oneof![4 => 1..=6_i32, 1 => 7..=19_i32],
        encrypted in any::<bool>(),
        range in (0.0..1.0_f64, 0.0..1.0_f64),
    ) {
        let plain = text(len);
        let at = |share: f64| (len as f64 * share) as usize;
        let range = at(range.0.min(range.1))..at(range.0.max(range.1));
        let recipients = encrypted.then(|| Arc::clone(&PAIR.recipients));
        let mut sealer = Sealer::new(level, recipients).unwrap();
        // The second is made with what the first has left behind.
        for _ in 0..2 {
            let sealed = sealer.seal(&plain, std::slice::from_ref(&range)).unwrap();
            let segment = segment(&sealed, len);
            prop_assert!(PAIR.opener.open(&segment, &sealed.bytes).unwrap() == plain);
        }
    }
}

#[test]
fn the_longest_segment_fits() {
    let plain = text(SEGMENT_BYTES_MAX);
    for mut sealer in sealers() {
        let sealed = sealer.seal(&plain, std::slice::from_ref(&(0..SEGMENT_BYTES_MAX))).unwrap();
        assert!(sealed.bytes.len() < SEGMENT_BYTES_MAX + 8192, "stored as it is");
        assert!(PAIR.opener.open(&segment(&sealed, plain.len()), &sealed.bytes).unwrap() == plain);
    }
}
