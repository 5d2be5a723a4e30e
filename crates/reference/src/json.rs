//! The page of the JSON, read from the structs that become it and held against an answer of the program.

mod structs;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::markdown::{anchor, cell, code, head};
use structs::{Shape, Struct, Structs};

const ABOUT: &str = "\
The JSON of `/status` and `binlogd status --json`, of `/v1/quorum`, `/v1/durable` and `/v1/promote`, and of
`binlogd promote --json` and `binlogd verify --json`. Keys are added, none is renamed, removed or given another meaning. Times are RFC 3339 in UTC. A position is
`{\"file\": \"mysql-bin.000042\", \"position\": 5300}`, the end of what it speaks of. GTID sets are texts in the server's own notation, on one line. What is not known is null.
[Status, metrics, health](../status.md) says what the values mean together.";

/// The heading of an answer, the struct that becomes it, and what stands before the paths in its headings: two answers have a
/// list `sources`.
const ANSWERS: [(&str, &str, &str); 5] = [
    ("/status", "DaemonStatus", ""),
    ("GET /v1/quorum", "QuorumAnswer", "quorum: "),
    ("GET /v1/durable", "DurableAnswer", "durable: "),
    ("POST /v1/promote, binlogd promote --json", "PromoteAnswer", "promote: "),
    ("binlogd verify --json", "Report", "verify: "),
];

/// The text of the page, from the sources below `root`.
///
/// # Errors
///
/// A struct is not understood, or the program answers with a key that none of them has.
pub(crate) fn page(root: &Path) -> anyhow::Result<String> {
    let mut structs = Structs::default();
    structs.add_folder(&root.join("crates/status/src"))?;
    structs.add_file(&root.join("crates/setup/src/promote/answer.rs"))?;
    structs.add_file(&root.join("crates/binlogd/src/cli/verify/mod.rs"))?;
    structs.add_file(&root.join("crates/binlog/src/verify/report.rs"))?;
    let samples = [
        binlogd::reference::status(),
        binlogd::reference::quorum(),
        binlogd::reference::durable(),
        binlogd::reference::promote(),
    ];
    for ((title, name, _), sample) in ANSWERS.iter().zip(&samples) {
        check(&structs, &Shape::Object((*name).to_owned()), &serde_json::from_str(sample)?, title)?;
    }
    let mut page = Page { structs: &structs, text: head("JSON", ABOUT), shown: BTreeMap::new() };
    for (title, name, before) in ANSWERS {
        page.answer(title, name, before)?;
    }
    Ok(page.text)
}

/// Every key of an object that the program wrote must be one of its struct, and the other way round.
fn check(structs: &Structs, shape: &Shape, value: &Value, place: &str) -> anyhow::Result<()> {
    match (shape, value) {
        (Shape::OrNull(_), Value::Null) => Ok(()),
        (Shape::OrNull(inner), _) => check(structs, inner, value, place),
        (Shape::List(inner), Value::Array(items)) => {
            items.iter().try_for_each(|item| check(structs, inner, item, place))
        }
        (Shape::Map(inner), Value::Object(items)) => {
            items.values().try_for_each(|item| check(structs, inner, item, place))
        }
        (Shape::Object(name), Value::Object(keys)) => {
            let fields = &structs.get(name).with_context(|| place.to_owned())?.fields;
            let known: BTreeSet<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            let found: BTreeSet<&str> = keys.keys().map(String::as_str).collect();
            ensure!(known == found, "{place}: the program writes {found:?}, the struct {name} has {known:?}");
            fields.iter().try_for_each(|field| {
                check(structs, &field.shape, &keys[&field.name], &format!("{place}.{}", field.name))
            })
        }
        (Shape::Object(name), Value::String(word)) => {
            let words = structs.words(name).with_context(|| format!("{place}: {word} is no {name}"))?;
            ensure!(words.contains(word), "{place}: {word} is none of {words:?}");
            Ok(())
        }
        (Shape::Leaf("position"), Value::Object(keys)) => {
            ensure!(keys.keys().eq(["file", "position"]), "{place} is no position");
            Ok(())
        }
        (Shape::Leaf("number"), Value::Number(_))
        | (Shape::Leaf("text" | "time"), Value::String(_))
        | (Shape::Leaf("true, false"), Value::Bool(_)) => Ok(()),
        _ => anyhow::bail!("{place}: {value} is no {shape:?}"),
    }
}

