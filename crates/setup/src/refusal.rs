//! What setup cannot change, and what the operator can.

use super::here::Here;
use super::server::{AccountSeen, Server};
use super::wish::Wish;
use crate::doctor::is_binlogd;
use crate::doctor::server::grants::Privileges;
use crate::doctor::server::semi_sync::{plugin, switch};
use codec::ServerKind;

/// Why nothing is done; empty when nothing stands in the way.
pub(crate) fn refusals(wish: &Wish, server: &Server, here: &Here) -> Vec<String> {
    if is_binlogd(&server.facts) {
        return vec![format!(
            "{} is another binlogd, and no server: its accounts stand in its own configuration, as [[serve.user]] (docs/serving.md)",
            wish.host
        )];
    }
    let mut refusals = Vec::new();
    refusals.extend(read_only(wish, server));
    refusals.extend(needs_a_restart(server));
    refusals.extend(server.facts.refusal(1).map(|refusal| refusal.why));
    refusals.extend(semi_sync(wish, server));
    refusals.extend(account(wish, server, here));
    refusals.extend(rights(wish, server));
    refusals.extend(here.files.refusals(wish));
    refusals
}

fn read_only(wish: &Wish, server: &Server) -> Option<String> {
    let set = ["super_read_only", "read_only"]
        .into_iter()
        .find(|name| server.facts.variable(name).is_some_and(|value| value != "OFF" && value != "0"))?;
    let host = &wish.host;
    Some(match &server.replica_of {
        Some(source) => format!(
            "{host} is a replica of {source} ({set} is ON): binlogd belongs to the source, whose commits it makes safe. Run setup with \
             {source} in the place of {host}; a failover later is told to binlogd by hosts"
        ),
        None => format!(
            "{host} is read-only ({set} is ON), so nobody commits there: run setup with the server that takes the writes, or SET GLOBAL {set} = \
             OFF if this is the one"
        ),
    })
}

/// What a server reads from its option file and nowhere else.
fn needs_a_restart(server: &Server) -> Vec<String> {
    let facts = &server.facts;
    if let Some(provider) = facts.provider().filter(|_| !facts.is_on("log_bin")) {
        return vec![format!("it writes no binary log (log_bin is OFF): {}", provider.log_on())];
    }
    let mut lines = Vec::new();
    let mut what = Vec::new();
    if !facts.is_on("log_bin") {
        what.push("it writes no binary log (log_bin is OFF), so there is nothing to copy");
        lines.push("log_bin = mysql-bin");
        if facts.kind == ServerKind::MySql && !facts.is_from(8, 0, 0) && facts.number("server_id") != Some(0)
        {
            lines.push(
                "server_id = …   # the one that it has; without this line it would not start with log_bin",
            );
        }
    }
    if facts.number("server_id") == Some(0) {
        what.push("it has no server_id, so it refuses replicas");
        lines.push("server_id = 1   # or any other number that no server and no replica has");
    }
    match what.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "the server must be changed and restarted first: {}. Put into its option file (my.cnf), below [mysqld], and restart the server:\n{}",
            what.join("; "),
            lines.iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
        )],
    }
}

fn semi_sync(wish: &Wish, server: &Server) -> Option<String> {
    if let Some(provider) = server.facts.provider() {
        return wish.semi_sync.then(|| provider.refuses_semi_sync());
    }
    let is_missing = wish.semi_sync && plugin(&server.facts).is_none() && switch(&server.facts).is_none();
    is_missing.then(|| {
        "this MariaDB has no semi-sync: it is built in since 10.3. Upgrade it, or copy without: --semi-sync=false".to_owned()
    })
}

fn account(wish: &Wish, server: &Server, here: &Here) -> Option<String> {
    let account = super::account::quoted(wish, server);
    match (&server.account, here.files.has_password, &here.login) {
        (AccountSeen::Unknown(why), ..) => Some(format!(
            "whether the account {account} exists is not to be seen ({why}): run setup as an administrator"
        )),
        // Their passwords would differ, and setup knows this one alone.
        (AccountSeen::Absent, false, _) if server.is_elsewhere && !wish.quorum.is_empty() => Some(format!(
            "the account {} is there for another machine, and the nodes of a quorum log in to one another with one password: copy {} of the node \
             that was set up first to the same place here (mode 0400, of the user binlogd)",
            super::step::quote(&wish.account),
            here.files.password_file.display()
        )),
        (AccountSeen::Absent, ..) => None,
        (AccountSeen::There { .. }, ..) if wish.reset_password => None,
        (AccountSeen::There { .. }, false, _) => Some(format!(
            "the account {account} exists, and its password is not known here: put it into {} (mode 0400), or give the account a new one \
             with --reset-password (whoever else uses the account then needs it too), or make another account with --account NAME",
            here.files.password_file.display()
        )),
        (AccountSeen::There { .. }, true, Some(Err(why))) => Some(format!(
            "the account {account} exists, and the password in {} does not let binlogd in ({why}): put the right one into the file, or \
             give the account that of the file with --reset-password",
            here.files.password_file.display()
        )),
        (AccountSeen::There { .. }, true, _) => None,
    }
}

