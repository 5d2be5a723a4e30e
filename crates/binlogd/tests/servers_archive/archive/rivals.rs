//! Several binlogds that archive one source in one place.

use super::place::{Place, wait_archived};
use super::{MANNER, MYSQL};
use crate::common::Server;
use crate::common::compare::binary_logs;
use crate::common::daemon::Daemon;
use crate::common::ledger::{self, Ledger};
use crate::common::readers::make_account;
use std::time::Duration;

/// Both write beside each other, one of them is killed and comes back, and one chain comes of it. Both come to the end of it.
#[test]
fn two_of_one_source_make_one_archive() {
    let source = Server::start("mysql-9.7", &MYSQL);
    make_account(&source);
    ledger::create_table(&source);
    let place = Place::s3().encrypted();
    let mut one = place.start(&source, "");
    let ledger = Ledger::start_in(&source, 3, MANNER);
    // Killed with an empty disk, it would need the key when it comes back.
    one.wait_log("receiving a new file", Duration::from_secs(60));
    // It begins from the archive, for which it needs the key.
    let identity = format!("[archive]\nidentity = ['{}']\n", place.identity().display());
    let config = place.config(&source, "").replace("[archive]\n", &identity);
    let other = Daemon::start_from_in(&place.environment(), "", &config);
    ledger.wait_for(300);
    one.kill();
    ledger.wait_for(ledger.committed().len() + 200);
    one.restart(&[]);
    ledger.wait_for(ledger.committed().len() + 200);
    ledger.finish();
    source.sql("FLUSH BINARY LOGS; INSERT INTO ledger.bulk VALUES (1, 'last')");
    for daemon in [&one, &other] {
        let status = wait_archived(daemon, &source);
        println!("{:#}", status["archive"]);
    }
    place.assert_sound();
    assert_eq!(place.fetch().assert_is_of(&source), binary_logs(&source));

    // Whoever is left alone goes on with it.
    drop(one);
    source.sql("INSERT INTO ledger.bulk VALUES (2, 'of the other'); FLUSH BINARY LOGS");
    wait_archived(&other, &source);
    place.assert_sound();
    assert_eq!(place.fetch().assert_is_of(&source), binary_logs(&source));
}