struct Page<'a> {
    structs: &'a Structs,
    text: String,
    /// Heading under which a struct stands.
    shown: BTreeMap<String, String>,
}

impl Page<'_> {
    /// An answer, then the objects in it, in their order.
    fn answer(&mut self, title: &str, name: &str, before: &str) -> anyhow::Result<()> {
        self.shown.insert(name.to_owned(), title.to_owned());
        let mut waiting = vec![(title.to_owned(), String::new(), name.to_owned())];
        while !waiting.is_empty() {
            let (heading, path, name) = waiting.remove(0);
            let object = self.structs.get(&name)?;
            let mut inner = Vec::new();
            for field in &object.fields {
                let (object, list) = object_of(&field.shape);
                let Some(object) = object.filter(|name| self.structs.words(name).is_none()) else { continue };
                if !self.shown.contains_key(object) {
                    let path = format!("{path}{}{}", field.name, if list { "[]" } else { "" });
                    let heading = code(&format!("{before}{path}"));
                    let place = anchor(&heading);
                    let is_new = self.shown.values().all(|shown| anchor(shown) != place);
                    ensure!(is_new, "two objects would have the anchor {place}");
                    self.shown.insert(object.to_owned(), heading.clone());
                    inner.push((heading, format!("{path}."), object.to_owned()));
                }
            }
            waiting.splice(0..0, inner);
            let level = if path.is_empty() { "##" } else { "###" };
            self.object(level, &heading, object);
        }
        Ok(())
    }

    fn object(&mut self, level: &str, heading: &str, object: &Struct) {
        // Writing to a text does not fail, here and below.
        let _ = write!(
            self.text,
            "\n{level} {heading}\n\n{}\n\n| key | type | meaning |\n|---|---|---|\n",
            object.about
        );
        for field in &object.fields {
            let absent = if field.may_be_absent { ", or absent" } else { "" };
            let _ = writeln!(
                self.text,
                "| {} | {}{absent} | {} |",
                code(&field.name),
                self.kind(&field.shape),
                cell(&field.about)
            );
        }
    }

    /// The type in words, with a link to what is in an object.
    fn kind(&self, shape: &Shape) -> String {
        match shape {
            Shape::Leaf(word) => (*word).to_owned(),
            Shape::Object(name) => match self.structs.words(name) {
                Some(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
                None => format!("[object](#{})", anchor(&self.shown[name])),
            },
            Shape::List(inner) => format!("list: {}", self.kind(inner)),
            Shape::Map(inner) => format!("object: {} by name", self.kind(inner)),
            Shape::OrNull(inner) => format!("{} or null", self.kind(inner)),
        }
    }
}

/// The struct in a shape, and whether it stands in a list.
fn object_of(shape: &Shape) -> (Option<&str>, bool) {
    match shape {
        Shape::Leaf(_) => (None, false),
        Shape::Object(name) => (Some(name), false),
        Shape::List(inner) | Shape::Map(inner) => (object_of(inner).0, true),
        Shape::OrNull(inner) => object_of(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_is_explained_once() {
        let page = page(&crate::pages::root()).unwrap();
        for heading in
            ["## /status", "### `sources[].positions`", "### `serve.readers[]`", "## binlogd verify --json"]
        {
            assert_eq!(page.lines().filter(|line| *line == heading).count(), 1, "{heading} in\n{page}");
        }
        assert!(page.contains("| `received` | position or null |"), "{page}");
    }

    #[test]
    fn a_key_that_the_struct_lacks_is_found() {
        let mut structs = Structs::default();
        structs.add("/// A.\n#[derive(Serialize)]\nstruct A {\n/// B.\nb: Vec<u64> }").unwrap();
        let wrong = |json: &str| {
            check(&structs, &Shape::Object("A".to_owned()), &serde_json::from_str(json).unwrap(), "A")
                .is_err()
        };
        assert!(!wrong(r#"{"b": [1]}"#));
        for json in [r#"{"b": [1], "c": 1}"#, r#"{}"#, r#"{"b": ["1"]}"#, r#"{"b": 1}"#] {
            assert!(wrong(json), "{json}");
        }
    }
}
