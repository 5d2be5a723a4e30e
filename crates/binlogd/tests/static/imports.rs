//! What the sources of a crate name: read from the syntax, so that nested groups, other names and code in macros are
//! seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, UseTree};

/// A path of names. Paths of the crate itself begin with `crate`, all others with the name of another crate.
pub(crate) type Name = Vec<String>;

/// The product code of a crate's files; what is compiled for tests only is left out.
pub(crate) struct Sources {
    /// Modules that are files, by their path in the crate without `crate` (`lib.rs` has none, `main.rs` is `main`), and
    /// what each names.
    pub files: BTreeMap<Name, BTreeSet<Name>>,
}

/// Folder of all crates.
pub(crate) fn crates() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// All files in a folder and those in it.
pub(crate) fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// All Rust files in a folder and those in it.
pub(crate) fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut all = Vec::new();
    files(folder, &mut all);
    found.extend(all.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")));
}

impl Sources {
    /// Reads `crates/<folder>/src`; `library` is the name by which `main.rs` calls the crate.
    pub(crate) fn read(folder: &str, library: &str) -> Sources {
        let root = crates().join(folder).join("src");
        let mut paths = Vec::new();
        rust_files(&root, &mut paths);
        let of_file = |path: PathBuf| {
            let name = module_of(path.strip_prefix(&root).unwrap());
            (name, std::fs::read_to_string(&path).unwrap())
        };
        Sources::of(paths.into_iter().map(of_file).collect(), library)
    }

    /// As [`Sources::read`], of the texts of modules.
    pub(crate) fn of(texts: BTreeMap<Name, String>, library: &str) -> Sources {
        let modules: BTreeSet<Name> = texts.keys().cloned().collect();
        let (mut files, mut tests) = (BTreeMap::new(), Vec::new());
        for (module, text) in texts {
            let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{module:?}: {error}"));
            let (named, imported) = (BTreeSet::new(), BTreeMap::new());
            let mut reader = Reader {
                library,
                modules: &modules,
                module: module.clone(),
                named,
                imported,
                tests: &mut tests,
            };
            reader.visit_file(&file);
            let named = reader.named;
            files.insert(module, named);
        }
        files.retain(|module: &Name, _| !tests.iter().any(|test| module.starts_with(test)));
        Sources { files }
    }

    /// The files of this crate that each file names.
    pub(crate) fn edges(&self) -> BTreeMap<Name, BTreeSet<Name>> {
        let file_of = |name: &Name| {
            let path = name.strip_prefix(&["crate".to_owned()])?;
            (0..=path.len())
                .rev()
                .map(|len| path[..len].to_vec())
                .find(|module| self.files.contains_key(module))
        };
        let others = |(module, named): (&Name, &BTreeSet<Name>)| {
            (module.clone(), named.iter().filter_map(file_of).filter(|other| other != module).collect())
        };
        self.files.iter().map(others).collect()
    }
}

/// The module that a file is, by its path within `src`.
fn module_of(path: &Path) -> Name {
    let mut name: Name =
        path.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if name.last().is_some_and(|last| last == "mod") || name == ["lib"] {
        name.pop();
    }
    name
}

/// Collects the names in one file.
struct Reader<'a> {
    library: &'a str,
    modules: &'a BTreeSet<Name>,
    /// Where the reader is; within a `mod {}` that has its name too.
    module: Name,
    named: BTreeSet<Name>,
    /// What a name stands for that a `use` has brought into the file, which may be that of a crate too.
    imported: BTreeMap<String, Name>,
    /// Modules of other files that are compiled for tests only.
    tests: &'a mut Vec<Name>,
}

