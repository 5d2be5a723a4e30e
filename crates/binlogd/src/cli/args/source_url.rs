//! The URL of `--source`: `mysql://user[:password]@host[:port][,host[:port]…]`.

use wire::Secret;

/// The parts of a source's URL. User and password are percent-decoded; hosts are as written, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceUrl {
    /// The account.
    pub user: String,
    /// Its password, if the URL holds one.
    pub password: Option<Secret>,
    /// Each host with its port, if it has one.
    pub hosts: Vec<String>,
}

/// The schemes, which all mean the same.
const SCHEMES: [&str; 2] = ["mysql://", "mariadb://"];

impl SourceUrl {
    /// Reads a URL. The error says what is wrong without quoting any part of it, because any part may be a password.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let rest = SCHEMES
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme))
            .ok_or("must begin with mysql:// as in mysql://user@host:3306")?;
        // The last @ ends the user information: no host holds one, but an unencoded password may.
        let (user_info, hosts) =
            rest.rsplit_once('@').ok_or("names no user: write mysql://user@host:3306")?;
        let hosts = hosts.strip_suffix('/').unwrap_or(hosts);
        if hosts.contains(['/', '?', '#']) {
            return Err(
                "has something after the hosts: binlogd copies the binlog of the whole server, and options are flags",
            );
        }
        let (user, password) = match user_info.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (user_info, None),
        };
        if user.is_empty() {
            return Err("names no user: write mysql://user@host:3306");
        }
        Ok(Self {
            user: percent_decoded(user)?,
            password: password.map(percent_decoded).transpose()?.map(Secret::new),
            hosts: hosts.split(',').map(str::to_owned).collect(),
        })
    }
}

/// Takes the password out of anything that looks like a source's URL: the text without it, and the password decoded where
/// it can be. `None` when there is none.
pub(crate) fn without_password(text: &str) -> Option<(String, String)> {
    let scheme = SCHEMES.iter().find(|scheme| text.starts_with(**scheme))?;
    let (user_info, hosts) = text[scheme.len()..].rsplit_once('@')?;
    let (user, password) = user_info.split_once(':')?;
    Some((format!("{scheme}{user}@{hosts}"), password.to_owned()))
}

/// Replaces each `%XX` by its byte (RFC 3986, section 2.1).
pub(crate) fn percent_decoded(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let [high, low, after @ ..] = after else { return Err(PERCENT) };
            let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(PERCENT);
            bytes.push((digit(*high)? * 16 + digit(*low)?) as u8);
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).map_err(|_| "has a user or password that is not UTF-8 once its %XX are decoded")
}

const PERCENT: &str =
    "has a % without two hexadecimal digits in its user or password: write %25 for a percent sign";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn url(user: &str, password: Option<&str>, hosts: &[&str]) -> Result<SourceUrl, &'static str> {
        Ok(SourceUrl {
            user: user.to_owned(),
            password: password.map(Secret::new),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        })
    }

    #[test]
    fn reads_every_form() {
        for (text, expected) in [
            ("mysql://repl@127.0.0.1:3306", url("repl", None, &["127.0.0.1:3306"])),
            ("mysql://repl@db/", url("repl", None, &["db"])),
            ("mariadb://repl:pw@db1:3306,db2:3307", url("repl", Some("pw"), &["db1:3306", "db2:3307"])),
            ("mysql://repl:@db", url("repl", Some(""), &["db"])),
            ("mysql://a%40b:p%3a%2F%25@[::1]:3306", url("a@b", Some("p:/%"), &["[::1]:3306"])),
            ("mysql://u:p@ss:w/rd@db", url("u", Some("p@ss:w/rd"), &["db"])),
        ] {
            assert_eq!(SourceUrl::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn refuses_without_quoting() {
        for bad in [
            "",
            "repl:SECRET@db",
            "http://repl:SECRET@db",
            "mysql://db:3306",
            "mysql://:SECRET@db",
            "mysql://u:SECRET@db/orders",
            "mysql://u:SECRET@db?x=1",
            "mysql://u:SECRET%@db",
            "mysql://u:SECRET%f@db",
            "mysql://u:SECRET%zz@db",
            "mysql://u:SECRET%ff@db",
        ] {
            let error = SourceUrl::parse(bad).expect_err(bad);
            assert!(!error.contains("SECRET"), "{error}");
        }
    }

    #[test]
    fn takes_the_password_out() {
        assert_eq!(
            without_password("mysql://u:p%40@h:1,i:2"),
            Some(("mysql://u@h:1,i:2".to_owned(), "p%40".to_owned()))
        );
        assert_eq!(without_password("mysql://u@h:1"), None);
        assert_eq!(without_password("u:p@h"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text: String) {
            let _ = SourceUrl::parse(&text);
            let _ = SourceUrl::parse(&format!("mysql://{text}"));
        }

        #[test]
        fn any_password_survives_encoding(password: String) {
            let encoded: String = password.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let parsed = SourceUrl::parse(&format!("mysql://u:{encoded}@h")).unwrap().password;
            prop_assert_eq!(parsed, Some(Secret::new(password)));
        }

        #[test]
        fn what_is_taken_out_is_what_was_given(password in "[^@]{0,20}") {
            let given = format!("mysql://u:{password}@h:1");
            prop_assert_eq!(without_password(&given), Some(("mysql://u@h:1".to_owned(), password)));
        }
    }
}
