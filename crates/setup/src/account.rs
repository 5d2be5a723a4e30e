//! The account: its name, its rights, its password.

use super::here::Here;
use super::server::{AccountSeen, Server};
use super::step::{Act, PASSWORD_HERE, State, Statement, Step, quote};
use super::wish::Wish;
use crate::doctor::server::grants::Privileges;
use crate::doctor::server::semi_sync::waits_for_nobody;
use codec::ServerKind;
use wire::Secret;

/// Letters of a password that setup makes up. None needs quoting anywhere.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Letters of such a password: 192 random bits, and as many as every server takes.
const PASSWORD_LETTERS: usize = 32;

/// What each right is for. Nothing else is granted: whether commits wait, and what doctor looks at, needs no right, and
/// rescue is given an administrator's account when it is run.
pub(crate) const RIGHTS: &str = "REPLICATION SLAVE: without it the source sends its binary log to nobody. Nothing more is granted: semi-sync, \
                                 the watch over it and doctor need no right, and rescue takes an administrator's account when it is run";

/// `'binlogd'@'10.0.0.5'`.
pub(crate) fn quoted(wish: &Wish, server: &Server) -> String {
    format!("{}@{}", quote(&wish.account), quote(&server.pattern))
}

/// A password of random letters, which the usual policies accept: letters of both cases, a digit and another character.
///
/// # Errors
/// When the system gives no random bytes.
pub fn make_password() -> Result<Secret, String> {
    loop {
        let mut bytes = [0; PASSWORD_LETTERS];
        getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random bytes: {error}"))?;
        // 64 letters: each byte chooses one with the same chance.
        let text: String =
            bytes.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect();
        let kinds: [fn(&char) -> bool; 4] = [
            char::is_ascii_uppercase,
            char::is_ascii_lowercase,
            char::is_ascii_digit,
            char::is_ascii_punctuation,
        ];
        // Never in front: a client would take it for an option.
        if !text.starts_with('-') && kinds.iter().all(|kind| text.chars().any(|c| kind(&c))) {
            return Ok(Secret::new(text));
        }
    }
}

/// Password file, account, and the proof that they fit together.
pub(crate) fn steps(wish: &Wish, server: &Server, here: &Here) -> Vec<Step> {
    let mut steps = vec![password_file(wish, here)];
    let statements = statements(wish, server);
    let account = quoted(wish, server);
    if statements.is_empty() {
        steps.push(Step::there(format!("account {account}, with REPLICATION SLAVE")));
    } else {
        let (what, why) = match &server.account {
            AccountSeen::There { .. } => (format!("Change the account {account}"), String::new()),
            _ => (
                format!("Make the account {account}"),
                format!(
                    "binlogd logs in with it, from the address at which the source sees this machine. {RIGHTS}"
                ),
            ),
        };
        let unlogged = match waits_for_nobody(&server.facts) {
            false => "",
            true => {
                ". Semi-sync is on there and nobody is attached, so that each statement about accounts would wait, and on MySQL \
                 lock everybody out: hence not in the binary log. Replicas do not get the account: repeat these statements there"
            }
        };
        steps.push(Step::to_do(what, format!("{why}{unlogged}"), Act::Sql(statements)));
    }
    steps.push(match (&here.login, steps.iter().all(|step| step.state == State::There)) {
        (Some(Ok(())), true) => Step::there("the password of the file fits the account"),
        _ => Step::to_do(
            format!("Log in as {account}"),
            "what does not work would show only when binlogd starts",
            Act::LogIn,
        ),
    });
    steps
}

fn password_file(wish: &Wish, here: &Here) -> Step {
    let file = &here.files.password_file;
    if here.files.has_password {
        return Step::there(format!("a password in {}", file.display()));
    }
    let owner = match &here.files.owner {
        Some(_) => "binlogd may read it, and nobody else",
        None => "you may read it, and nobody else",
    };
    Step::to_do(
        format!("Make up a password, in {} (mode 0400)", file.display()),
        match wish.quorum.is_empty() {
            true => format!("{owner}; it is shown nowhere"),
            false => format!(
                "{owner}; it is shown nowhere. The nodes log in to one another with it: copy the file to the others before setup there"
            ),
        },
        Act::MakePassword(file.clone()),
    )
}