/// What the administrator's account cannot do. A role may give what SHOW GRANTS does not list, so then the server decides.
fn rights(wish: &Wish, server: &Server) -> Option<String> {
    let privileges = Privileges::parse(server.facts.grants.as_ref().ok()?);
    if privileges.roles {
        return None;
    }
    let may_set: &[&str] = match server.facts.kind {
        ServerKind::MySql => &["SUPER", "SYSTEM_VARIABLES_ADMIN"],
        ServerKind::MariaDb => &["SUPER", "REPLICATION MASTER ADMIN"],
    };
    let mut lacking = Vec::new();
    if server.account == AccountSeen::Absent && !privileges.has(&["CREATE USER"]) {
        lacking.push("CREATE USER");
    }
    if server.account == AccountSeen::Absent && !privileges.has(&["REPLICATION SLAVE", "REPLICATION REPLICA"])
    {
        lacking.push("REPLICATION SLAVE WITH GRANT OPTION");
    }
    if wish.semi_sync && server.facts.provider().is_none() && !privileges.has(may_set) {
        lacking.push(may_set[may_set.len() - 1]);
    }
    let account = server.facts.quoted_account();
    (!lacking.is_empty()).then(|| {
        format!(
            "{account} may not set this up: it lacks {}. Run setup as an administrator",
            lacking.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_states::{here, server};
    use super::super::wish::wish;
    use super::*;
    use crate::doctor::Facts;
    use crate::doctor::test_facts::{mariadb, mysql, with};

    #[track_caller]
    fn refused(server: &Server, here: &Here) -> String {
        let mut refusals = refusals(&wish(), server, here);
        assert_eq!(refusals.len(), 1, "{refusals:?}");
        refusals.remove(0)
    }

    #[test]
    fn a_good_server_is_not_refused() {
        for facts in [mysql(), mariadb(), with(mysql(), "gtid_mode", Some("OFF"))] {
            assert_eq!(refusals(&wish(), &server(facts), &here()), [""; 0]);
        }
    }

    #[test]
    fn a_replica_is_refused_and_its_source_is_named() {
        let replica = Server {
            replica_of: Some("db0".to_owned()),
            ..server(with(mysql(), "super_read_only", Some("ON")))
        };
        assert!(refused(&replica, &here()).contains("replica of db0"));
        // MariaDB 12 has more words than ON.
        let closed = server(with(mariadb(), "read_only", Some("NO_LOCK_NO_ADMIN")));
        assert!(refused(&closed, &here()).contains("read-only (read_only is ON)"));
    }

    #[test]
    fn what_needs_a_restart_is_said_with_its_lines() {
        let off = refused(&server(with(mysql(), "log_bin", Some("OFF"))), &here());
        assert!(off.ends_with("restart the server:\n    log_bin = mysql-bin"), "{off}");
        let none = refused(&server(with(mysql(), "server_id", Some("0"))), &here());
        assert!(none.contains("no server_id") && none.contains("    server_id = 1 "), "{none}");
        let engine = refused(&server(with(mariadb(), "binlog_storage_engine", Some("innodb"))), &here());
        assert!(engine.contains("in a storage engine (binlog_storage_engine = innodb)"), "{engine}");
        let old = Facts { version: "5.7.44".to_owned(), ..with(mysql(), "log_bin", Some("OFF")) };
        assert!(refused(&server(old), &here()).contains("server_id = …"));
        let comment = with(mysql(), "version_comment", Some("binlogd 0.2.0"));
        assert!(refused(&server(comment), &here()).contains("another binlogd"));
    }

    #[test]
    fn an_account_whose_password_nobody_knows_is_not_touched() {
        let there = Server {
            account: AccountSeen::There {
                grants: vec!["GRANT REPLICATION SLAVE ON *.* TO `binlogd`@`10.0.0.5`".to_owned()],
                requires_tls: false,
            },
            ..server(mysql())
        };
        assert!(refused(&there, &here()).contains("--reset-password"));
        let mut with_file = here();
        with_file.files.has_password = true;
        with_file.login = Some(Ok(()));
        assert!(refusals(&wish(), &there, &with_file).is_empty());
        with_file.login = Some(Err("Access denied".to_owned()));
        assert!(refused(&there, &with_file).contains("(Access denied)"));
        let reset = Wish { reset_password: true, ..wish() };
        assert!(refusals(&reset, &there, &with_file).is_empty());
        let node = Wish { quorum: vec![wish().host], ..wish() };
        let elsewhere = Server { is_elsewhere: true, ..server(mysql()) };
        let told = refusals(&node, &elsewhere, &here()).remove(0);
        assert!(told.contains("with one password: copy /nonexistent/default.password of the node"), "{told}");
        with_file.login = None;
        assert!(
            refusals(&node, &elsewhere, &with_file).is_empty()
                && refusals(&wish(), &elsewhere, &here()).is_empty()
        );
        let unknown = Server { account: AccountSeen::Unknown("denied".to_owned()), ..server(mysql()) };
        assert!(refused(&unknown, &here()).contains("not to be seen"));
    }

    #[test]
    fn whoever_is_no_administrator_is_told_what_he_lacks() {
        let grants = |grant: &str| Facts { grants: Ok(vec![grant.to_owned()]), ..mysql() };
        let nobody = refused(&server(grants("GRANT REPLICATION SLAVE ON *.* TO `u`@`%`")), &here());
        assert!(nobody.contains("lacks CREATE USER, SYSTEM_VARIABLES_ADMIN"), "{nobody}");
        let role = Facts { grants: Ok(vec!["GRANT `dba`@`%` TO `u`@`%`".to_owned()]), ..mysql() };
        assert!(refusals(&wish(), &server(role), &here()).is_empty());
    }
}
