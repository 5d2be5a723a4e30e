//! From the text of a configuration file to a [`Document`]: TOML, sections and names of keys.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Findings, Place, Problem};
use super::given::{Document, Item, Table, Value};
use super::key::Section;
use super::keys::{KEYS, keys_of};
use super::password;

/// Largest configuration file that is read, in bytes. A real one has some thousand.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The text of a configuration file.
pub(crate) fn read(path: &Path) -> Result<String, Problem> {
    password::read_bounded(path, FILE_BYTES_MAX).map_err(|problem| Problem {
        place: Place::WholeFile(path.to_owned()),
        text: format!("the configuration file {problem}"),
    })
}

/// Parses `text`; `path` is the file's name for messages and for relative paths inside it.
///
/// Notes every syntax error; only where there is none are the sections and names of keys judged, because a line that
/// the parser had to skip would otherwise be reported a second time as a missing key.
pub(crate) fn parse(text: &str, path: &Path, findings: &mut Findings) -> Option<Document> {
    let parser = Parser { text, path };
    parser.root(findings).map(|table| parser.document(&table, findings))
}

/// The accounts of a file that another one includes.
pub(crate) struct Included {
    /// Each `[[serve.user]]`.
    pub(crate) serve_users: Vec<Table>,
    /// Each `[[source]]`.
    pub(crate) sources: Vec<Table>,
}

/// As [`parse`], of a file that `main` includes. Everything but sources and readers is refused: what holds for all stands in
/// one place.
pub(crate) fn parse_included(
    text: &str,
    path: &Path,
    main: &Path,
    findings: &mut Findings,
) -> Option<Included> {
    let parser = Parser { text, path };
    parser.root(findings).map(|table| parser.included(&table, main, findings))
}

struct Parser<'a> {
    text: &'a str,
    path: &'a Path,
}

impl<'a> Parser<'a> {
    /// `None` after a syntax error.
    fn root(&self, findings: &mut Findings) -> Option<Spanned<DeTable<'a>>> {
        let (table, syntax_errors) = DeTable::parse_recoverable(self.text);
        for error in &syntax_errors {
            let place = self.place(error.span().map_or(0, |span| span.start));
            // The message alone: the error's own Display quotes the line, which may hold a password.
            findings.error(&place, format!("not valid TOML: {}", error.message().replace('\n', ", ")));
        }
        syntax_errors.is_empty().then_some(table)
    }

    fn included(&self, table: &Spanned<DeTable<'_>>, main: &Path, findings: &mut Findings) -> Included {
        let mut included = Included { serve_users: Vec::new(), sources: Vec::new() };
        for (name, value) in table.get_ref() {
            let place = self.place(name.span().start);
            match (name.get_ref().as_ref(), value.get_ref()) {
                ("source", tables) => {
                    included.sources = self.tables(Section::Source, place, tables, findings);
                }
                ("serve", DeValue::Table(table)) => {
                    for (name, value) in table {
                        let place = self.place(name.span().start);
                        if name.get_ref() == "user" {
                            included.serve_users =
                                self.tables(Section::ServeUser, place, value.get_ref(), findings);
                        } else {
                            findings.error(&place, not_here(&format!("{} of [serve]", name.get_ref()), main));
                        }
                    }
                }
                ("include", _) => findings.error(
                    &place,
                    format!("an included file cannot include others: name them in {}", main.display()),
                ),
                (name, _) => findings.error(&place, not_here(name, main)),
            }
        }
        included
    }

    fn document(&self, table: &Spanned<DeTable<'_>>, findings: &mut Findings) -> Document {
        let top = Place::WholeFile(self.path.to_owned());
        let empty = Table { place: top.clone(), items: BTreeMap::new() };
        let mut document = Document {
            root: empty.clone(),
            admin: empty.clone(),
            admin_users: Vec::new(),
            log: empty.clone(),
            serve: empty.clone(),
            serve_users: Vec::new(),
            retention: empty.clone(),
            archive: empty,
            sources: Vec::new(),
        };
        let mut root = DeTable::new();
        for (name, value) in table.get_ref() {
            let place = self.place(name.span().start);
            match (name.get_ref().as_ref(), value.get_ref()) {
                ("admin", DeValue::Table(table)) => {
                    let (keys, users) = self.split_users(Section::AdminUser, table, findings);
                    document.admin = self.table(Section::Admin, place, &keys, findings);
                    document.admin_users = users;
                }
                ("log", DeValue::Table(table)) => {
                    document.log = self.table(Section::Log, place, table, findings)
                }
                ("serve", DeValue::Table(table)) => {
                    let (keys, users) = self.split_users(Section::ServeUser, table, findings);
                    document.serve_users = users;
                    document.serve = self.table(Section::Serve, place, &keys, findings);
                }
                ("retention", DeValue::Table(table)) => {
                    document.retention = self.table(Section::Retention, place, table, findings);
                }
                ("archive", DeValue::Table(table)) => {
                    document.archive = self.table(Section::Archive, place, table, findings);
                }
                ("source", tables @ (DeValue::Array(_) | DeValue::Table(_))) => {
                    document.sources = self.tables(Section::Source, place, tables, findings);
                }
                (section @ ("admin" | "log" | "serve" | "retention" | "archive" | "source"), other) => {
                    let written = if section == "source" { "[[source]]" } else { &format!("[{section}]") };
                    findings
                        .error(&place, format!("{section} is a {}: write it as {written}", type_name(other)));
                }
                _ => {
                    root.insert(name.clone(), value.clone());
                }
            }
        }
        document.root = self.table(Section::Root, top, &root, findings);
        document
    }

    /// The keys of a section, and the tables of its users.
    fn split_users<'i>(
        &self,
        users: Section,
        table: &DeTable<'i>,
        findings: &mut Findings,
    ) -> (DeTable<'i>, Vec<Table>) {
        let (mut keys, mut tables) = (DeTable::new(), Vec::new());
        for (name, value) in table {
            if name.get_ref() == "user" {
                tables = self.tables(users, self.place(name.span().start), value.get_ref(), findings);
            } else {
                keys.insert(name.clone(), value.clone());
            }
        }
        (keys, tables)
    }

    /// The tables of a section of which there may be several.
    fn tables(
        &self,
        section: Section,
        place: Place,
        value: &DeValue<'_>,
        findings: &mut Findings,
    ) -> Vec<Table> {
        let title = section.title();
        let array = match value {
            DeValue::Array(array) => array,
            DeValue::Table(table) => {
                findings.error(
                    &place,
                    format!("write {title}, with two brackets on each side: there may be several"),
                );
                return vec![self.table(section, place, table, findings)];
            }
            other => {
                findings.error(&place, format!("a {} stands here: write it as {title}", type_name(other)));
                return Vec::new();
            }
        };
        let mut tables = Vec::new();
        for element in array.iter() {
            let place = self.place(element.span().start);
            match element.get_ref() {
                DeValue::Table(table) => tables.push(self.table(section, place, table, findings)),
                other => findings.error(
                    &place,
                    format!("a {} stands in the list: write each as a {title} table", type_name(other)),
                ),
            }
        }
        tables
    }

    fn table(&self, section: Section, place: Place, table: &DeTable<'_>, findings: &mut Findings) -> Table {
        let mut items = BTreeMap::new();
        for (name, value) in table {
            match keys_of(section).find(|key| key.name == name.get_ref().as_ref()) {
                Some(key) => {
                    items.insert(key.name, self.item(value));
                }
                None => findings.error(
                    &self.place(name.span().start),
                    unknown_key(section, name.get_ref(), value.get_ref()),
                ),
            }
        }
        Table { place, items }
    }

    fn item(&self, value: &Spanned<DeValue<'_>>) -> Item {
        let place = self.place(value.span().start);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
                Ok(value) => Value::Integer(value.to_string()),
                Err(_) => Value::Integer(number.to_string()),
            },
            DeValue::Boolean(boolean) => Value::Boolean(*boolean),
            DeValue::Array(array) => Value::List(array.iter().map(|element| self.item(element)).collect()),
            other => Value::Other(type_name(other)),
        };
        Item { value, place }
    }

    /// The line and column of a byte of the text.
    fn place(&self, offset: usize) -> Place {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        Place::File {
            path: self.path.to_owned(),
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: String::from_utf8_lossy(&before[line_start..]).chars().count() + 1,
        }
    }
}

