//! The plugin, its settings, and the switch.

use super::here::Here;
use super::server::Server;
use super::step::{Act, State, Statement, Step};
use super::wish::Wish;
use crate::doctor::server::semi_sync::{examine, plugin, switch, timeout_min};
use crate::doctor::{Facts, Level, Wanted};
use codec::ServerKind;

/// Why the switch comes last.
const WHY_LAST: &str = "from then on a commit returns to its client when binlogd has it on stable storage. Before binlogd is attached every commit \
                        would wait for nobody";

/// The plugin, and the settings that are not as they should be. Nothing of it makes a commit wait.
pub(crate) fn prepare(wish: &Wish, server: &Server, wanted: &Wanted) -> Vec<Step> {
    let facts = &server.facts;
    if !wish.semi_sync {
        return Vec::new();
    }
    let mut steps = Vec::new();
    match (plugin(facts), switch(facts)) {
        (Some((plugin, file)), None) => steps.push(install(plugin, file)),
        (Some(_), Some(_)) => steps.push(Step::there("the semi-sync plugin")),
        (None, _) => {}
    }
    let settings = settings(wish, facts, wanted);
    if settings.is_empty() && switch(facts).is_some() {
        let timeout = timeout_name(facts);
        let value = facts.variable(&timeout).unwrap_or("not known");
        steps.push(Step::there(format!("the settings of semi-sync ({timeout} = {value} ms)")));
    }
    steps.extend(settings.into_iter().map(|(name, value, why)| {
        let statement = Statement::new(set(facts, &name, &value)).undone_by(back(facts, &name));
        Step::to_do(format!("Set {name}"), why, Act::Sql(vec![statement]))
    }));
    steps
}

fn install(plugin: &str, file: &str) -> Step {
    let install = Statement::new(format!("INSTALL PLUGIN {plugin} SONAME '{file}'"))
        .undone_by(format!("UNINSTALL PLUGIN {plugin};"));
    Step::to_do(
        "Install the semi-sync plugin",
        "it is what lets the source wait for an acknowledgement. It is installed switched off; the server remembers it over a restart",
        Act::Sql(vec![install]),
    )
}

/// Name, value and reason of each setting that is to be changed, but for the switch.
fn settings(wish: &Wish, facts: &Facts, wanted: &Wanted) -> Vec<(String, String, String)> {
    let switch = switch(facts);
    let timeout = timeout_name(facts);
    let mut settings: Vec<_> = examine(facts, wanted)
        .into_iter()
        .filter_map(|finding| Some((finding.setting?, format!("it is wrong now: {}", finding.why))))
        .map(|((name, value), why)| (name, value, why))
        .filter(|(name, ..)| Some(name) != switch.as_ref())
        .collect();
    // A timeout that was asked for counts, and one of a plugin that is not there yet is said outright.
    let asked = match (wish.timeout, &switch) {
        (Some(asked), _) => Some(asked),
        (None, None) => Some(timeout_min(wanted)),
        (None, Some(_)) => None,
    };
    if let Some(asked) = asked.map(|asked| asked.as_millis().to_string()) {
        settings.retain(|(name, ..)| *name != timeout);
        if facts.variable(&timeout) != Some(&asked) {
            let why = "in milliseconds: so long a commit waits when binlogd does not answer, and then the source goes on alone. binlogd is \
                       back within a second, a restart of it takes some";
            settings.insert(0, (timeout, asked, why.to_owned()));
        }
    }
    settings
}

fn timeout_name(facts: &Facts) -> String {
    switch_name(facts).replace("_enabled", "_timeout")
}

/// The name of the switch, also where the plugin is not there yet.
pub(crate) fn switch_name(facts: &Facts) -> String {
    let by_version = || match plugin(facts) {
        Some((plugin, _)) => format!("{plugin}_enabled"),
        None => "rpl_semi_sync_master_enabled".to_owned(),
    };
    switch(facts).unwrap_or_else(by_version)
}

/// The statement that sets a variable, so that it lasts where the server can do that.
pub(crate) fn set(facts: &Facts, name: &str, value: &str) -> String {
    let how = if facts.persists() { "PERSIST" } else { "GLOBAL" };
    format!("SET {how} {name} = {value}")
}

