//! Secrets in statements, masked before anybody sees the statement: in lists, in logs, in messages of errors.
//!
//! A secret stands behind a word that announces it (`IDENTIFIED`, `PASSWORD`, `SOURCE_PASSWORD` and others), so a statement is
//! shown as it is up to that word. Behind it every literal is masked, whatever it is for, and where the text can be read in two
//! ways (a backslash in quotes, a comment, quotes that never end) nothing more is shown. Too much is masked rather than too
//! little: a word that announces may stand in a name, in a value or in a comment.

/// Stands for what is not shown.
pub(crate) const MASK: &str = "<secret>";

/// So much of a statement is looked at and shown, in bytes.
const SHOWN_BYTES_MAX: usize = 64 << 10;

/// Words that announce a secret, as parts of longer ones too (`MASTER_PASSWORD`, `AES_ENCRYPT`, `"user_password"`).
const ANNOUNCING: [&[u8]; 9] = [
    b"identified",
    b"password",
    b"passwd",
    b"pwd",
    b"secret",
    b"authentication_string",
    b"auth_string",
    b"encrypt",
    b"decrypt",
];

/// Words that are shown where a secret could stand without quotes, behind `BY`, `AS`, `USING` or `=`.
const HARMLESS: [&str; 12] = [
    "CURRENT",
    "DEFAULT",
    "NULL",
    "OLD_PASSWORD",
    "PASSWORD",
    "RANDOM",
    "SELECT",
    "VALUES",
    "AES_ENCRYPT",
    "AES_DECRYPT",
    "ENCRYPT",
    "UNHEX",
];

/// The statement without its secrets, at most 64 KiB of it. Bytes that are not UTF-8 are replaced.
///
/// `statement` may be cut off at its end, but must begin where the statement does.
pub fn masked(statement: &[u8]) -> String {
    let statement = &statement[..statement.len().min(SHOWN_BYTES_MAX)];
    let Some(secrets_from) = announced(statement) else {
        return String::from_utf8_lossy(statement).into_owned();
    };
    let (shown, rest) = statement.split_at(secrets_from);
    let mut shown = String::from_utf8_lossy(shown).into_owned();
    if is_between_tokens(&statement[..secrets_from]) {
        Masking { rest, out: &mut shown, follows_introduction: false }.run();
    } else {
        shown.push_str(MASK);
    }
    shown
}

/// Whether [`masked`] hides a part of the statement.
pub fn may_hold_secret(statement: &[u8]) -> bool {
    announced(statement).is_some()
}

/// What a server says of a statement that it refuses, without what it quotes of the statement's secrets.
pub fn masked_message(message: &str, statement: &[u8]) -> String {
    const EXCERPT: &str = " near '";
    let Some(secrets_from) = announced(statement) else { return message.to_owned() };
    // The excerpt may begin behind the word that announces.
    if let Some(at) = message.find(EXCERPT) {
        return format!("{} near {MASK}", &message[..at]);
    }
    let tail = String::from_utf8_lossy(&statement[secrets_from..]);
    let mask = |piece: &str| {
        let is_secret = piece.len() > 1 && !piece.trim().is_empty() && tail.contains(piece);
        if is_secret { MASK.to_owned() } else { piece.to_owned() }
    };
    message.split('\'').map(mask).collect::<Vec<_>>().join("'")
}

/// Where the first word that announces a secret ends.
fn announced(statement: &[u8]) -> Option<usize> {
    let word = |at: usize| {
        let rest = &statement[at..];
        let word = ANNOUNCING
            .iter()
            .find(|word| rest.get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word)));
        word.map(|word| at + word.len()).or_else(|| url_with_password(rest).then_some(at + 3))
    };
    (0..statement.len()).find_map(word)
}

/// `://user:password@host`, as FEDERATED tables have it.
fn url_with_password(text: &[u8]) -> bool {
    text.strip_prefix(b"://").is_some_and(|rest| {
        let ends = |byte: &u8| matches!(byte, b'/' | b'\'' | b'"' | b'`') || byte.is_ascii_whitespace();
        // A password may hold any of these; the @ behind it counts, wherever it is.
        let end = rest.iter().position(ends).unwrap_or(rest.len());
        rest[..end].contains(&b'@') || rest[..end].contains(&b':')
    })
}

/// Whether the end of `text` is for sure outside of quotes and comments.
fn is_between_tokens(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = match byte {
            b'\'' | b'"' | b'`' => match end_of_quotes(after, *byte) {
                Some(end) => &after[end..],
                None => return false,
            },
            _ if begins_comment(rest) => return false,
            _ => after,
        };
    }
    true
}

