//! The token in a form, which tells that the form is of this page.

use crate::deed::Deed;
use sha2::{Digest, Sha256};
use std::hint::black_box;

/// What the tokens of a run of binlogd are made with. Nobody else knows it, and it is another one after a restart.
pub(crate) struct TokenSecret([u8; 32]);

impl TokenSecret {
    /// Of the system's random numbers.
    ///
    /// # Errors
    /// When there are none.
    pub(crate) fn new() -> Result<TokenSecret, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(TokenSecret(bytes))
    }

    /// The token of one form: for this user, this source and this deed alone.
    pub(crate) fn token(&self, user: Option<&str>, source: &str, deed: &Deed) -> String {
        let digest = self.digest(user, source, deed);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether a token is that of this form. The time that it takes tells nothing of the token.
    pub(crate) fn knows(&self, given: &str, user: Option<&str>, source: &str, deed: &Deed) -> bool {
        let expected = self.token(user, source, deed);
        let differing = expected.bytes().zip(given.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
        given.len() == expected.len() && black_box(differing) == 0
    }

    /// Keyed twice, as in HMAC, so that nobody makes a longer text's digest out of a shorter one's. Each part is preceded by its
    /// length, so that no two forms have one text.
    fn digest(&self, user: Option<&str>, source: &str, deed: &Deed) -> [u8; 32] {
        let mut inner = Sha256::new().chain_update(self.0).chain_update([u8::from(user.is_some())]);
        let fields = deed.fields();
        let values = fields.iter().flat_map(|(name, value)| [*name, value.as_str()]);
        for part in [user.unwrap_or_default(), source].into_iter().chain(values) {
            inner = inner.chain_update((part.len() as u64).to_le_bytes()).chain_update(part);
        }
        Sha256::new().chain_update(self.0).chain_update(inner.finalize()).finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_one_form_of_one_user_and_run() {
        let secret = TokenSecret::new().unwrap();
        let slot = |name: &str| Deed::DropSlot(name.to_owned());
        let token = secret.token(Some("dba"), "orders", &slot("s"));
        assert!(secret.knows(&token, Some("dba"), "orders", &slot("s")));
        for (user, source, deed) in [
            (None, "orders", slot("s")),
            (Some(""), "orders", slot("s")),
            (Some("db"), "orders", slot("s")),
            (Some("dbao"), "rders", slot("s")),
            (Some("dba"), "stock", slot("s")),
            (Some("dba"), "orders", slot("t")),
            (Some("dba"), "orders", Deed::Stop),
        ] {
            assert!(!secret.knows(&token, user, source, &deed), "{user:?} {source} {deed:?}");
        }
        let flipped = token.replace(&token[..1], if &token[..1] == "0" { "1" } else { "0" });
        for wrong in ["", "0", &token[1..], &format!("{token}0"), &flipped] {
            assert!(!secret.knows(wrong, Some("dba"), "orders", &slot("s")), "{wrong}");
        }
        assert!(!TokenSecret::new().unwrap().knows(&token, Some("dba"), "orders", &slot("s")), "another run");
    }
}
