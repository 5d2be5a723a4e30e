//! Runs that could not restore the server by themselves, and `binlogd-lab restore` after them.

use super::{PASSWORD, SMALL, User, WAIT_MAX, assert_same, journals_in, said};
use binlogd_lab::server::{DATABASE, address, restore};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;

/// The password is changed in the middle of a run, so that the lab cannot come back to undo what it did.
pub(crate) fn a_failed_restore_is_told_and_no_success(user: &User) {
    let before = user.snapshot();
    let mut lab = user.run_into_a_load();
    let set = |password: &str| {
        let password = password.replace('\'', "''");
        user.root().query(&format!("ALTER USER dba@'%' IDENTIFIED BY '{password}'")).expect("a password");
    };
    set("another");
    kill_process(Pid::from_child(&lab.0), Signal::INT).expect("it is there");
    let status = lab.wait_within(WAIT_MAX).expect("it ends");
    let said = said(&mut lab);
    set(PASSWORD);
    assert_eq!(status.code(), Some(1), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("error: ") && last.contains("binlogd-lab restore"), "{said}");
    assert!(said.contains("is not as it was"), "{said}");
    restore_with_password(user).expect("it is restored");
    assert_same(&before, &user.snapshot());
    user.wait_until_alone();
}

pub(crate) fn after_a_crash_everything_is_restored(user: &User) {
    let before = user.snapshot();
    let mut lab = user.run_into_a_load();
    lab.0.kill().expect("it is killed");
    lab.0.wait().expect("it has ended");
    let changed = user.snapshot();
    assert!(changed.contains_key(&format!("database {DATABASE}")));
    assert_eq!(journals_in(&user.journals()), 1);
    let journal =
        std::fs::read_dir(user.journals()).expect("journals").next().expect("one").expect("its name").path();
    let text = std::fs::read_to_string(&journal).expect("the journal");
    assert!(!text.contains(PASSWORD) && text.contains("mysql://dba@127.0.0.1"), "{text}");

    // Another run would find what it changed, and take it for what the user wanted.
    let again = user.run(&[&["--server", &user.url()][..], &SMALL].concat());
    let complaint = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(!again.status.success() && complaint.contains("binlogd-lab restore"), "{complaint}");

    // What the killed one has left of its own is gone: a file with the password, and a copy of the log.
    let left = std::fs::read_dir(user.dir.path().join("measured")).expect("a folder");
    let left = left.map(|file| file.expect("its name").file_name().into_string().expect("UTF-8"));
    assert_eq!(left.filter(|name| name.starts_with("virtual-replica-")).count(), 0, "{complaint}");

    // Without the password nothing is done, and the journal stays.
    restore(&user.journals()).expect_err("no password");
    // Another server at the same address is left alone.
    let identity =
        text.split("\"identity\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("an identity");
    std::fs::write(&journal, text.replacen(identity, "another", 1)).expect("the journal");
    let refused = restore_with_password(user).expect_err("another server");
    assert!(refused.contains("another one"), "{refused}");
    assert_same(&changed, &user.snapshot());
    std::fs::write(&journal, text).expect("the journal");

    let done = restore_with_password(user).expect("it is restored");
    for what in
        ["sync_binlog = 7 again", "innodb_flush_log_at_trx_commit = 0 again", "database binlogd_lab dropped"]
    {
        assert!(
            done.iter().any(|line| line.contains(what) && line.starts_with(&user.place())),
            "{what} in {done:?}"
        );
    }
    assert_same(&before, &user.snapshot());
    assert_eq!(journals_in(&user.journals()), 0);
    user.wait_until_alone();
    assert_eq!(restore(&user.journals()).expect("nothing to do"), Vec::<String>::new());
}

/// `binlogd-lab restore`, which finds the password in its environment: what it says, a line each.
fn restore_with_password(user: &User) -> Result<Vec<String>, String> {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.current_dir(user.dir.path()).args(["as-lab", "restore", "--journals", "journals"]);
    let output = command.env(address::PASSWORD_VARIABLE, PASSWORD).output().expect("the lab starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout).lines().map(str::to_owned).collect()),
        false => Err(text(&output.stderr)),
    }
}

pub(crate) fn what_another_has_changed_since_stays(user: &User) {
    let mut lab = user.run_into_a_load();
    lab.0.kill().expect("it is killed");
    lab.0.wait().expect("it has ended");
    user.root().query("SET GLOBAL sync_binlog = 5").expect("it is set");
    let done = restore_with_password(user).expect("it is restored");
    assert!(done.iter().any(|line| line.contains("sync_binlog is 5")), "{done:?}");
    assert_eq!(user.snapshot()["variable sync_binlog"], "5");
    user.root().query("SET GLOBAL sync_binlog = 7").expect("it is set");
    user.wait_until_alone();
}
