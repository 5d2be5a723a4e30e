//! Where the copy begins, and where it goes on after a restart of binlogd, on real servers.

mod common;

use common::Server;
use common::daemon::Daemon;

#[test]
fn a_copy_goes_on_after_a_restart_while_the_source_idles() {
    let server = Server::start("mysql-9.7", &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a int primary key); INSERT INTO d.t VALUES (1)");
    let mut daemon = Daemon::start(&server, &[]);
    daemon.wait_caught_up(&server);
    daemon.terminate();
    daemon.restart(&[]);
    daemon.wait_caught_up(&server);
}