/// Where a quoted text ends whose opening quote stands before `text`. `None` when it does not, or when that depends on
/// `sql_mode`.
fn end_of_quotes(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        let byte = *text.get(at)?;
        if byte == b'\\' && quote != b'`' {
            return None;
        }
        at += 1;
        if byte == quote {
            if text.get(at) != Some(&quote) {
                return Some(at);
            }
            at += 1;
        }
    }
}

fn begins_comment(text: &[u8]) -> bool {
    text.starts_with(b"#") || text.starts_with(b"--") || text.starts_with(b"/*")
}

/// Goes through what stands behind the announcing word.
struct Masking<'a> {
    rest: &'a [u8],
    out: &'a mut String,
    /// The token before was `BY`, `AS`, `USING` or `=`.
    follows_introduction: bool,
}

impl Masking<'_> {
    fn run(&mut self) {
        while let Some(byte) = self.rest.first().copied() {
            match byte {
                _ if begins_comment(self.rest) => return self.out.push_str(MASK),
                b'\'' | b'"' | b'`' => match end_of_quotes(&self.rest[1..], byte) {
                    Some(end) => self.quoted(byte, end + 1),
                    None => return self.out.push_str(MASK),
                },
                b'0'..=b'9' => {
                    self.word();
                    self.out.push_str(MASK);
                    self.follows_introduction = false;
                }
                _ if is_word(byte) => {
                    let word = self.word();
                    self.show_word(&word);
                }
                b'=' | b' ' | b'\t' | b'\n' | b'\r' | b',' | b'(' | b')' | b'@' | b';' | b'.' => {
                    self.rest = &self.rest[1..];
                    self.out.push(char::from(byte));
                    self.follows_introduction =
                        byte == b'=' || (byte.is_ascii_whitespace() && self.follows_introduction);
                }
                // Nothing that accounts and tables need; a part of a secret that lost its quotes.
                _ => return self.out.push_str(MASK),
            }
        }
    }

    /// Names in backquotes are shown, except where a secret is due.
    fn quoted(&mut self, quote: u8, len: usize) {
        let (text, rest) = self.rest.split_at(len);
        if quote == b'`' && !self.follows_introduction {
            self.out.push_str(&String::from_utf8_lossy(text));
        } else {
            self.out.push_str(MASK);
        }
        self.rest = rest;
        self.follows_introduction = false;
    }

    fn word(&mut self) -> String {
        let len = self.rest.iter().position(|byte| !is_word(*byte)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest;
        String::from_utf8_lossy(word).into_owned()
    }

    fn show_word(&mut self, word: &str) {
        let is = |known: &&str| word.eq_ignore_ascii_case(known);
        let hidden = self.follows_introduction && !HARMLESS.iter().any(is);
        self.out.push_str(if hidden { MASK } else { word });
        self.follows_introduction = ["BY", "AS", "USING"].iter().any(is);
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(statement: &str) -> String {
        masked(statement.as_bytes())
    }

    #[test]
    fn what_announces_nothing_is_shown_as_it_is() {
        for statement in
            ["INSERT INTO t VALUES ('a\\'b', 7) -- x", "DROP TABLE `t`", "", "SELECT 'https://host/'"]
        {
            assert_eq!(shown(statement), statement);
        }
    }

    #[test]
    fn accounts_keep_their_names_and_lose_their_secrets() {
        for (statement, expected) in [
            (
                "CREATE USER 'app'@'%' IDENTIFIED BY 'pw', b@h IDENTIFIED BY \"x\" REQUIRE SSL",
                "CREATE USER 'app'@'%' IDENTIFIED BY <secret>, b@h IDENTIFIED BY <secret> REQUIRE SSL",
            ),
            (
                "CREATE USER u IDENTIFIED WITH caching_sha2_password AS 0x24412430",
                "CREATE USER u IDENTIFIED WITH caching_sha2_password AS <secret>",
            ),
            (
                "ALTER USER u identified by 'new' REPLACE 'old'",
                "ALTER USER u identified by <secret> REPLACE <secret>",
            ),
            ("SET PASSWORD FOR 'u'@'h'='*A1'", "SET PASSWORD FOR <secret>@<secret>=<secret>"),
            (
                "CREATE USER u IDENTIFIED VIA ed25519 USING PASSWORD('pw') OR unix_socket",
                "CREATE USER u IDENTIFIED VIA ed25519 USING PASSWORD(<secret>) OR unix_socket",
            ),
            (
                "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD 'p', PORT 3306)",
                "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD <secret>, PORT <secret>)",
            ),
            (
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST='h', SOURCE_PASSWORD='p', SOURCE_PORT=1",
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST='h', SOURCE_PASSWORD=<secret>, SOURCE_PORT=<secret>",
            ),
            (
                "CREATE TABLE t (a INT) CONNECTION='mysql://u:p@h/d/t'",
                "CREATE TABLE t (a INT) CONNECTION='mysql://<secret>",
            ),
            (
                "INSERT INTO t VALUES (AES_ENCRYPT('a', 'key'))",
                "INSERT INTO t VALUES (AES_ENCRYPT(<secret>, <secret>))",
            ),
            ("GRANT ALL ON *.* TO u IDENTIFIED BY hunter2", "GRANT ALL ON *.* TO u IDENTIFIED BY <secret>"),
            ("ALTER USER u IDENTIFIED BY RANDOM PASSWORD", "ALTER USER u IDENTIFIED BY RANDOM PASSWORD"),
            (
                "PREPARE p FROM 'ALTER USER u IDENTIFIED BY ''pw'''",
                "PREPARE p FROM 'ALTER USER u IDENTIFIED<secret>",
            ),
            ("/* IDENTIFIED BY 'pw' */ SELECT 1", "/* IDENTIFIED<secret>"),
            ("ALTER USER u IDENTIFIED /* it's */ BY 'pw'", "ALTER USER u IDENTIFIED <secret>"),
            ("ALTER USER u IDENTIFIED BY 'p\\'w'", "ALTER USER u IDENTIFIED BY <secret>"),
            ("ALTER USER u IDENTIFIED BY 'cut o", "ALTER USER u IDENTIFIED BY <secret>"),
        ] {
            assert_eq!(shown(statement), expected);
        }
    }

    #[test]
    fn what_a_server_quotes_is_masked_too() {
        let statement = b"CREATE USER 'u'@'h' IDENTIFIED BY 'hunter2' REQUIRE NOTHING";
        let syntax = "You have an error in your SQL syntax near 'hunter2' REQUIRE' at line 1";
        assert_eq!(masked_message(syntax, statement), "You have an error in your SQL syntax near <secret>");
        let exists = "Operation CREATE USER failed for 'u'@'h'";
        assert_eq!(masked_message(exists, statement), exists);
        assert_eq!(masked_message("Bad value 'hunter2' given", statement), "Bad value '<secret>' given");
        assert_eq!(masked_message(syntax, b"DROP TABLE t"), syntax);
    }

    proptest! {
        /// Whatever it is written in, wherever the statement is cut.
        #[test]
        fn no_secret_is_ever_shown(
            template in 0..9_usize,
            before in "[ a-z'\"\\\\`#;(=*/-]{0,6}",
            core in "[A-Z0-9]{8}",
            after in "[ a-z'\"\\\\`#;(=*/-]{0,6}",
            noise in "(/\\* [a-z']{0,4} \\*/|-- [a-z']{0,3}\n| |\t\n){0,2}",
            quote in "['\"]",
            backslashes in any::<bool>(),
            cut in 0.0..1.0_f64,
        ) {
            let raw = format!("{before}S{core}S{after}");
            let inner = if backslashes {
                raw.replace('\\', "\\\\").replace(&quote, &format!("\\{quote}"))
            } else {
                raw.replace(&quote, &format!("{quote}{quote}"))
            };
            let hex: String = core.bytes().map(|byte| format!("{byte:02x}")).collect();
            let literal = format!("{quote}{inner}{quote}");
            let statement = match template {
                0 => format!("CREATE USER 'a'@'%' IDENTIFIED{noise} BY {noise}{literal}, b IDENTIFIED BY {literal}"),
                1 => format!("ALTER USER a IDENTIFIED WITH x AS{noise} {literal} REPLACE {noise}{literal}"),
                2 => format!("SET PASSWORD{noise}FOR 'it''s'@'h' = {literal}"),
                3 => format!("CREATE USER a IDENTIFIED VIA x USING PASSWORD({noise}{literal}) OR y USING {literal}"),
                4 => format!("CHANGE MASTER TO MASTER_HOST='a\\'b', MASTER_PASSWORD={noise}{literal}"),
                5 => format!("CREATE SERVER s OPTIONS (USER 'u', PASSWORD {noise}{literal})"),
                6 => format!("/*! ALTER USER a IDENTIFIED BY {literal} */"),
                7 => format!("CREATE USER a IDENTIFIED WITH x AS 0x{hex}"),
                _ => format!("CREATE USER a IDENTIFIED WITH x AS x'{hex}'"),
            };
            let end = (statement.len() as f64 * (0.5 + cut / 2.0)) as usize;
            for statement in [&statement.as_bytes()[..end], statement.as_bytes()] {
                let shown = masked(statement);
                prop_assert!(!shown.contains(&core[..4]) && !shown.contains(&hex[..8]), "{}", shown);
            }
            let message = masked_message(&format!("x near '{raw}'"), statement.as_bytes());
            prop_assert!(!message.contains(&core));
        }

        #[test]
        fn any_bytes_are_taken(statement in proptest::collection::vec(any::<u8>(), 0..200)) {
            let text = [b"IDENTIFIED ", &statement[..]].concat();
            masked(&statement);
            masked_message(&masked(&text), &text);
        }
    }
}
