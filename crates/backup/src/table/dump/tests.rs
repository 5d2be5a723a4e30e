use super::*;
use std::io::{BufReader, Cursor};

const DUMP: &str = "\
/*M!999999\\- enable the sandbox mode */ \n\
-- MySQL dump 10.13\n\
/*!40101 SET NAMES utf8mb4 */;\n\
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;\n\
/*!40103 SET TIME_ZONE='+00:00' */;\n\
SET @@SESSION.SQL_LOG_BIN= 0;\n\
SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,\n\
4e11fa47-71ca-11e1-9e33-c80aa9429562:1-7';\n\
-- Current Database: `crm`\n\
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `crm` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;\n\
USE `crm`;\n\
CREATE TABLE `orders` (\n  `id` int\n);\n\
INSERT INTO `orders` VALUES (1);\n\
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET latin1 */;\n\
USE `shop`;\n\
CREATE TABLE `notes` (\n  `t` text\n);\n\
LOCK TABLES `notes` WRITE;\n\
INSERT INTO `notes` VALUES ('USE `x`;'),('\\nINSERT INTO `orders` VALUES (7);');\n\
UNLOCK TABLES;\n\
DROP TABLE IF EXISTS `orders`;\n\
CREATE TABLE `orders` (\n  `id` int COMMENT 'a;\\nb'\n) ENGINE=InnoDB;\n\
LOCK TABLES `orders` WRITE;\n\
INSERT INTO `orders` VALUES (1,'a;b'),(2,'\\n;\\n');\n\
INSERT INTO `orders` VALUES\n(3,'x;'),\n(4,'y');\n\
UNLOCK TABLES;\n\
/*!50003 SET sql_mode              = 'ANSI' */ ;\n\
DELIMITER ;;\n\
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER `stamp` BEFORE INSERT ON `orders` FOR EACH ROW\n\
BEGIN\n\
INSERT INTO `orders` VALUES (9);\n\
END */;;\n\
DELIMITER ;\n\
CREATE TABLE `orders_old` (\n  `id` int\n);\n\
INSERT INTO `orders_old` VALUES (5);\n\
/*!50001 CREATE VIEW `v` AS SELECT \n 1 AS `id`*/;\n\
USE `zoo`;\n\
INSERT INTO `orders` VALUES (6);\n\
-- Dump completed\n";

fn followed() -> Followed {
    Followed::new("0000cafe", [TableName::new(b"shop", b"orders")])
}

fn cut(dump: &str, buffer: usize) -> io::Result<Vec<String>> {
    let followed = followed();
    let from = BufReader::with_capacity(buffer, Cursor::new(dump.as_bytes().to_vec()));
    let mut cutter = Cutter::new(from, &followed, 1 << 20);
    let mut found = Vec::new();
    while let Some(piece) = cutter.next()? {
        found.push(match piece {
            Piece::Setting(sql) => format!("setting {sql}"),
            Piece::Schema(name, _) => format!("schema {name}"),
            Piece::Definition(name, sql) => format!("{name} {sql}"),
            Piece::Rows(name, sql) => format!("{name} {}", String::from_utf8_lossy(&sql)),
            Piece::Trigger(name, trigger) => format!("{name} trigger {trigger}"),
        });
    }
    Ok(found)
}

/// However the bytes come, and whatever stands in values, routines and other schemas.
#[test]
fn the_tables_statements_are_cut_out_and_nothing_else() {
    let whole = cut(DUMP, 1 << 20).unwrap();
    assert_eq!(
        whole,
        [
            "setting /*!40101 SET NAMES utf8mb4 */;",
            "setting /*!40103 SET TIME_ZONE='+00:00' */;",
            "schema shop",
            "shop.orders CREATE TABLE `orders` (\n  `id` int COMMENT 'a;\\nb'\n) ENGINE=InnoDB;",
            "shop.orders INSERT INTO `orders` VALUES (1,'a;b'),(2,'\\n;\\n');",
            "shop.orders INSERT INTO `orders` VALUES\n(3,'x;'),\n(4,'y');",
            "shop.orders trigger stamp",
        ]
    );
    for buffer in (1..40).chain([1023, 1024, 1025]) {
        assert_eq!(cut(DUMP, buffer).unwrap(), whole, "by {buffer} bytes");
    }
}

#[test]
fn lines_longer_than_what_is_looked_at_are_cut_as_short_ones() {
    let long = "x".repeat(5 * HEAD_BYTES);
    for len in HEAD_BYTES - 60..HEAD_BYTES + 20 {
        let of = |table: &str| format!("INSERT INTO `{table}` VALUES ('{}');\n", &long[..len]);
        let dump = format!("USE `shop`;\n{}{}{}{}", of("notes"), of("orders"), of("notes"), of("orders"));
        let rows = cut(&dump, 100).unwrap();
        let wanted = format!("shop.orders {}", of("orders").trim_end());
        assert_eq!(rows, [wanted.clone(), wanted], "{len}");
    }
}

#[test]
fn a_statement_that_has_no_end_or_is_too_long_is_an_error() {
    let error = cut("USE `shop`;\nINSERT INTO `orders` VALUES (1", 100).unwrap_err();
    assert!(error.to_string().contains("ends inside a statement"), "{error}");
    let long = format!("USE `shop`;\nINSERT INTO `orders` VALUES ('{}');\n", "x".repeat(2 << 20));
    let error = cut(&long, 100).unwrap_err();
    assert!(error.to_string().contains("max_allowed_packet"), "{error}");
}