impl Reader<'_> {
    /// Notes a path as it stands in the code, and gives it as it is from everywhere.
    fn name(&mut self, is_absolute: bool, path: &[String]) -> Name {
        let Some(first) = path.first() else { return Name::new() };
        let child = || [&self.module[..], &path[..1]].concat();
        let mut base = self.module.clone();
        let mut rest = path;
        let is_inside = match first.as_str() {
            _ if is_absolute => false,
            "crate" | "$crate" => {
                (base, rest) = (Name::new(), &path[1..]);
                true
            }
            "self" | "super" => {
                while let Some((word, after)) =
                    rest.split_first().filter(|(word, _)| *word == "self" || *word == "super")
                {
                    if word == "super" {
                        base.pop();
                    }
                    rest = after;
                }
                true
            }
            _ => self.modules.contains(&child()),
        };
        let name = if is_inside {
            [&["crate".to_owned()], &base[..], rest].concat()
        } else if let Some(name) = self.imported.get(first).filter(|_| !is_absolute) {
            [name, &path[1..]].concat()
        } else if first == self.library {
            [&["crate".to_owned()], &path[1..]].concat()
        } else {
            path.to_vec()
        };
        self.named.insert(name.clone());
        name
    }

    /// Notes what a `use` brings into the file, there called `called`.
    fn import(&mut self, is_absolute: bool, path: &[String], called: &str) {
        let name = self.name(is_absolute, path);
        self.imported.insert(called.to_owned(), name);
    }

    fn use_tree(&mut self, is_absolute: bool, before: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| match name.to_string() {
            // `use a::{self}` is `use a`.
            name if name == "self" && !before.is_empty() => before.to_vec(),
            name => [before, &[name]].concat(),
        };
        match tree {
            UseTree::Path(path) => self.use_tree(is_absolute, &with(&path.ident), &path.tree),
            UseTree::Name(name) => {
                let path = with(&name.ident);
                let called = path.last().cloned().unwrap_or_default();
                self.import(is_absolute, &path, &called);
            }
            UseTree::Rename(rename) => {
                self.import(is_absolute, &with(&rename.ident), &rename.rename.to_string());
            }
            UseTree::Glob(_) => drop(self.name(is_absolute, before)),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.use_tree(is_absolute, before, tree));
            }
        }
    }

    /// Notes what looks like a path in the tokens of a macro. `before` is the path in front of a group of them.
    fn tokens(&mut self, before: &[String], tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is_colons = |at: usize| {
            let is_colon =
                |at| matches!(tokens.get(at), Some(TokenTree::Punct(mark)) if mark.as_char() == ':');
            is_colon(at) && is_colon(at + 1)
        };
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let begin = at;
            at += 1;
            match token {
                TokenTree::Group(group) => self.tokens(&[], group.stream()),
                TokenTree::Literal(literal) => self.literal(&literal.to_string()),
                TokenTree::Punct(_) => {}
                TokenTree::Ident(first) => {
                    let mut path = [before, &[first.to_string()]].concat();
                    while is_colons(at) {
                        match tokens.get(at + 2) {
                            Some(TokenTree::Ident(next)) => path.push(next.to_string()),
                            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                                self.tokens(&path, group.stream());
                            }
                            _ => break,
                        }
                        at += 3;
                    }
                    let is_absolute = begin >= 2 && is_colons(begin - 2);
                    if path.len() > 1 {
                        self.name(is_absolute, &path);
                    }
                }
            }
        }
    }

    /// Attributes name paths in strings: `#[serde(with = "crate::a::b")]`.
    fn literal(&mut self, text: &str) {
        let path =
            text.trim_matches('"').parse().ok().and_then(|tokens| syn::parse2::<syn::Path>(tokens).ok());
        if let Some(path) = path {
            self.visit_path(&path);
        }
    }
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        } else if let Item::Mod(module) = item {
            self.tests.push([&self.module[..], &[module.ident.to_string()]].concat());
        }
    }

    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        let is_for_tests = matches!(item, ImplItem::Fn(function) if is_for_tests(&function.attrs));
        if !is_for_tests {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        self.module.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.use_tree(item.leading_colon.is_some(), &[], &item.tree);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names: Name = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        // One name alone is that of something near, which a `use` has named.
        if names.len() > 1 {
            self.name(path.leading_colon.is_some(), &names);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'a syn::Macro) {
        self.visit_path(&called.path);
        self.tokens(&[], called.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'a Attribute) {
        if attribute.path().is_ident("doc") {
            return;
        }
        match &attribute.meta {
            syn::Meta::List(list) => self.tokens(&[], list.tokens.clone()),
            syn::Meta::Path(_) | syn::Meta::NameValue(_) => {}
        }
    }

    // `pub(in super::super)` uses nothing.
    fn visit_vis_restricted(&mut self, _: &'a syn::VisRestricted) {}
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `#[cfg(test)]`, and what is for the tests of other crates: `#[cfg(any(test, feature = "testing"))]`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    let names_test = |attribute: &Attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let text = list.tokens.to_string();
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        list.path.is_ident("cfg") && !text.contains("not") && words.any(|word| word == "test")
    };
    attributes.iter().any(names_test)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let texts = [
            (vec!["a".to_owned(), "b".to_owned()], text),
            (vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], ""),
        ];
        let texts = texts.map(|(module, text)| (module, text.to_owned())).into();
        let sources = Sources::of(texts, "own");
        sources.files[&["a".to_owned(), "b".to_owned()][..]].iter().map(|name| name.join("::")).collect()
    }

    #[test]
    fn every_form_of_a_name_is_seen() {
        let one = |text: &str, expected: &str| assert_eq!(names(text), [expected], "{text}");
        assert_eq!(names("use crate::{x, y::{self, z}};"), ["crate::x", "crate::y", "crate::y::z"]);
        one("pub(in crate::a) use super::d as e;", "crate::a::d");
        one("use self::c::*;", "crate::a::b::c");
        one("use own::x;", "crate::x");
        one("use log;", "log");
        assert_eq!(names("use crate::x::log; fn f() { log::y() }"), ["crate::x::log", "crate::x::log::y"]);
        assert_eq!(names("use log::{x as d}; fn f() { d::y() }"), ["log::x", "log::x::y"]);
        one("fn f() -> ::log::X { 1 }", "log::X");
        one("fn f(x: Option<super::super::y::Z>) {}", "crate::y::Z");
        one("fn f() { c::g(); local.c(); Self(1) }", "crate::a::b::c::g");
        one("mod inner { use super::super::d; }", "crate::a::d");
        one("fn f() { println!(\"{}\", [crate::x::y(1), z]); }", "crate::x::y");
        assert_eq!(
            names("macro_rules! m { () => { use $crate::{x::y, z::w}; } }"),
            ["crate::x::y", "crate::z::w"]
        );
        one("#[serde(with = \"crate::x::y\")] struct S;", "crate::x::y");
    }

    #[test]
    fn comments_and_tests_name_nothing() {
        for text in [
            "// crate::x::y\n/// [`crate::x`]\nfn f() {}",
            "#[cfg(test)] mod tests { use crate::x; }",
            "#[cfg(any(test, feature = \"testing\"))] use crate::x;",
            "impl S { #[cfg(test)] fn f() { crate::x::y() } }",
            "pub(in crate::a) struct S;",
        ] {
            assert_eq!(names(text), [""; 0], "{text}");
        }
    }
}
