//! A target that somebody else writes to: each of them is named, and is left as it was.

use super::{PATIENCE, Scene, succeeded};
use crate::common::readers::checksums;
use crate::common::wait_within;

const POINT: [&str; 3] = ["--until", "before DROP TABLE shop.orders", "--yes"];

/// Another replication, and events.
fn writers_are_named(name: &str, [configure, start, stop, status]: [&str; 4]) {
    let scene = Scene::new(name);
    let target = &scene.target;
    // Nobody listens there; its applier runs all the same.
    target.sql(configure);
    target.sql(start);
    wait_within(PATIENCE, "the other replication runs", || target.sql(status).contains("Connecting"));
    let output = scene.restore(&POINT);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the target is in use") && said.contains("other"), "{said}");
    target.sql(stop);

    target.sql(
        "SET sql_log_bin = 0; CREATE EVENT shop.tick ON SCHEDULE EVERY 1 HOUR DO DELETE FROM shop.parts WHERE id < 0; SET GLOBAL \
         event_scheduler = ON",
    );
    let output = scene.restore(&POINT);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the target is in use") && said.contains("events: shop.tick"), "{said}");
    target.sql("SET GLOBAL event_scheduler = OFF");

    let said = succeeded(&scene.restore(&POINT));
    assert!(said.contains("restored: 203 transactions"), "{said}");
    assert_eq!(checksums(target, "shop"), scene.before);
    let state = target.sql(status);
    assert!(
        state.contains("other") && !state.contains("binlogd_restore"),
        "the other one is still there: {state}"
    );
    assert_eq!(target.sql("SELECT @@global.server_id").trim(), "1");
}

#[test]
fn mysql_names_channels_and_events() {
    writers_are_named(
        "mysql-9.7",
        [
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1, SOURCE_USER = 'nobody', SOURCE_AUTO_POSITION = 1 \
             FOR CHANNEL 'other'",
            "START REPLICA FOR CHANNEL 'other'",
            "STOP REPLICA FOR CHANNEL 'other'",
            "SHOW REPLICA STATUS",
        ],
    );
}

#[test]
fn mariadb_names_connections_and_events() {
    writers_are_named(
        "mariadb-11.8",
        [
            "CHANGE MASTER 'other' TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1, MASTER_USER = 'nobody', MASTER_USE_GTID = slave_pos",
            "START SLAVE 'other'",
            "STOP SLAVE 'other'",
            "SHOW ALL SLAVES STATUS",
        ],
    );
}
