//! What a declaration of a table and of its keys becomes.

use super::key::{Key, paragraphs};

/// One table of the configuration file.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// The lines of a comment that says what the table is for.
    pub(crate) about: &'static [&'static str],
    /// In the order of the example.
    pub keys: &'static [Key],
}

impl Declared {
    /// What the table is for, as a paragraph.
    pub fn about(&self) -> String {
        paragraphs(self.about)
    }
}

/// Declares a table of the configuration file: `struct Config, Keys for section, reload { entries }`. An entry is one of
///
/// - `name: Type = spec;` a key that is a field of `Config` too. The comment in front is its explanation in the example, the
///   reference and `--help`; the type says what is accepted ([`FromItem`](super::entry::FromItem)), the
///   [`Spec`](super::key::Spec) the rest.
/// - `key name: Type = spec;` a key that is no field, with `, at path` where its value stands in `Config` all the same.
/// - `field name: Type;` a field that is made from several keys, or from other tables.
///
/// `Keys` has each key as it was given, and as a constant each [`Key`]. `Keys::read` reads a table, `whole` makes `Config` of it
/// with the values of the fields that are no keys, and `Config::changed` names the keys in which two differ. For modules of
/// [`tables`](super::tables).
macro_rules! table {
    (
        $(#[doc = $about:literal])+ $(#[derive($($derive:ident),+)])?
        struct $Config:ident, $Keys:ident for $section:expr, $reload:expr; $($entries:tt)*
    ) => {
        table! {
            @next [{ $($about)+ } { $($($derive)+)? } $Config $Keys ($section, $reload)] {} {} {} {} {} $($entries)*
        }
    };
    (
        @next $head:tt { $($field:tt)* } { $($own:tt)* } { $($other:tt)* } { $($key:tt)* } { $($at:tt)* }
        $(#[doc = $about:literal])+ $name:ident: $Type:ty = $spec:expr; $($rest:tt)*
    ) => {
        table! {
            @next $head { $($field)* { $($about)+ } $name: $Type, } { $($own)* $name } { $($other)* }
            { $($key)* { $($about)+ } $name: $Type = $spec; } { $($at)* $name ($name) } $($rest)*
        }
    };
    (
        @next $head:tt { $($field:tt)* } { $($own:tt)* } { $($other:tt)* } { $($key:tt)* } { $($at:tt)* }
        $(#[doc = $about:literal])+ key $name:ident: $Type:ty = $spec:expr $(, at $($path:ident).+)?; $($rest:tt)*
    ) => {
        table! {
            @next $head { $($field)* } { $($own)* } { $($other)* }
            { $($key)* { $($about)+ } $name: $Type = $spec; } { $($at)* $($name ($($path).+))? } $($rest)*
        }
    };
    (
        @next $head:tt { $($field:tt)* } { $($own:tt)* } { $($other:tt)* } { $($key:tt)* } { $($at:tt)* }
        $(#[doc = $about:literal])+ field $name:ident: $Type:ty; $($rest:tt)*
    ) => {
        table! {
            @next $head { $($field)* { $($about)+ } $name: $Type, } { $($own)* } { $($other)* $name: $Type, }
            { $($key)* } { $($at)* } $($rest)*
        }
    };
    (
        @next [{ $($about:literal)+ } { $($derive:ident)* } $Config:ident $Keys:ident $section:tt]
        { $({ $($field_about:literal)+ } $field:ident: $Field:ty,)* } { $($own:ident)* } { $($other:ident: $Other:ty,)* }
        { $({ $($key_about:literal)+ } $key:ident: $Type:ty = $spec:expr;)* } { $($changed:ident ($($path:ident).+))* }
    ) => {
        $(#[doc = $about])+
        // An explanation is written for operators, whose words in brackets are tables of a file.
        #[allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags, rustdoc::bare_urls)]
        #[derive(Clone, Debug, PartialEq, Eq, $($derive),*)]
        pub struct $Config {
            $($(#[doc = $field_about])+ pub $field: $Field,)*
        }

        #[doc = concat!("The keys of which [`", stringify!($Config), "`] is made, as they were given.")]
        #[allow(missing_docs)]
        pub struct $Keys {
            $(pub $key: super::super::entry::Entry<$Type>,)*
        }

        #[allow(non_upper_case_globals, missing_docs)]
        impl $Keys {
            $(pub const $key: super::super::key::Key = $spec.key(
                $section,
                stringify!($key),
                &[$($key_about),+],
                <$Type as super::super::entry::FromItem>::KIND,
            );)*

            /// The whole table.
            pub(crate) const DECLARED: super::super::table::Declared =
                super::super::table::Declared { about: &[$($about),+], keys: &[$(Self::$key),*] };

            /// Reads what `table` says. What is wrong is told.
            pub(crate) fn read(
                table: &super::super::document::Table,
                findings: &mut super::super::error::Findings,
            ) -> Self {
                Self { $($key: super::super::entry::Entry::read(&Self::$key, table, findings),)* }
            }

            /// `None` where a key, or what is made from several, is wrong.
            #[allow(clippy::too_many_arguments, reason = "as many as there are such fields")]
            pub(crate) fn whole(self, $($other: Option<$Other>),*) -> Option<$Config> {
                Some($Config { $($own: self.$own.value?,)* $($other: $other?,)* })
            }
        }

        impl $Config {
            /// The keys in which the other differs, in the order of the example.
            pub fn changed(&self, other: &Self) -> Vec<&'static super::super::key::Key> {
                let keys = [$((&$Keys::$changed, self.$($path).+ != other.$($path).+)),*];
                keys.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
            }
        }
    };
}

/// Declares the words of a choice. The comment in front of a word, which is one line, is its meaning for operators too.
macro_rules! words {
    (
        $(#[doc = $about:literal])+ enum $Choice:ident { $(#[doc = $meaning:literal] $Word:ident = $word:literal,)+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Choice {
            $(#[doc = $meaning] $Word,)+
        }

        impl $Choice {
            /// As the configuration has it.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$Word => $word,)+
                }
            }
        }

        impl super::super::entry::FromItem for $Choice {
            const KIND: super::super::key::Kind =
                super::super::key::Kind::Choice(&[$(($word, super::super::key::after_blank($meaning))),+]);

            fn read(
                _: &super::super::key::Key,
                item: &super::super::document::Item,
            ) -> Result<Self, super::super::entry::Wrong> {
                match item.word() {
                    $(Some($word) => Ok(Self::$Word),)+
                    _ => Err(super::super::entry::Wrong::Refused),
                }
            }
        }
    };
}

pub(crate) use {table, words};
