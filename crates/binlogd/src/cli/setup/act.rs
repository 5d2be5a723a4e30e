//! Does the steps of a plan, one after the other, and says how far it came.

use super::super::style;
use super::show::line;
use config::password::read_file;
use setup::doctor::Facts;
use setup::write::{Readers, make_data_dir, put_aside, write_new};
use setup::{Act, Files, Plan, State, Statement, Step, make_password};
use wire::{ConnectOptions, Connection, Secret, WireError};

/// ER_CANT_OPEN_LIBRARY: the plugin's file is not there.
const ER_CANT_OPEN_LIBRARY: u16 = 1126;

/// What the steps are done with.
pub(super) struct Worker<'a> {
    /// The administrator's session, kept open until the end: where logins hang it is the way out.
    pub(super) connection: &'a mut Connection,
    /// How to log in as the account.
    pub(super) account: &'a ConnectOptions,
    /// What is there on this machine.
    pub(super) files: &'a Files,
}

/// A step failed.
pub(super) struct Failure {
    /// The step's number, what failed, and what helps.
    pub(super) why: String,
    /// How to take back what was done, the last first.
    pub(super) undo: Vec<String>,
}

impl Worker<'_> {
    /// Does what can be done now.
    ///
    /// # Errors
    /// At the first step that fails; later ones are not begun.
    pub(super) fn work(&mut self, plan: &Plan) -> Result<(), Failure> {
        // What quotes are made for, whatever the server's own mode is.
        let prepared = ["SET NAMES utf8mb4", "SET SESSION sql_mode = ''"].map(|sql| self.run(sql));
        if let Some(Err(why)) = prepared.into_iter().find(Result::is_err) {
            return Err(Failure { why: format!("nothing was done: {why}"), undo: Vec::new() });
        }
        let mut undo = Vec::new();
        for (index, step) in plan.steps.iter().enumerate().filter(|(_, step)| step.state == State::ToDo) {
            let number = index + 1;
            if let Err((why, partly)) = self.do_step(step) {
                undo.splice(0..0, partly);
                return Err(Failure { why: format!("step {number} failed ({}): {why}", step.what), undo });
            }
            undo.splice(0..0, step.undo());
            outln!(
                "{}",
                line(number, "done", style::GREEN, &step.what, style::stdout_is_colored()).trim_end()
            );
        }
        Ok(())
    }

    /// One step. The error has what takes back the part of it that was done.
    fn do_step(&mut self, step: &Step) -> Result<(), (String, Vec<String>)> {
        let none = |why: String| (why, Vec::new());
        match &step.act {
            Act::Nothing | Act::Text(_) => Ok(()),
            Act::Sql(statements) => self.statements(statements),
            Act::MakePassword(path) => {
                let password = make_password().map_err(none)?;
                let text = format!("{}\n", password.expose());
                write_new(path, &text, Readers::Binlogd, self.files.owner)
                    .map_err(|error| none(format!("{}: {error}", path.display())))
            }
            Act::MakeFolder(path) => make_data_dir(path, self.files.owner)
                .map_err(|error| none(format!("{}: {error}", path.display()))),
            Act::LogIn => self.log_in().map_err(none),
            Act::Write { path, text, aside } => {
                let failed = |error: std::io::Error| none(format!("{}: {error}", path.display()));
                if let Some(aside) = aside {
                    put_aside(path, aside).map_err(failed)?;
                }
                write_new(path, text, Readers::All, self.files.owner).map_err(failed)
            }
            Act::SwitchOn { on, off } => self.switch_on(on, off),
        }
    }

    fn statements(&mut self, statements: &[Statement]) -> Result<(), (String, Vec<String>)> {
        let mut undo = Vec::new();
        for statement in statements {
            // Read for each: it may have been made by the step before.
            let password = match statement.shown().contains(setup::PASSWORD_HERE) {
                true => self.password().map_err(|why| (why, undo.clone()))?,
                false => Secret::default(),
            };
            if let Err(why) = self.run(&statement.sql(&password)) {
                return Err((format!("{} {why}", statement.shown()), undo));
            }
            undo.splice(0..0, statement.undo.clone());
        }
        Ok(())
    }

    fn password(&self) -> Result<Secret, String> {
        let file = &self.files.password_file;
        read_file(file).map_err(|problem| format!("{} {problem}", file.display()))
    }

    fn log_in(&self) -> Result<(), String> {
        let options = ConnectOptions { password: self.password()?, ..self.account.clone() };
        let connection = Connection::connect(&options).map_err(|error| {
            let hint = match error {
                WireError::AccessDenied { .. } => {
                    ". If the source sees this machine under another address: --replica-host, with a pattern that fits"
                }
                _ => "",
            };
            format!("{error}{hint}")
        })?;
        connection.close();
        Ok(())
    }

    /// Switches semi-sync on, and off again when nobody is attached at that moment.
    fn switch_on(&mut self, on: &Statement, off: &Statement) -> Result<(), (String, Vec<String>)> {
        let none = Secret::default();
        self.run(&on.sql(&none)).map_err(|why| (format!("{} {why}", on.shown()), Vec::new()))?;
        let looked = Facts::collect(self.connection, false).map_err(|error| error.to_string());
        let gone = match looked {
            Ok(facts) if facts.semi_sync_clients != Some(0) => return Ok(()),
            Ok(_) => "binlogd was gone when semi-sync was on".to_owned(),
            Err(why) => why,
        };
        match self.run(&off.sql(&none)) {
            Ok(()) => Err((format!("{gone}; it is off again"), Vec::new())),
            Err(why) => Err((format!("{gone}, and switching it off failed: {why}"), vec![off.shown()])),
        }
    }

    fn run(&mut self, sql: &str) -> Result<(), String> {
        self.connection.query(sql).map(drop).map_err(|error| match error {
            WireError::Server { code: ER_CANT_OPEN_LIBRARY, .. } => format!(
                "{error}. This server comes without the plugin's file: install the package that has it, or copy without \
                 acknowledgements, with --semi-sync=false"
            ),
            error => error.to_string(),
        })
    }
}
