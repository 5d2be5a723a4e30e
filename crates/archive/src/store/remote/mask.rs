//! Takes secrets out of what is shown. Stores and libraries put whole requests into their messages.

/// What stands in a secret's place.
const MASKED: &str = "***";
/// Shorter ones are not looked for: their letters stand in ordinary words too.
const SECRET_BYTES_MIN: usize = 6;
/// The longest text of an error, in characters.
const TEXT_CHARS_MAX: usize = 400;

/// Names in front of `=` or `:` whose value is masked, in lower case.
const NAMES: [&str; 13] = [
    "authorization",
    "sig",
    "signature",
    "x-amz-signature",
    "x-amz-credential",
    "x-amz-security-token",
    "x-goog-signature",
    "sharedaccesssignature",
    "accountkey",
    "client_secret",
    "access_token",
    "refresh_token",
    "password",
];

/// Secrets that are known: the credentials that a store was opened with.
#[derive(Clone, Default)]
pub(super) struct Mask {
    secrets: Vec<String>,
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mask({} secrets)", self.secrets.len())
    }
}

impl Mask {
    /// One for these secrets.
    pub(super) fn new(secrets: impl IntoIterator<Item = String>) -> Mask {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.len() >= SECRET_BYTES_MIN).collect();
        // The longest first: one may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Mask { secrets }
    }

    /// The text on one line, not too long, and without secrets: those that are known, query strings, user and password of
    /// URLs, and values whose names say what they are.
    pub(super) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            text = text.replace(secret.as_str(), MASKED);
        }
        let mut is_after_authorization = false;
        let words: Vec<String> = text
            .split_whitespace()
            .map(|word| {
                let shown = if is_after_authorization && is_scheme(word) {
                    word.to_owned()
                } else {
                    self::word(word)
                };
                if is_after_authorization && !is_scheme(word) {
                    is_after_authorization = false;
                    return MASKED.to_owned();
                }
                is_after_authorization |= word.to_ascii_lowercase().trim_matches('"') == "authorization:";
                shown
            })
            .collect();
        let line = words.join(" ");
        match line.char_indices().nth(TEXT_CHARS_MAX) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        }
    }
}

/// Words after `Authorization:` that are no secret themselves.
fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "aws4-hmac-sha256", "sharedkey"].contains(&word.to_ascii_lowercase().as_str())
}

/// One word without the secrets that its form gives away.
fn word(word: &str) -> String {
    let mut word = word.to_owned();
    if let Some(at) = word.find("://") {
        let after = at + "://".len();
        let end = word[after..].find(['/', '?', '#']).map_or(word.len(), |end| after + end);
        if let Some(sign) = word[after..end].rfind('@') {
            word.replace_range(after..after + sign, MASKED);
        }
        if let Some(query) = word.find('?') {
            let end = word[query..].find(['"', '\'', ')', '>', ',']).map_or(word.len(), |end| query + end);
            word.replace_range(query + 1..end, MASKED);
            return word;
        }
    }
    let pairs: Vec<String> = word.split('&').map(pair).collect();
    pairs.join("&")
}

/// `name=value` or `name:value` with the value masked, if the name is one of a secret.
fn pair(pair: &str) -> String {
    let Some(at) = pair.find(['=', ':']) else { return pair.to_owned() };
    let name = pair[..at].trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
    // What comes in front of the name in the same word is of a URL or a bracket.
    let is_secret = NAMES.iter().any(|known| name == *known || name.ends_with(&format!("?{known}")));
    if is_secret && pair.len() > at + 1 { format!("{}{MASKED}", &pair[..=at]) } else { pair.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_what_helps_stays() {
        let mask = Mask::new(["wJalrXUtnFEMI/K7MDENG".to_owned(), "abc".to_owned()]);
        for (text, shown) in [
            (
                "error sending request for url (https://b.s3.amazonaws.com/x?X-Amz-Signature=99f&X-Amz-Date=1)",
                "error sending request for url (https://b.s3.amazonaws.com/x?***)",
            ),
            ("https://user:hunter22@host/path", "https://***@host/path"),
            ("sig=abc%2Fdef&se=2026", "sig=***&se=2026"),
            ("Authorization: Bearer ya29.secret-token more", "Authorization: Bearer *** more"),
            ("\"client_secret\":\"hush-hush\"", "\"client_secret\":***"),
            ("the key wJalrXUtnFEMI/K7MDENG is no good", "the key *** is no good"),
            ("abc stays: three letters are in every text", "abc stays: three letters are in every text"),
            ("two\n  lines\tbecome one", "two lines become one"),
            ("Access Denied. (bucket: backups)", "Access Denied. (bucket: backups)"),
        ] {
            assert_eq!(mask.text(text), shown, "{text}");
        }
        assert_eq!(mask.text(&"x ".repeat(1000)).chars().count(), TEXT_CHARS_MAX + 1);
        assert!(!format!("{mask:?}").contains("wJal"));
    }
}
