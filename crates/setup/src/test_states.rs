//! Servers and machines for the tests of this folder.

use super::files::Files;
use super::here::Here;
use super::server::{AccountSeen, Server};
use super::wish::{Wish, wish};
use crate::doctor::test_facts::mysql;
use crate::doctor::{Facts, Wanted};

pub(crate) fn wanted() -> Wanted {
    crate::doctor::test_facts::wanted()
}

/// A server that an administrator looks at, without the account.
pub(crate) fn server(facts: Facts) -> Server {
    let grants = match &facts.grants {
        Ok(lines) if lines == &mysql().grants.unwrap() => {
            Ok(vec!["GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION".to_owned()])
        }
        other => other.clone(),
    };
    Server {
        facts: Facts { grants, ..facts },
        pattern: "10.0.0.5".to_owned(),
        account: AccountSeen::Absent,
        is_elsewhere: false,
        replica_of: None,
    }
}

/// A machine with nothing on it.
pub(crate) fn here() -> Here {
    let nowhere = Wish { config: "/nonexistent/binlogd.toml".into(), ..wish() };
    Here {
        files: Files::look(&nowhere).unwrap().writable(),
        login: None,
        attached: Err("no binlogd runs".to_owned()),
        start: "systemctl enable --now binlogd".to_owned(),
    }
}
