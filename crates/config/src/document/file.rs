//! From the text of a configuration file to a [`Document`]: TOML, sections and names of keys.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::error::{Findings, Place, Problem};
use super::super::key::Section;
use super::super::tables::{all_keys, keys_of, password};
use super::text::{Text, type_name};
use super::{Document, Table};

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
    let parser = Text { text, path };
    let table = parser.root(findings)?;
    let mut document = Document::new(Place::WholeFile(path.to_owned()));
    parser.table(Section::Root, document.place.clone(), table.get_ref(), &mut document, findings);
    Some(document)
}

/// As [`parse`], of a file that `main` includes: adds to `document`. Everything but sources and readers is refused: what holds
/// for all stands in one place.
pub(super) fn parse_included(
    text: &str,
    path: &Path,
    main: &Path,
    document: &mut Document,
    findings: &mut Findings,
) -> Option<()> {
    let parser = Text { text, path };
    parser.root(findings).map(|table| parser.included(&table, main, document, findings))
}

impl<'a> Text<'a> {
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

    fn included(
        &self,
        table: &Spanned<DeTable<'_>>,
        main: &Path,
        document: &mut Document,
        findings: &mut Findings,
    ) {
        for (name, value) in table.get_ref() {
            let place = self.place(name.span().start);
            match (name.get_ref().as_ref(), value.get_ref()) {
                ("source", tables) => self.tables(Section::Source, place, tables, document, findings),
                ("serve", DeValue::Table(table)) => {
                    for (name, value) in table {
                        let place = self.place(name.span().start);
                        if name.get_ref() == "user" {
                            self.tables(Section::ServeUser, place, value.get_ref(), document, findings);
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
    }

    /// Adds a table and those inside.
    fn table(
        &self,
        section: Section,
        place: Place,
        table: &DeTable<'_>,
        document: &mut Document,
        findings: &mut Findings,
    ) {
        let mut items = BTreeMap::new();
        for (name, value) in table {
            let place = self.place(name.span().start);
            let name = name.get_ref().as_ref();
            if let Some(inner) = section.inside().find(|inner| inner.name() == name) {
                self.tables(inner, place, value.get_ref(), document, findings);
            } else if let Some(key) = keys_of(section).iter().find(|key| key.name == name) {
                items.insert(key.name, self.item(value));
            } else {
                findings.error(&place, unknown_key(section, name, value.get_ref()));
            }
        }
        document.tables.push(Table { section, place, items });
    }

    /// Adds what stands under the name of a section: a table, or the several that there may be.
    fn tables(
        &self,
        section: Section,
        place: Place,
        value: &DeValue<'_>,
        document: &mut Document,
        findings: &mut Findings,
    ) {
        let title = section.title();
        match value {
            DeValue::Table(table) => {
                if section.is_repeated() {
                    findings.error(
                        &place,
                        format!("write {title}, with two brackets on each side: there may be several"),
                    );
                }
                self.table(section, place, table, document, findings);
            }
            DeValue::Array(array) if section.is_repeated() => {
                for element in array.iter() {
                    let place = self.place(element.span().start);
                    match element.get_ref() {
                        DeValue::Table(table) => self.table(section, place, table, document, findings),
                        other => findings.error(
                            &place,
                            format!(
                                "a {} stands in the list: write each as a {title} table",
                                type_name(other)
                            ),
                        ),
                    }
                }
            }
            other => findings
                .error(&place, format!("{} is a {}: write it as {title}", section.name(), type_name(other))),
        }
    }
}

fn not_here(name: &str, main: &Path) -> String {
    format!(
        "an included file holds [[source]] and [[serve.user]] tables only: {name} belongs in {}, if anywhere",
        main.display()
    )
}

/// The message for a name that `section` does not have. It never quotes the value: `passwrd` is a typing error too.
fn unknown_key(section: Section, name: &str, value: &DeValue<'_>) -> String {
    let keys = || keys_of(section).iter().map(|key| key.name);
    let is_table = matches!(value, DeValue::Table(_) | DeValue::Array(_));
    let near_table = closest(name, section.inside().filter(|_| is_table).map(Section::name))
        .and_then(|near| section.inside().find(|inner| inner.name() == near))
        .map(Section::title);
    let elsewhere = all_keys().find(|key| key.name == name && key.section != section);
    let hint = near_table
        .or_else(|| closest(name, keys()))
        .map(|near| format!("did you mean {near}? "))
        .or_else(|| elsewhere.map(|key| format!("it belongs to {}. ", key.section.title())))
        .unwrap_or_default();
    let allowed: Vec<&str> = keys().chain(section.inside().map(Section::title)).collect();
    format!("unknown key {name} in {}: {hint}Allowed: {}", section.title(), allowed.join(", "))
}

/// The candidate that `name` most likely means, if any is near.
fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let simple = name.to_lowercase().replace(['-', ' '], "_");
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&simple, candidate), candidate))
        .filter(|(similarity, _)| *similarity > 0.86)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
