//! The accounts of docs/archive/archive-policies.md, and the way back of docs/archive/archive-stores.md: policies and commands are read from the
//! pages themselves, given to accounts of a real store, and each account does its work with the built program, and no more.

use super::MYSQL;
use super::place::{Place, program_or_skip, scripts, wait_archived};
use crate::common::compare::binary_logs;
use crate::common::daemon::Daemon;
use crate::common::readers::make_account;
use crate::common::{Server, workspace};
use rig::object_store::tool;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

const POLICIES: &str = "docs/archive/archive-policies.md";
const STORES: &str = "docs/archive/archive-stores.md";
/// A bucket and a prefix, as the pages call them.
const PAGE_PLACE: (&str, &str) = ("bucket", "binlogs");

/// An account of the pages.
#[derive(Clone, Copy)]
struct Account {
    /// The heading under which its policy stands.
    heading: &'static str,
    key: &'static str,
    secret: &'static str,
}

const WRITER: Account = Account { heading: "Writer", key: "writer", secret: "secret-of-the-writer" };
const READER: Account = Account { heading: "Reader", key: "reader", secret: "secret-of-the-reader" };
const PRUNER: Account = Account { heading: "Pruner", key: "pruner", secret: "secret-of-the-pruner" };

/// The first block of code of that language under a heading of a page.
#[track_caller]
fn block(page: &str, heading: &str, language: &str) -> String {
    let text = std::fs::read_to_string(workspace().join(page)).expect("the page");
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).expect("the heading");
    let section = section.split("\n## ").next().expect("a section");
    let (_, block) = section.split_once(&format!("```{language}\n")).expect("a block");
    block.split_once("```").expect("its end").0.to_owned()
}

/// The accounts with their policies. What a page gives to an identity stands here in the policy of the bucket, the only one that the
/// store knows, with the account as principal.
fn grant(place: &Place) {
    let (bucket, prefix) = (place.bucket(), place.prefix());
    let mut statements = Vec::new();
    for account in [WRITER, READER, PRUNER] {
        place.store().account(account.key, account.secret).expect("an account");
        let policy: Value =
            serde_json::from_str(&block(POLICIES, account.heading, "json")).expect("the policy is JSON");
        for statement in policy["Statement"].as_array().expect("statements") {
            let mut statement = statement.clone();
            let resource = statement["Resource"].as_str().expect("one resource");
            let rest = resource.strip_prefix(&format!("arn:aws:s3:::{}", PAGE_PLACE.0)).expect("the bucket");
            let rest = rest.replacen(PAGE_PLACE.1, prefix, 1);
            statement["Resource"] = json!(format!("arn:aws:s3:::{bucket}{rest}"));
            statement["Principal"] = json!({ "AWS": account.key });
            statement["Sid"] =
                json!(format!("{}{}", account.heading, statement["Sid"].as_str().expect("a name")));
            statements.push(statement);
        }
    }
    let policy = json!({ "Version": "2012-10-17", "Statement": statements });
    place.store().policy(bucket, &policy.to_string()).expect("the store takes the policy");
}

impl Account {
    /// The variables with which binlogd reaches the store as this account.
    fn environment(self, place: &Place) -> Vec<(String, String)> {
        let mut environment = place.environment();
        for (name, value) in &mut environment {
            match name.as_str() {
                "AWS_ACCESS_KEY_ID" => self.key.clone_into(value),
                "AWS_SECRET_ACCESS_KEY" => self.secret.clone_into(value),
                _ => {}
            }
        }
        environment
    }

    /// Runs a verb on the archive; its exit code, and all that it said.
    fn run(self, place: &Place, verb: &str, arguments: &[&str]) -> (Option<i32>, String) {
        ended(place.command(verb, arguments).envs(self.environment(place)))
    }

    /// Tries the archive of a configuration out.
    fn doctor(self, place: &Place, daemon: &Daemon) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
        command.args(["doctor", "--archive", "--config"]).arg(daemon.config_path());
        ended(command.env("NO_COLOR", "1").stdin(Stdio::null()).envs(self.environment(place)))
    }

    /// Something that AWS's command line asks of the store is refused to this account, for lack of rights.
    #[track_caller]
    fn is_refused(self, place: &Place, words: &[&str]) {
        let refused =
            place.store().aws_as(self.key, self.secret, words).expect_err("it is refused").to_string();
        assert!(refused.contains("AccessDenied"), "{}: {words:?}: {refused}", self.key);
    }
}

fn ended(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// The key of an object of the archive.
fn key(place: &Place, name: &str) -> String {
    format!("{}/default/{name}", place.prefix())
}

fn first_commit(place: &Place) -> String {
    key(place, &format!("commits/{:020}.json", 1))
}

/// Requests that change an object.
fn put<'a>(place: &Place, key: &'a str, body: &'a str) -> Vec<&'a str> {
    vec!["s3api", "put-object", "--bucket", place.bucket(), "--key", key, "--body", body]
}

fn delete<'a>(place: &Place, key: &'a str) -> Vec<&'a str> {
    vec!["s3api", "delete-object", "--bucket", place.bucket(), "--key", key]
}

/// An archive with something in it, whose writer has the writer's rights alone.
fn kept_by_the_writer(place: &Place, source: &Server) -> Daemon {
    make_account(source);
    grant(place);
    let daemon = Daemon::start_from_in(&WRITER.environment(place), "", &place.config(source, ""));
    source.sql("CREATE DATABASE d; CREATE TABLE d.t0 (id INT AUTO_INCREMENT PRIMARY KEY, k INT)");
    daemon
}

