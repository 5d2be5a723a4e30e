//! The structs that become JSON, read from the sources: their fields, types and doc comments. Only as much of serde is
//! understood as they use; anything else is an error, so that the page cannot say something wrong.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Fields, Ident, Item, Lit, Meta, Token, Type};

/// What a value is in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A word for it: `number`, `text`.
    Leaf(&'static str),
    /// An object with the keys of this struct.
    Object(String),
    /// A list of these.
    List(Box<Shape>),
    /// Texts, and a value for each.
    Map(Box<Shape>),
    /// That, or null.
    OrNull(Box<Shape>),
}

/// A key of an object.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// As it stands in JSON.
    pub(crate) name: String,
    pub(crate) shape: Shape,
    /// The first paragraph of its doc comment, on one line.
    pub(crate) about: String,
    /// Whether it may be left out.
    pub(crate) may_be_absent: bool,
}

/// An object.
#[derive(Clone, Debug)]
pub(crate) struct Struct {
    /// The first paragraph of its doc comment, on one line.
    pub(crate) about: String,
    pub(crate) fields: Vec<Field>,
}

/// The objects by the names of their structs, or why one is not understood; of an enum with a tag, by the name of the enum,
/// with the keys of every variant.
#[derive(Debug, Default)]
pub(crate) struct Structs(BTreeMap<String, Result<Struct, String>>, BTreeMap<String, Vec<String>>);

impl Structs {
    /// The object of the struct `name`.
    pub(crate) fn get(&self, name: &str) -> anyhow::Result<&Struct> {
        match self.0.get(name) {
            Some(Ok(found)) => Ok(found),
            Some(Err(why)) => bail!("{name}: {why}"),
            None => bail!("{name} is not known"),
        }
    }

    /// The words that the enum `name` may be, where each of its variants is one.
    pub(crate) fn words(&self, name: &str) -> Option<&[String]> {
        self.1.get(name).map(Vec::as_slice)
    }

    /// Reads all Rust files of `folder`.
    pub(crate) fn add_folder(&mut self, folder: &Path) -> anyhow::Result<()> {
        let entries =
            std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                self.add_folder(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                self.add_file(&path)?;
            }
        }
        Ok(())
    }

    /// Reads one Rust file.
    pub(crate) fn add_file(&mut self, path: &Path) -> anyhow::Result<()> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        self.add(&text).with_context(|| format!("in {}", path.display()))
    }

    /// Reads the text of a Rust file.
    pub(crate) fn add(&mut self, text: &str) -> anyhow::Result<()> {
        for item in syn::parse_file(text)?.items {
            match item {
                Item::Struct(item) if is_serialized(&item.attrs) => {
                    let read = object(&item).map_err(|error| format!("{error:#}"));
                    self.0.insert(item.ident.to_string(), read);
                }
                Item::Enum(item) if is_serialized(&item.attrs) && is_words(&item) => {
                    let words = item
                        .variants
                        .iter()
                        .map(|variant| kebab(&variant.ident.to_string()).replace('-', "_"));
                    self.1.insert(item.ident.to_string(), words.collect());
                }
                Item::Enum(item) if is_serialized(&item.attrs) => {
                    let read = tagged(&item).map_err(|error| format!("{error:#}"));
                    self.0.insert(item.ident.to_string(), read);
                }
                // The one macro that makes such a struct.
                Item::Macro(item) if item.ident.is_none() && item.mac.path.is_ident("counters") => {
                    let Counters(fields) = item.mac.parse_body()?;
                    let about = "Counts since the start of the daemon.".to_owned();
                    self.0.insert("CounterValues".to_owned(), Ok(Struct { about, fields }));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn is_serialized(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("derive")
            && attribute
                .parse_args_with(Punctuated::<syn::Path, Token![,]>::parse_terminated)
                .is_ok_and(|derived| derived.iter().any(|path| path.is_ident("Serialize")))
    })
}

/// What stands in `#[serde(…)]`: each word with its value. Others than those that are `known` are an error.
fn serde_words(attributes: &[Attribute], known: &[&str]) -> anyhow::Result<Vec<(String, Option<String>)>> {
    let mut words = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        for meta in attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)? {
            let word = meta.path().get_ident().context("a path in #[serde]")?.to_string();
            ensure!(known.contains(&word.as_str()), "serde({word}) is not understood here");
            let value = match &meta {
                Meta::NameValue(pair) => Some(literal(&pair.value).context("no text in #[serde]")?),
                _ => None,
            };
            words.push((word, value));
        }
    }
    Ok(words)
}

