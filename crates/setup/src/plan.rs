//! The steps, or why there are none.

use super::files::{ConfigSeen, Files, config_text, source_text};
use super::here::Here;
use super::server::Server;
use super::step::{Act, State, Step};
use super::wish::Wish;
use super::{account, refusal, semi_sync};
use crate::doctor::{Finding, Level, Wanted, examine_server};
use std::path::PathBuf;

/// What an example gets behind its name when it gives way.
const ASIDE: &str = "before-setup";

/// The steps, or why there are none.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Why nothing can be done; empty when it can.
    pub refusals: Vec<String>,
    /// The steps, in their order.
    pub steps: Vec<Step>,
    /// What else deserves a look on the server, and is not changed.
    pub notes: Vec<Finding>,
    /// Lines for the server's option file, for what it forgets at a restart.
    pub option_lines: Vec<String>,
}

impl Plan {
    /// Decides. Asks and changes nothing.
    pub fn make(wish: &Wish, server: &Server, here: &Here, wanted: &Wanted) -> Plan {
        let facts = &server.facts;
        let mut notes: Vec<Finding> = examine_server(facts, wanted);
        notes.retain(|finding| finding.level == Level::Warning);
        notes.extend(semi_sync::notes(wish, facts, wanted));
        if let Some(source) = &server.replica_of {
            notes.push(Finding::warning(format!(
                "it replicates from {source}, or did: what {source} commits is acknowledged there, not here"
            )));
        }
        let refusals = refusal::refusals(wish, server, here);
        if !refusals.is_empty() {
            return Plan { refusals, steps: Vec::new(), notes, option_lines: Vec::new() };
        }
        let mut steps = semi_sync::prepare(wish, server, wanted);
        steps.extend(account::steps(wish, server, here));
        steps.extend(data_dir(&here.files));
        steps.push(configuration(wish, &here.files));
        steps.push(start(wish, here));
        steps.push(semi_sync::switch_on(wish, server, here));
        Plan { refusals, steps, notes, option_lines: semi_sync::option_lines(wish, facts, wanted) }
    }

    /// Whether setup has something to do now.
    pub fn has_work(&self) -> bool {
        self.steps.iter().any(|step| step.state == State::ToDo)
    }

    /// Whether everything is there.
    pub fn is_done(&self) -> bool {
        self.refusals.is_empty() && self.steps.iter().all(|step| step.state == State::There)
    }
}

/// Where binlogd has an account of its own, which can make no folder there.
fn data_dir(files: &Files) -> Option<Step> {
    let folder = &files.data_dir;
    files.needs_data_dir.then(|| {
        let what =
            format!("Make the folder of the copies, {} (mode 0700, of the user binlogd)", folder.display());
        Step::to_do(what, "", Act::MakeFolder(folder.clone()))
    })
}

fn configuration(wish: &Wish, files: &Files) -> Step {
    let (path, password) = (wish.file(), &files.password_file);
    let shown = path.display();
    let text = match &wish.source_file {
        Some(_) => source_text(wish, password),
        None => config_text(wish, password),
    };
    let write = |aside: Option<PathBuf>| Act::Write { path: path.to_owned(), text: text.clone(), aside };
    match &files.config {
        ConfigSeen::Ours => Step::there(format!("the source {} in {shown}", wish.name)),
        ConfigSeen::Absent => Step::to_do(format!("Write {shown}"), "", write(None)),
        ConfigSeen::Example => {
            let aside = PathBuf::from(format!("{shown}.{ASIDE}"));
            let what = format!("Write {shown}; the example in its place becomes {}", aside.display());
            Step::to_do(what, "", write(Some(aside)))
        }
        ConfigSeen::Others | ConfigSeen::Clash(_) => Step {
            state: State::Yours,
            ..Step::to_do(
                format!("Add the source to {}", wish.config.display()),
                "setup changes no configuration that is there. With include in it --source-file writes a file of its own",
                Act::Text(source_text(wish, password)),
            )
        },
    }
}