fn not_here(name: &str, main: &Path) -> String {
    format!(
        "an included file holds [[source]] and [[serve.user]] tables only: {name} belongs in {}, if anywhere",
        main.display()
    )
}

/// TOML's name for a value's type.
fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "string",
        DeValue::Integer(_) => "whole number",
        DeValue::Float(_) => "float",
        DeValue::Boolean(_) => "boolean",
        DeValue::Datetime(_) => "datetime",
        DeValue::Array(_) => "list",
        DeValue::Table(_) => "table",
    }
}

/// The message for a name that `section` does not have. It never quotes the value: `passwrd` is a typing error too.
fn unknown_key(section: Section, name: &str, value: &DeValue<'_>) -> String {
    let elsewhere = KEYS.iter().find(|key| key.name == name && key.section != section);
    let hint = if section == Section::Root && matches!(value, DeValue::Table(_) | DeValue::Array(_)) {
        closest(name, ["admin", "log", "serve", "retention", "archive", "source"]).map(|table| match table {
            "source" => "did you mean [[source]]? ".to_owned(),
            table => format!("did you mean [{table}]? "),
        })
    } else {
        None
    };
    let hint = hint
        .or_else(|| {
            closest(name, keys_of(section).map(|key| key.name)).map(|key| format!("did you mean {key}? "))
        })
        .or_else(|| elsewhere.map(|key| format!("it belongs to {}. ", key.section.title())))
        .unwrap_or_default();
    let mut allowed: Vec<&str> = keys_of(section).map(|key| key.name).collect();
    if section == Section::Root {
        allowed.extend(["[admin]", "[log]", "[serve]", "[retention]", "[archive]", "[[source]]"]);
    }
    match section {
        Section::Serve => allowed.push("[[serve.user]]"),
        Section::Admin => allowed.push("[[admin.user]]"),
        _ => {}
    }
    format!("unknown key {name} in {}: {hint}Allowed: {}", section.title(), allowed.join(", "))
}

/// The candidate that `name` most likely means, if any is near.
pub(crate) fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let simple = name.to_lowercase().replace(['-', ' '], "_");
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&simple, candidate), candidate))
        .filter(|(similarity, _)| *similarity > 0.86)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The item of a default, which is TOML from the table of keys.
pub(crate) fn default_item(toml: &'static str) -> Item {
    // Every default is parsed by a test, so that a failure here is our own mistake.
    let value = DeValue::parse(toml).expect("a default is valid TOML");
    let parser = Parser { text: toml, path: Path::new("") };
    Item { place: Place::Default, ..parser.item(&value) }
}