fn literal(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// The first paragraph of a doc comment, on one line. A name of Rust in it would mean nothing to the reader of the page.
fn doc(attributes: &[Attribute]) -> anyhow::Result<String> {
    let lines =
        attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).filter_map(|attribute| {
            match &attribute.meta {
                Meta::NameValue(pair) => literal(&pair.value),
                _ => None,
            }
        });
    let first = lines.map(|line| line.trim().to_owned()).take_while(|line| !line.is_empty());
    let text = first.collect::<Vec<_>>().join(" ");
    ensure!(!text.contains("[`"), "{text:?} names something of Rust: write what it means");
    Ok(text.trim().to_owned())
}

/// A struct with names of fields.
fn object(item: &syn::ItemStruct) -> anyhow::Result<Struct> {
    serde_words(&item.attrs, &["default"])?;
    let Fields::Named(fields) = &item.fields else { bail!("its fields have no names") };
    let is_written =
        |field: &&syn::Field| serde_words(&field.attrs, &["skip"]).map_or(true, |words| words.is_empty());
    let fields = fields.named.iter().filter(is_written).map(field).collect::<anyhow::Result<_>>()?;
    Ok(Struct { about: doc(&item.attrs)?, fields })
}

fn field(field: &syn::Field) -> anyhow::Result<Field> {
    let name = field.ident.as_ref().context("a field without a name")?.to_string();
    let read = || {
        let words = serde_words(&field.attrs, &["default", "with", "skip_serializing_if"])?;
        let is = |word: &str, value: &str| {
            words.iter().any(|(one, of)| one == word && of.as_deref() == Some(value))
        };
        let shape = if is("with", "place") {
            Shape::OrNull(Box::new(Shape::Leaf("position")))
        } else {
            ensure!(!words.iter().any(|(word, _)| word == "with"), "serde(with) is not understood here");
            shape(&field.ty)?
        };
        let may_be_absent = is("skip_serializing_if", "Option::is_none");
        let about = doc(&field.attrs)?;
        ensure!(!about.is_empty(), "it has no doc comment");
        Ok(Field { name: name.clone(), shape, about, may_be_absent })
    };
    read().with_context(|| format!("the field {name}"))
}

fn shape(of: &Type) -> anyhow::Result<Shape> {
    let path = match of {
        Type::Path(path) => path.path.segments.last().context("a type without a name")?,
        Type::Reference(reference) => return shape(&reference.elem),
        Type::Slice(slice) => return Ok(Shape::List(Box::new(shape(&slice.elem)?))),
        _ => bail!("a type that is no name"),
    };
    let inner = |at: usize| -> anyhow::Result<Box<Shape>> {
        let syn::PathArguments::AngleBracketed(arguments) = &path.arguments else { bail!("no type inside") };
        match arguments.args.iter().nth(at) {
            Some(syn::GenericArgument::Type(inner)) => Ok(Box::new(shape(inner)?)),
            _ => bail!("no type inside"),
        }
    };
    Ok(match path.ident.to_string().as_str() {
        "bool" => Shape::Leaf("true, false"),
        "u8" | "u16" | "u32" | "u64" | "usize" | "f64" => Shape::Leaf("number"),
        // That of a newer binlogd is any text.
        "String" | "str" | "StateName" => Shape::Leaf("text"),
        "Timestamp" => Shape::Leaf("time"),
        "Arc" => *inner(0)?,
        "Option" => Shape::OrNull(inner(0)?),
        "Vec" => Shape::List(inner(0)?),
        "BTreeMap" => Shape::Map(inner(1)?),
        other => Shape::Object(other.to_owned()),
    })
}

/// Whether each variant is a word in lower case, and nothing else. A variant of one word is the same in both cases.
fn is_words(item: &syn::ItemEnum) -> bool {
    let words = serde_words(&item.attrs, &["rename_all"]).unwrap_or_default();
    let is_known = |value: Option<&str>| matches!(value, Some("lowercase" | "snake_case"));
    words.iter().any(|(_, value)| is_known(value.as_deref()))
        && item.variants.iter().all(|variant| variant.fields.is_empty() && variant.discriminant.is_none())
}