fn start(wish: &Wish, here: &Here) -> Step {
    match &here.attached {
        Ok(()) => Step::there(format!("binlogd receives from {}, and has caught up", wish.host)),
        Err(why) => Step {
            state: State::Yours,
            ..Step::to_do(
                "Start binlogd",
                format!("it is not attached yet: {why}"),
                Act::Text(here.start.clone()),
            )
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::server::AccountSeen;
    use super::super::test_states::{here, server, wanted};
    use super::super::wish::wish;
    use super::*;
    use crate::doctor::test_facts::{mariadb, mysql, with};

    fn states(plan: &Plan) -> Vec<(&str, &State)> {
        plan.steps.iter().map(|step| (step.what.split(',').next().unwrap(), &step.state)).collect()
    }

    #[test]
    fn semi_sync_is_prepared_first_and_switched_on_last() {
        let off = server(with(
            with(mysql(), "rpl_semi_sync_source_enabled", Some("OFF")),
            "rpl_semi_sync_source_timeout",
            Some("1000"),
        ));
        let plan = Plan::make(&wish(), &off, &here(), &wanted());
        assert!(plan.has_work() && !plan.is_done(), "{plan:#?}");
        let waits = State::Waits("no binlogd runs".to_owned());
        assert_eq!(
            states(&plan),
            [
                ("the semi-sync plugin", &State::There),
                ("Set rpl_semi_sync_source_timeout", &State::ToDo),
                ("Make up a password", &State::ToDo),
                ("Make the account 'binlogd'@'10.0.0.5'", &State::ToDo),
                ("Log in as 'binlogd'@'10.0.0.5'", &State::ToDo),
                ("Write /etc/binlogd/binlogd.toml", &State::ToDo),
                ("Start binlogd", &State::Yours),
                ("Switch semi-sync on", &waits),
            ]
        );
    }

    #[test]
    fn where_everything_is_there_nothing_is_done() {
        for facts in [mysql(), mariadb()] {
            let mut whole = server(facts);
            whole.account = AccountSeen::There {
                grants: vec!["GRANT REPLICATION SLAVE ON *.* TO `binlogd`@`10.0.0.5`".to_owned()],
                requires_tls: false,
            };
            let mut there = here();
            there.files.config = ConfigSeen::Ours;
            there.files.has_password = true;
            there.login = Some(Ok(()));
            there.attached = Ok(());
            let plan = Plan::make(&wish(), &whole, &there, &wanted());
            assert!(plan.is_done() && !plan.has_work(), "{plan:#?}");
        }
    }

    #[test]
    fn a_folder_that_binlogd_cannot_make_is_made_for_it() {
        let mut here = here();
        here.files.needs_data_dir = true;
        let plan = Plan::make(&wish(), &server(mysql()), &here, &wanted());
        let step = plan.steps.iter().find(|step| step.what.starts_with("Make the folder")).unwrap();
        assert_eq!(step.act, Act::MakeFolder("/var/lib/binlogd".into()));
        assert_eq!(step.undo(), ["rmdir /var/lib/binlogd"]);
    }

    #[test]
    fn without_semi_sync_the_source_is_left_as_it_is() {
        let off = server(with(mysql(), "rpl_semi_sync_source_enabled", Some("OFF")));
        let plan = Plan::make(&Wish { semi_sync: false, ..wish() }, &off, &here(), &wanted());
        let text = format!("{plan:?}");
        assert!(!text.contains("SET PERSIST rpl") && text.contains("semi_sync = false"), "{text}");
    }

    #[test]
    fn what_is_less_safe_is_said_and_not_changed() {
        let relaxed = server(with(mysql(), "gtid_mode", Some("OFF")));
        let plan = Plan::make(&wish(), &relaxed, &here(), &wanted());
        assert!(plan.notes.iter().any(|note| note.what == "gtid_mode: OFF"), "{plan:#?}");
        assert!(!format!("{:?}", plan.steps).contains("gtid_mode"));
    }
}