/// What the account lacks.
fn statements(wish: &Wish, server: &Server) -> Vec<Statement> {
    let account = quoted(wish, server);
    let mut statements = Vec::new();
    let identified = match server.facts.kind {
        // Not the server's default, which may still be the method that MySQL 9 does not have.
        ServerKind::MySql if server.facts.is_from(8, 0, 4) => "IDENTIFIED WITH caching_sha2_password BY",
        _ => "IDENTIFIED BY",
    };
    let require = if wish.require_ssl { " REQUIRE SSL" } else { "" };
    let drop = format!("DROP USER {account};");
    let grant = format!("GRANT REPLICATION SLAVE ON *.* TO {account}");
    match &server.account {
        AccountSeen::There { grants, requires_tls } => {
            let require = if *requires_tls { "" } else { require };
            if wish.reset_password {
                statements.push(Statement::new(format!(
                    "ALTER USER {account} {identified} {PASSWORD_HERE}{require}"
                )));
            } else if !require.is_empty() {
                let undo = format!("ALTER USER {account} REQUIRE NONE;");
                statements.push(Statement::new(format!("ALTER USER {account}{require}")).undone_by(undo));
            }
            if !Privileges::parse(grants).has(&["REPLICATION SLAVE", "REPLICATION REPLICA"]) {
                let undo = format!("REVOKE REPLICATION SLAVE ON *.* FROM {account};");
                statements.push(Statement::new(grant).undone_by(undo));
            }
        }
        AccountSeen::Absent | AccountSeen::Unknown(_) => {
            let create = format!("CREATE USER {account} {identified} {PASSWORD_HERE}{require}");
            statements.push(Statement::new(create).undone_by(drop));
            statements.push(Statement::new(grant));
        }
    }
    if !statements.is_empty() && waits_for_nobody(&server.facts) {
        statements.insert(0, Statement::new("SET SESSION sql_log_bin = 0"));
        statements.push(Statement::new("SET SESSION sql_log_bin = 1"));
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::super::test_states::{here, server};
    use super::super::wish::wish;
    use super::*;
    use crate::doctor::Facts;
    use crate::doctor::test_facts::{mariadb, mysql, with};

    fn shown(wish: &Wish, server: &Server) -> Vec<String> {
        statements(wish, server).iter().map(Statement::shown).collect()
    }

    #[test]
    fn passwords_are_long_and_of_every_kind() {
        let (one, other) = (make_password().unwrap(), make_password().unwrap());
        assert_ne!(one, other);
        let text = one.expose();
        assert_eq!(text.len(), PASSWORD_LETTERS);
        assert!(text.bytes().all(|byte| LETTERS.contains(&byte)) && !text.starts_with('-'));
        assert!(text.contains(|c: char| c.is_ascii_digit()) && text.contains(['-', '_']), "{text}");
    }

    #[test]
    fn an_account_gets_what_it_lacks_and_no_more() {
        let create = "CREATE USER 'binlogd'@'10.0.0.5' IDENTIFIED WITH caching_sha2_password BY '<password>'";
        let grant = "GRANT REPLICATION SLAVE ON *.* TO 'binlogd'@'10.0.0.5';";
        let absent = server(mysql());
        assert_eq!(shown(&wish(), &absent), [format!("{create};"), grant.to_owned()]);
        let tls = Wish { require_ssl: true, ..wish() };
        assert_eq!(shown(&tls, &absent)[0], format!("{create} REQUIRE SSL;"));
        let old = server(Facts { version: "5.7.44".to_owned(), ..mysql() });
        let native = "CREATE USER 'binlogd'@'10.0.0.5' IDENTIFIED BY '<password>';";
        assert_eq!(shown(&wish(), &old)[0], native);
        assert_eq!(shown(&wish(), &server(mariadb()))[0], native);

        let there = |grant: &str, requires_tls| Server {
            account: AccountSeen::There { grants: vec![grant.to_owned()], requires_tls },
            ..server(mysql())
        };
        let whole = "GRANT REPLICATION SLAVE ON *.* TO `binlogd`@`10.0.0.5`";
        let nothing = "GRANT USAGE ON *.* TO `binlogd`@`10.0.0.5`";
        assert!(shown(&wish(), &there(whole, false)).is_empty());
        assert!(shown(&tls, &there(whole, true)).is_empty());
        assert_eq!(shown(&wish(), &there(nothing, false)), [grant]);
        assert_eq!(shown(&tls, &there(whole, false)), ["ALTER USER 'binlogd'@'10.0.0.5' REQUIRE SSL;"]);
        let reset = Wish { reset_password: true, ..wish() };
        assert_eq!(
            shown(&reset, &there(whole, false)),
            ["ALTER USER 'binlogd'@'10.0.0.5' IDENTIFIED WITH caching_sha2_password BY '<password>';"]
        );
    }

    #[test]
    fn where_commits_wait_for_nobody_an_account_does_not_wait() {
        for facts in [mysql(), mariadb()] {
            let nobody = server(Facts { semi_sync_clients: Some(0), ..facts });
            let all = shown(&wish(), &nobody);
            assert_eq!(
                (&*all[0], &*all[3]),
                ("SET SESSION sql_log_bin = 0;", "SET SESSION sql_log_bin = 1;")
            );
            let step = &steps(&wish(), &nobody, &here())[1];
            assert!(step.why.contains("Replicas do not get the account"), "{step:?}");
        }
        let off = with(mysql(), "rpl_semi_sync_source_enabled", Some("OFF"));
        assert_eq!(shown(&wish(), &server(Facts { semi_sync_clients: Some(0), ..off })).len(), 2);
    }
}