#[test]
fn each_account_does_its_work_and_no_more() {
    if program_or_skip("aws").is_none() {
        return;
    }
    let source = Server::start("mysql-9.7", &MYSQL);
    let place = Place::s3().encrypted();
    let daemon = kept_by_the_writer(&place, &source);
    for round in 0..3 {
        source.sql(&format!("INSERT INTO d.t0 (k) VALUES ({round}); FLUSH BINARY LOGS"));
    }
    source.sql("INSERT INTO d.t0 (k) VALUES (9)");
    wait_archived(&daemon, &source);
    let (commit, other) = (first_commit(&place), key(&place, "other"));
    let body = workspace().join(POLICIES).display().to_string();

    let (code, said) = WRITER.doctor(&place, &daemon);
    assert!(code == Some(0) && said.contains("deleting is not allowed"), "{said}");
    WRITER.is_refused(&place, &delete(&place, &commit));

    let (code, said) = READER.run(&place, "verify", &[]);
    assert!(code == Some(0) && said.contains("no damage"), "{said}");
    let (code, said) = READER.run(&place, "prune", &["--max-files", "1", "--dry-run"]);
    assert!(code == Some(0) && said.contains("would go"), "{said}");
    let dir = super::place::folder();
    let (code, said) = READER.run(&place, "fetch", &["--to", dir.path().to_str().expect("a plain path")]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(place.fetch_into(dir).assert_is_of(&source), binary_logs(&source));
    let (code, said) = READER.doctor(&place, &daemon);
    assert!(code == Some(1) && said.contains("the right to create is missing"), "{said}");
    let (code, said) = READER.run(&place, "prune", &["--max-files", "1", "--yes"]);
    assert!(code == Some(1) && said.contains("403 AccessDenied"), "{said}");
    READER.is_refused(&place, &put(&place, &other, &body));
    READER.is_refused(&place, &delete(&place, &commit));

    let before = place.assert_sound();
    let (code, said) = PRUNER.run(&place, "prune", &["--max-files", "2", "--grace", "0s", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    let after = place.assert_sound();
    assert_eq!((&after["files"], &after["unnamed_objects"]), (&json!(2), &json!(0)), "{before:#}\n{after:#}");
    let kept = place.fetch().assert_is_newest_of(&source, 2);
    assert_eq!(kept, binary_logs(&source)[binary_logs(&source).len() - 2..]);
    // Below the prefix, and nowhere else.
    for account in [WRITER, READER, PRUNER] {
        account.is_refused(&place, &put(&place, "elsewhere/a", &body));
    }
}

/// Runs a block of commands of a page with AWS's command line, as who owns the store.
#[track_caller]
fn run_page(place: &Place, commands: &str) -> String {
    let store = place.store();
    let page_url = format!("{}/", PAGE_PLACE.1);
    let commands = commands
        .replace(&format!("BUCKET={}", PAGE_PLACE.0), &format!("BUCKET={}", place.bucket()))
        .replace(&page_url, &format!("{}/", place.prefix()));
    let aws = tool(&scripts(), "aws").expect("the command line of AWS");
    let aws = Path::new(aws.get_program()).display().to_string();
    let script = format!(
        "set -euo pipefail\naws() {{ '{aws}' --endpoint-url '{}' \"$@\"; }}\n{commands}",
        store.endpoint().expect("an endpoint")
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script]).stdin(Stdio::null());
    command.env("AWS_ACCESS_KEY_ID", store.access_key().expect("a key"));
    command.env("AWS_SECRET_ACCESS_KEY", store.secret_key().expect("a secret"));
    command.env("AWS_DEFAULT_REGION", store.fact("REGION").expect("a region"));
    command.env("AWS_CONFIG_FILE", "/dev/null").env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    let (code, said) = ended(&mut command);
    assert_eq!(code, Some(0), "{script}\n{said}");
    said
}

/// The writer's keys are stolen. With them objects can be overwritten and hidden; in a bucket with versions that is seen, and undone
/// with the commands of the page, by who owns the bucket.
#[test]
fn what_a_thief_does_with_the_writers_keys_is_seen_and_undone() {
    if program_or_skip("aws").is_none() {
        return;
    }
    let source = Server::start("mysql-9.7", &MYSQL);
    let place = Place::locked().encrypted();
    let daemon = kept_by_the_writer(&place, &source);
    source.sql("INSERT INTO d.t0 (k) VALUES (1); FLUSH BINARY LOGS; INSERT INTO d.t0 (k) VALUES (2)");
    wait_archived(&daemon, &source);
    drop(daemon);
    place.assert_sound();

    let (commit, other) = (first_commit(&place), workspace().join(POLICIES).display().to_string());
    place
        .store()
        .aws_as(WRITER.key, WRITER.secret, &put(&place, &commit, &other))
        .expect("the store takes it");
    WRITER.is_refused(&place, &delete(&place, &commit));
    let (code, said) = READER.run(&place, "verify", &[]);
    assert!(code == Some(1) && said.contains(&format!("{:020}.json", 1)), "{said}");

    // Who may delete hides everything, and removes nothing.
    let all = format!("s3://{}/{}/", place.bucket(), place.prefix());
    let hide = ["s3", "rm", "--recursive", "--quiet", &all];
    place.store().aws_as(PRUNER.key, PRUNER.secret, &hide).expect("the store takes it");
    let (code, said) = READER.run(&place, "verify", &[]);
    assert!(code == Some(2) && said.contains("has no archive of binlogd"), "{said}");

    let back = block(STORES, "A bucket that was overwritten or emptied", "bash");
    println!("{}", run_page(&place, &back));
    place.assert_whole(&source);
    let (code, said) = READER.run(&place, "verify", &[]);
    assert!(code == Some(0) && said.contains("no damage"), "{said}");
}
