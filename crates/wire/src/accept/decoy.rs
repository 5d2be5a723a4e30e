//! Who stands in for an account that does not exist, so that nothing tells which names there are.

use std::sync::OnceLock;

use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use super::verifiers::{Methods, Verifiers, ed25519_public_key};

/// Verifiers that nobody has the password for. The same name gets the same ones as long as the process runs, with the
/// methods of one of `sets`; with all methods where there are none.
pub(super) fn decoy(user: &[u8], sets: &[Methods]) -> Verifiers {
    let hash = |purpose: &[u8]| {
        let mut context = hmac::Context::with_key(key());
        context.update(purpose);
        context.update(user);
        let mut hash = [0; 32];
        hash.copy_from_slice(context.sign().as_ref());
        hash
    };
    let mut native = [0; 20];
    native.copy_from_slice(&hash(b"native:")[..20]);
    let all = Verifiers {
        sha256: Some(hash(b"sha256:")),
        native: Some(native),
        ed25519: ed25519_public_key(&hash(b"ed25519:")),
    };
    let [a, b, c, d, ..] = hash(b"methods:");
    let place = u32::from_le_bytes([a, b, c, d]) as usize;
    match sets.get(place % sets.len().max(1)) {
        Some(methods) => all.only(*methods),
        None => all,
    }
}

/// Known to this process alone.
fn key() -> &'static hmac::Key {
    static KEY: OnceLock<hmac::Key> = OnceLock::new();
    KEY.get_or_init(|| {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).expect("the operating system gives random bytes");
        hmac::Key::new(hmac::HMAC_SHA256, &bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_decoy_and_shares_it_with_nobody() {
        let all = Methods { caching_sha2: true, native: true, ed25519: true };
        assert!(decoy(b"a", &[]) == decoy(b"a", &[]) && decoy(b"a", &[]) != decoy(b"b", &[]));
        assert_eq!(decoy(b"a", &[]).methods(), all);
    }

    #[test]
    fn decoys_have_the_methods_of_accounts() {
        let native = Methods { native: true, ..Methods::default() };
        let ed25519 = Methods { ed25519: true, ..Methods::default() };
        let sets = [native, ed25519];
        let found: Vec<Methods> = (0..64_u8).map(|name| decoy(&[name], &sets).methods()).collect();
        assert!(sets.iter().all(|set| found.contains(set)));
        assert!(found.iter().all(|methods| sets.contains(methods)));
    }
}
