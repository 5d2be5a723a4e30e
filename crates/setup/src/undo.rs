//! How to take everything back.

use super::account::quoted;
use super::files::{ConfigSeen, Files};
use super::semi_sync::{set, switch_name};
use super::server::{AccountSeen, Server};
use super::wish::Wish;
use crate::doctor::server::semi_sync::{plugin, switch};
use std::fmt::Write;

/// What takes back whatever setup has made and is there now, in an order in which no commit waits for nobody. Nothing of it is run.
pub fn undo(wish: &Wish, server: &Server, files: &Files) -> String {
    let facts = &server.facts;
    let mut text = String::new();
    let mut say = |line: &str| writeln!(text, "{line}").expect("a text");
    say(&format!("-- on {}; setup runs none of this", wish.host));
    if switch(facts).is_some() {
        say("-- first, so that no commit waits when binlogd is gone:");
        say(&format!("{};", set(facts, &switch_name(facts), "OFF")));
    }
    say("-- then stop binlogd: systemctl disable --now binlogd");
    if matches!(server.account, AccountSeen::There { .. }) {
        say("-- unless another binlogd uses the account:");
        say(&format!("DROP USER {};", quoted(wish, server)));
    }
    if let (Some((plugin, _)), Some(_)) = (plugin(facts), switch(facts)) {
        say("-- unless replicas use semi-sync, and unless the server was started with the plugin:");
        say(&format!("UNINSTALL PLUGIN {plugin};"));
    }
    if !facts.persists() && switch(facts).is_some() {
        say(&format!("-- and take the lines of {} out of the server's option file", switch_name(facts)));
    }
    say("-- on this machine:");
    if files.has_password {
        say(&format!("--   rm {}", files.password_file.display()));
    }
    if files.config == ConfigSeen::Ours {
        say(&format!("--   take the source {} out of {}", wish.name, wish.file().display()));
    }
    say(&format!("-- the copy stays in {} until you remove it", files.data_dir.join(&wish.name).display()));
    text
}

#[cfg(test)]
mod tests {
    use super::super::test_states::{here, server};
    use super::super::wish::wish;
    use super::*;
    use crate::doctor::test_facts::{mariadb, mysql};

    #[test]
    fn semi_sync_goes_off_before_binlogd_stops() {
        for (facts, off) in [
            (mysql(), "SET PERSIST rpl_semi_sync_source_enabled = OFF;"),
            (mariadb(), "SET GLOBAL rpl_semi_sync_master_enabled = OFF;"),
        ] {
            let account = AccountSeen::There { grants: Vec::new(), requires_tls: false };
            let text = undo(&wish(), &Server { account, ..server(facts) }, &here().files);
            let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in\n{text}"));
            assert!(
                at(off) < at("stop binlogd") && at("stop binlogd") < at("DROP USER 'binlogd'@'10.0.0.5';")
            );
        }
    }
}
