//! What a definition (DDL) does to the rows of one table.

use points::statement::first_words;
use points::statement::redefined::redefined;
use points::statement::whole::words;
use points::table::TableName;

/// See [the module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Nothing,
    /// It has no row behind it.
    Emptied,
    /// It had another name, or got one.
    Moved { from: Option<TableName>, to: Option<TableName> },
    /// Its columns may be others.
    Altered,
    /// Its rows may be others, which the log does not have.
    Unseen,
    /// It is no definition.
    NoDefinition,
}

/// What a statement with that default schema does to the table.
pub(crate) fn effect(text: &str, schema: &str, table: &TableName) -> Effect {
    let effect = effect_by_name(text, schema, table);
    let Some(found) = redefined(text.as_bytes(), schema.as_bytes()) else { return effect };
    let is_unreadable =
        found.tables.is_empty() || found.tables.iter().any(|name| name.table.contains('\u{fffd}'));
    let verb = first_words(text.as_bytes(), 1).pop().unwrap_or_default();
    if is_unreadable && (verb == "TRUNCATE" || verb == "ALTER" && moves_rows(&text.to_lowercase())) {
        return Effect::Unseen;
    }
    // With lower_case_table_names other letters are the same table, and the log does not tell.
    let near = found.tables.into_iter().filter(|name| is_near(name, table)).map(|name| TableName {
        table: if name.table.is_empty() { table.table.clone() } else { name.table },
        schema: name.schema,
    });
    let does = |near: &TableName| {
        text.to_lowercase().contains("references")
            || !matches!(effect_by_name(text, schema, near), Effect::Nothing | Effect::NoDefinition)
    };
    if near.filter(|near| near != table).any(|near| does(&near)) { Effect::Unseen } else { effect }
}

/// Whether only the case of letters parts two names; one without a table stands for all of its schema.
pub(crate) fn is_near(one: &TableName, other: &TableName) -> bool {
    one.schema.eq_ignore_ascii_case(&other.schema)
        && (one.table.is_empty() || one.table.eq_ignore_ascii_case(&other.table))
}

fn effect_by_name(text: &str, schema: &str, table: &TableName) -> Effect {
    let words = first_words(text.as_bytes(), 2);
    let verb = words.first().map_or("", String::as_str);
    let lower = text.to_lowercase();
    let has = |all: &[&str]| all.iter().any(|word| lower.contains(word));
    let Some(found) = redefined(text.as_bytes(), schema.as_bytes()) else {
        // TEMPORARY tables have no rows in the log.
        return if matches!(verb, "CREATE" | "DROP") { Effect::Nothing } else { Effect::NoDefinition };
    };
    let is_own = |name: &TableName| {
        name.schema == table.schema && (name.table == table.table || name.table.is_empty())
    };
    let is_about = found.tables.iter().any(is_own);
    // EXCHANGE names its second table far behind.
    let is_exchanged =
        has(&["exchange"]) && has(&["partition"]) && lower.contains(&table.table.to_lowercase());
    if !is_about && !found.may_be_any && !is_exchanged {
        return Effect::Nothing;
    }
    match verb {
        "TRUNCATE" => Effect::Emptied,
        _ if found.may_be_any => Effect::Unseen,
        "ALTER" if is_exchanged || moves_rows(&lower) => Effect::Unseen,
        _ if !found.moved.is_empty() => match moved(&found.moved, table) {
            // Its name is the same behind it.
            Effect::Moved { from: None, to: None } if verb == "ALTER" => Effect::Altered,
            Effect::Moved { from: None, to: None } => Effect::Nothing,
            // IF EXISTS: perhaps that was not there, and the one that had the name is.
            Effect::Moved { from: Some(_), .. } if has(&["exists"]) => Effect::Unseen,
            moved => moved,
        },
        // OR REPLACE and IF NOT EXISTS are filled, too. A trigger of the table is not.
        "CREATE" if is_of_table(text) && is_filled(text, &lower) => Effect::Unseen,
        _ if found.is_drop => Effect::Emptied,
        "CREATE" if found.is_of_columns && is_filled(text, &lower) => Effect::Unseen,
        "CREATE" if found.is_of_columns => Effect::Emptied,
        // A new schema has no table.
        "CREATE"
            if found.tables.iter().any(|name| is_own(name) && name.table.is_empty()) && !has(&["exists"]) =>
        {
            Effect::Emptied
        }
        "ALTER" if found.is_of_columns => Effect::Altered,
        _ => Effect::Nothing,
    }
}

/// Whether an ALTER may change rows otherwise than by its columns.
fn moves_rows(lower: &str) -> bool {
    let has = |all: &[&str]| all.iter().any(|word| lower.contains(word));
    has(&["partition"]) && has(&["truncate", "drop", "exchange", "convert", "discard", "import"])
        || has(&["tablespace"]) && has(&["discard", "import"])
        || has(&["ignore"])
}

/// CREATE [OR REPLACE] TABLE.
fn is_of_table(text: &str) -> bool {
    let words = first_words(text.as_bytes(), 4);
    let at = if words.get(1).is_some_and(|word| word == "OR") { 3 } else { 1 };
    words.get(at).is_some_and(|word| word == "TABLE")
}