/// The statement that takes a setting back.
fn back(facts: &Facts, name: &str) -> String {
    match facts.variable(name) {
        Some(value) if value.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{};", set(facts, name, value))
        }
        Some(value) => format!("{};", set(facts, name, &format!("'{value}'"))),
        None => format!("{};", set(facts, name, "DEFAULT")),
    }
}

/// The last step: semi-sync is switched on.
pub(crate) fn switch_on(wish: &Wish, server: &Server, here: &Here) -> Step {
    let facts = &server.facts;
    let name = switch_name(facts);
    if !wish.semi_sync {
        return Step::there("semi-sync is not wanted: the copy is asynchronous, and no commit waits for it");
    }
    if facts.is_on(&name) {
        return Step::there(format!("semi-sync is on ({name} = ON)"));
    }
    let on = Statement::new(set(facts, &name, "ON"));
    let off = Statement::new(set(facts, &name, "OFF"));
    let state = match &here.attached {
        Ok(()) if facts.semi_sync_clients == Some(0) => State::Waits(
            "binlogd is attached, and not as a semi-sync replica: it looks for the plugin when it connects. Restart binlogd".to_owned(),
        ),
        Ok(()) => State::ToDo,
        Err(why) => State::Waits(why.clone()),
    };
    Step { state, ..Step::to_do("Switch semi-sync on", WHY_LAST, Act::SwitchOn { on, off }) }
}

/// The lines for the option file of a server that forgets SET GLOBAL at a restart.
pub(crate) fn option_lines(wish: &Wish, facts: &Facts, wanted: &Wanted) -> Vec<String> {
    if facts.persists() || !wish.semi_sync {
        return Vec::new();
    }
    let mut lines = vec!["[mysqld]".to_owned()];
    // Of a plugin that somebody uninstalls the option must not keep the server from starting.
    let loose = if facts.kind == ServerKind::MySql { "loose_" } else { "" };
    let switch = switch_name(facts);
    let timeout = timeout_name(facts);
    let mut settings = settings(wish, facts, wanted);
    if !settings.iter().any(|(name, ..)| *name == timeout) {
        let value = facts.variable(&timeout).unwrap_or("10000").to_owned();
        settings.insert(0, (timeout, value, String::new()));
    }
    // What an earlier run has set is forgotten at a restart as well.
    let wait_point = switch.replace("_enabled", "_wait_point");
    if let Some(value) = facts.variable(&wait_point)
        && !settings.iter().any(|(name, ..)| *name == wait_point)
    {
        settings.push((wait_point, value.to_owned(), String::new()));
    }
    settings.insert(0, (switch, "ON".to_owned(), String::new()));
    lines.extend(
        settings.iter().map(|(name, value, _)| format!("{loose}{name} = {}", value.trim_matches('\''))),
    );
    lines
}

/// What is wrong with semi-sync and no setting repairs.
pub(crate) fn notes(wish: &Wish, facts: &Facts, wanted: &Wanted) -> Vec<crate::doctor::Finding> {
    if !wish.semi_sync || switch(facts).is_none() {
        return Vec::new();
    }
    let left = |finding: &crate::doctor::Finding| finding.level > Level::Ok && finding.setting.is_none();
    examine(facts, wanted).into_iter().filter(left).collect()
}

#[cfg(test)]
mod tests {
    use super::super::test_states::{here, server, wanted};
    use super::super::wish::wish;
    use super::*;
    use crate::doctor::Nodes;
    use crate::doctor::test_facts::{mariadb, mysql, with};
    use std::time::Duration;

    fn sql(wish: &Wish, facts: Facts) -> Vec<String> {
        sql_for(wish, facts, &wanted())
    }

    fn sql_for(wish: &Wish, facts: Facts, wanted: &Wanted) -> Vec<String> {
        let steps = prepare(wish, &server(facts), wanted);
        let of = |step: Step| match step.act {
            Act::Sql(statements) => statements.iter().map(Statement::shown).collect(),
            _ => Vec::new(),
        };
        steps.into_iter().flat_map(of).collect()
    }

    fn without_plugin(facts: Facts) -> Facts {
        let variables = facts.variables.clone().into_iter().filter(|(name, _)| !name.starts_with("rpl_"));
        Facts { variables: variables.collect(), ..facts }
    }