/// An enum with a tag: the tag, and the keys of all variants, each saying when it is there.
fn tagged(item: &syn::ItemEnum) -> anyhow::Result<Struct> {
    let words = serde_words(&item.attrs, &["tag", "rename_all"])?;
    let value = |word: &str| words.iter().find(|(one, _)| one == word).and_then(|(_, value)| value.clone());
    let Some(tag) = value("tag") else { bail!("an enum without a tag is not understood") };
    ensure!(value("rename_all").as_deref() == Some("kebab-case"), "only kebab-case is understood");
    let (mut about, mut fields) = (Vec::new(), Vec::new());
    for variant in &item.variants {
        let word = kebab(&variant.ident.to_string());
        let meaning = doc(&variant.attrs)?;
        about.push(format!("`{word}`: {}", meaning.trim_end_matches('.')));
        for inner in &variant.fields {
            let inner = field(inner)?;
            let about = format!("Of `{word}`: {}", inner.about);
            fields.push(Field { about, may_be_absent: true, ..inner });
        }
    }
    let about = about.join("; ");
    fields.insert(0, Field { name: tag, shape: Shape::Leaf("text"), about, may_be_absent: false });
    Ok(Struct { about: doc(&item.attrs)?, fields })
}

/// `AfterBoundary` as `after-boundary`.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(c.to_lowercase());
    }
    text
}

/// What stands in `counters! { … }`: names with their doc comments.
struct Counters(Vec<Field>);

impl Parse for Counters {
    fn parse(input: ParseStream<'_>) -> syn::Result<Counters> {
        let mut fields = Vec::new();
        while !input.is_empty() {
            let attributes = input.call(Attribute::parse_outer)?;
            let name: Ident = input.parse()?;
            input.parse::<Token![,]>()?;
            let about = doc(&attributes).map_err(|error| syn::Error::new(name.span(), error))?;
            let (name, shape) = (name.to_string(), Shape::Leaf("number"));
            fields.push(Field { name, shape, about, may_be_absent: false });
        }
        Ok(Counters(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Structs> {
        let mut structs = Structs::default();
        structs.add(text)?;
        Ok(structs)
    }

    #[test]
    fn structs_enums_and_counters_are_read() {
        let structs = read(
            "/// All.\n#[derive(Debug, Serialize)]\n#[serde(default)]\nstruct All {\n\
             /// Where.\n#[serde(with = \"place\")]\nat: Option<Position>,\n/// Which.\n pub(crate) names: Vec<Name>,\n}\n\
             /// An end.\n#[derive(Serialize)]\n#[serde(tag = \"kind\", rename_all = \"kebab-case\")]\n\
             enum End {\n/// Cut.\nCutOff {\n/// How much.\nbytes: u64 },\n/// None.\nNone,\n}\n\
             counters! {\n/// Events.\nevents,\n}\nstruct Other(u64);",
        )
        .unwrap();
        let all = structs.get("All").unwrap();
        assert_eq!((all.about.as_str(), all.fields.len()), ("All.", 2));
        assert_eq!(all.fields[0].shape, Shape::OrNull(Box::new(Shape::Leaf("position"))));
        assert_eq!(all.fields[1].shape, Shape::List(Box::new(Shape::Object("Name".to_owned()))));
        let end = &structs.get("End").unwrap().fields;
        assert_eq!(end[0].about, "`cut-off`: Cut; `none`: None");
        assert!(end[1].may_be_absent && end[1].about == "Of `cut-off`: How much.");
        assert_eq!(structs.get("CounterValues").unwrap().fields[0].name, "events");
        assert!(structs.get("Other").is_err());
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for text in [
            "/// A.\n#[derive(Serialize)]\nstruct A { nothing_said: u64 }",
            "/// A.\n#[derive(Serialize)]\nstruct A {\n/// B.\n#[serde(rename = \"c\")]\nb: u64 }",
            "/// A.\n#[derive(Serialize)]\nstruct A {\n/// B.\n#[serde(flatten)]\nb: B }",
            "/// A.\n#[derive(Serialize)]\nstruct A {\n/// As [`B`].\nb: u64 }",
            "/// A.\n#[derive(Serialize)]\nenum A {\n/// B.\nB }",
            "/// A.\n#[derive(Serialize)]\nstruct A(u64);",
        ] {
            assert!(read(text).unwrap().get("A").is_err(), "{text}");
        }
    }
}