/// Whether a new table gets rows that the log does not have: of a query that stands in the statement. In doubt it does.
fn is_filled(text: &str, lower: &str) -> bool {
    // Where a text ends depends on the sql_mode of the session.
    let has_doubtful_texts = text.contains(['"', '\\']);
    let Ok(words) = words(text, 0) else { return true };
    let count = |word: &str| words.iter().filter(|one| one.is(word)).count();
    let has_rows = words.windows(2).any(|two| two[0].is("VALUES") && two[1].is("ROW"));
    count("SELECT") > 0 || count("TABLE") > 1 || has_rows || has_doubtful_texts && lower.contains("select")
}

/// RENAME a TO b, c TO a: one after another.
fn moved(moves: &[(TableName, TableName)], table: &TableName) -> Effect {
    let (mut from, mut to) = (table.clone(), table.clone());
    for (before, behind) in moves {
        if *before == to {
            to = behind.clone();
        }
    }
    for (before, behind) in moves.iter().rev() {
        if *behind == from {
            from = before.clone();
        }
    }
    let other = |name: TableName| (name != *table).then_some(name);
    Effect::Moved { from: other(from), to: other(to) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &str) -> TableName {
        TableName { schema: "shop".to_owned(), table: table.to_owned() }
    }

    #[test]
    fn what_a_definition_does_to_rows_is_told() {
        let moved =
            |from: Option<&str>, to: Option<&str>| Effect::Moved { from: from.map(name), to: to.map(name) };
        for (text, wanted) in [
            ("TRUNCATE TABLE orders", Effect::Emptied),
            ("truncate shop.orders", Effect::Emptied),
            ("DROP TABLE IF EXISTS `orders` /* generated by server */", Effect::Emptied),
            ("DROP DATABASE shop", Effect::Emptied),
            ("DROP DATABASE stock", Effect::Nothing),
            ("TRUNCATE TABLE Orders", Effect::Unseen),
            ("DROP DATABASE Shop", Effect::Unseen),
            ("RENAME TABLE orders TO Orders", Effect::Unseen),
            ("ALTER TABLE ORDERS ADD FOREIGN KEY (a) REFERENCES c (a) ON DELETE CASCADE", Effect::Unseen),
            ("CREATE INDEX i ON Orders (a)", Effect::Nothing),
            ("TRUNCATE TABLE `\u{fffd}`", Effect::Unseen),
            ("TRUNCATE TABLE others /* \u{fffd} */", Effect::Nothing),
            ("ALTER TABLE `\u{fffd}` TRUNCATE PARTITION p", Effect::Unseen),
            ("CREATE TABLE orders (id INT PRIMARY KEY)", Effect::Emptied),
            ("CREATE OR REPLACE TABLE orders (id INT PRIMARY KEY)", Effect::Emptied),
            ("CREATE TABLE IF NOT EXISTS orders (id INT PRIMARY KEY)", Effect::Nothing),
            ("CREATE TABLE orders (id INT) SELECT * FROM others", Effect::Unseen),
            ("CREATE TABLE orders TABLE others", Effect::Unseen),
            ("CREATE OR REPLACE TABLE orders AS SELECT * FROM others", Effect::Unseen),
            ("CREATE TABLE IF NOT EXISTS orders AS SELECT * FROM others", Effect::Unseen),
            (
                "CREATE TRIGGER r AFTER INSERT ON orders FOR EACH ROW INSERT INTO audit SELECT 1",
                Effect::Nothing,
            ),
            ("CREATE TABLE orders (id INT COMMENT 'select a table') START TRANSACTION", Effect::Emptied),
            ("CREATE DATABASE shop", Effect::Emptied),
            ("CREATE DATABASE IF NOT EXISTS shop", Effect::Nothing),
            ("CREATE DATABASE stock", Effect::Nothing),
            ("CREATE TEMPORARY TABLE orders (id INT)", Effect::Nothing),
            ("CREATE INDEX i ON orders (a)", Effect::Nothing),
            ("ALTER TABLE orders ADD INDEX (a)", Effect::Nothing),
            ("ALTER TABLE orders ADD c INT", Effect::Altered),
            ("ALTER TABLE others ADD c INT", Effect::Nothing),
            ("ALTER TABLE orders TRUNCATE PARTITION p", Effect::Unseen),
            ("ALTER TABLE orders EXCHANGE PARTITION p WITH TABLE t", Effect::Unseen),
            ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE orders", Effect::Unseen),
            ("ALTER TABLE orders IMPORT TABLESPACE", Effect::Unseen),
            (
                "RENAME TABLE orders TO orders_old, orders_new TO orders",
                moved(Some("orders_new"), Some("orders_old")),
            ),
            ("RENAME TABLE a TO b, orders TO c", moved(None, Some("c"))),
            ("ALTER TABLE x RENAME TO orders", moved(Some("x"), None)),
            ("ALTER TABLE orders RENAME TO orders", Effect::Altered),
            ("RENAME TABLE orders TO x, x TO orders", Effect::Nothing),
            ("RENAME TABLE IF EXISTS x TO orders", Effect::Unseen),
            ("RENAME TABLE IF EXISTS orders TO x", moved(None, Some("x"))),
            ("GRANT SELECT ON shop.orders TO u@h", Effect::Nothing),
            ("INSERT INTO orders VALUES (1)", Effect::NoDefinition),
        ] {
            assert_eq!(effect(text, "shop", &name("orders")), wanted, "{text}");
        }
    }
}