    #[test]
    fn a_plugin_is_installed_by_the_name_of_the_version() {
        for (version, plugin, set) in [
            ("9.7.0", "source", "PERSIST"),
            ("8.0.26", "source", "PERSIST"),
            ("8.0.15", "master", "PERSIST"),
            ("5.7.44", "master", "GLOBAL"),
        ] {
            let facts = without_plugin(Facts { version: version.to_owned(), ..mysql() });
            assert_eq!(
                sql(&wish(), facts),
                [
                    format!("INSTALL PLUGIN rpl_semi_sync_{plugin} SONAME 'semisync_{plugin}.so';"),
                    format!("SET {set} rpl_semi_sync_{plugin}_timeout = 10000;"),
                ]
            );
        }
    }

    #[test]
    fn only_what_is_wrong_is_set() {
        for facts in [mysql(), mariadb()] {
            assert!(sql(&wish(), facts.clone()).is_empty());
            assert!(sql(&Wish { semi_sync: false, ..wish() }, without_plugin(facts)).is_empty());
        }
        let short = with(mysql(), "rpl_semi_sync_source_timeout", Some("1000"));
        assert_eq!(sql(&wish(), short.clone()), ["SET PERSIST rpl_semi_sync_source_timeout = 10000;"]);
        let asked = Wish { timeout: Some(Duration::from_secs(60)), ..wish() };
        assert_eq!(sql(&asked, short.clone()), ["SET PERSIST rpl_semi_sync_source_timeout = 60000;"]);
        // A short one that was asked for is as it should be.
        assert!(sql(&Wish { timeout: Some(Duration::from_secs(1)), ..wish() }, short.clone()).is_empty());
        let nodes = Wanted { quorum: Some(Nodes { count: 3, uuids: Vec::new() }), ..wanted() };
        let two = with(short.clone(), "rpl_semi_sync_source_wait_for_replica_count", Some("2"));
        assert_eq!(
            sql_for(&wish(), two, &nodes),
            [
                "SET PERSIST rpl_semi_sync_source_timeout = 3600000;",
                "SET PERSIST rpl_semi_sync_source_wait_for_replica_count = 1;"
            ]
        );
        let step = &prepare(&wish(), &server(short), &wanted())[1];
        assert_eq!(step.undo(), ["SET PERSIST rpl_semi_sync_source_timeout = 1000;"]);
        let late = with(mariadb(), "rpl_semi_sync_master_wait_point", Some("AFTER_COMMIT"));
        assert_eq!(sql(&wish(), late), ["SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC';"]);
    }

    #[test]
    fn nothing_is_switched_on_before_binlogd_is_attached() {
        let off = server(with(mysql(), "rpl_semi_sync_source_enabled", Some("OFF")));
        let away = Here { attached: Err("no binlogd runs".to_owned()), ..here() };
        let step = switch_on(&wish(), &off, &away);
        assert_eq!(step.state, State::Waits("no binlogd runs".to_owned()));
        let attached = Here { attached: Ok(()), ..here() };
        assert_eq!(switch_on(&wish(), &off, &attached).state, State::ToDo);
        // It came before the plugin did.
        let mut unasked = off.clone();
        unasked.facts.semi_sync_clients = Some(0);
        assert!(matches!(switch_on(&wish(), &unasked, &attached).state, State::Waits(_)));
        assert_eq!(switch_on(&wish(), &server(mysql()), &away).state, State::There);
    }

    #[test]
    fn what_does_not_last_is_said_as_lines_of_the_option_file() {
        assert!(option_lines(&wish(), &mysql(), &wanted()).is_empty());
        // Before a run of setup, and after one.
        for value in ["AFTER_COMMIT", "AFTER_SYNC"] {
            let facts = with(mariadb(), "rpl_semi_sync_master_wait_point", Some(value));
            assert_eq!(
                option_lines(&wish(), &facts, &wanted()),
                [
                    "[mysqld]",
                    "rpl_semi_sync_master_enabled = ON",
                    "rpl_semi_sync_master_timeout = 10000",
                    "rpl_semi_sync_master_wait_point = AFTER_SYNC"
                ]
            );
        }
        let old = without_plugin(Facts { version: "5.7.44".to_owned(), ..mysql() });
        assert_eq!(option_lines(&wish(), &old, &wanted())[1], "loose_rpl_semi_sync_master_enabled = ON");
    }
}
