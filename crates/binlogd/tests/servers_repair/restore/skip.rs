//! Transactions that are passed over on MariaDB, whose positions have no holes: the restore halts before each, and goes on behind it.

use super::{Scene, executed, succeeded};
use crate::common::readers::checksums;

#[test]
fn mariadb_passes_over_several() {
    for name in ["mariadb-11.8", "mariadb-10.11"] {
        let scene = Scene::new(name);
        let at = |what: &str| {
            scene.source.sql(&format!("{what}; SELECT @@global.gtid_binlog_pos")).trim().to_owned()
        };
        let second = at("DELETE FROM shop.parts WHERE id = 1");
        at("INSERT INTO shop.parts VALUES (11, 1)");
        let first_of_two = at("UPDATE shop.parts SET n = 50 WHERE id = 2");
        let last = at("UPDATE shop.parts SET n = 60 WHERE id = 2");
        scene.daemon.wait_caught_up(&scene.source);
        // In any order, and the last of all.
        let skip = [last.as_str(), &second, &first_of_two].join(",");
        let said = succeeded(&scene.restore(&["--until", "end", "--skip", &skip, "--plan"]));
        assert!(said.contains("not applied, and counted as if they were"), "{said}");
        let said = succeeded(&scene.restore(&["--until", "end", "--skip", &skip, "--yes"]));
        assert!(said.contains("restored: "), "{said}");
        assert_eq!(executed(&scene.target), executed(&scene.source), "{name}");
        scene.is_detached();
        assert_eq!(scene.target.sql("SELECT COUNT(*) FROM shop.parts WHERE id IN (1, 11)").trim(), "2");
        assert_eq!(scene.target.sql("SELECT n FROM shop.parts WHERE id = 2").trim(), "3");
        let said = succeeded(&scene.restore(&["--until", "end", "--yes", "--compare", "none"]));
        assert!(said.contains("nothing is to be done"), "{said}");
        scene.target.sql("DELETE FROM shop.parts WHERE id = 1; UPDATE shop.parts SET n = 60 WHERE id = 2");
        assert_eq!(checksums(&scene.target, "shop"), checksums(&scene.source, "shop"));
    }
}
