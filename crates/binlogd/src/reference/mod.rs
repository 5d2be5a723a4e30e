//! What the pages of docs/reference are written from: the keys, the metrics and the JSON, as the program has them. Only
//! `crates/reference` calls it, so nothing of it is linked into the product.

mod sample;

use config::ReloadEffect;
use config::key::{Absent, Key, Kind, Section};
use config::tables::{declared, keys_of};

/// A table of the configuration file.
#[derive(Clone, Debug)]
pub struct SectionText {
    /// Its name, as it stands in the file: `[admin]`; `the top level` for what stands above the first table.
    pub title: &'static str,
    /// What it is for, in a sentence or two.
    pub about: String,
    /// Its keys, in the order of `binlogd config example`.
    pub keys: Vec<KeyText>,
}

/// A key of the configuration, as text.
#[derive(Clone, Debug)]
pub struct KeyText {
    /// Its name in the table.
    pub name: &'static str,
    /// Its flag of `binlogd run`, without dashes.
    pub flag: Option<&'static str>,
    /// What it accepts, as a phrase.
    pub allowed: String,
    /// The words that it accepts and what each means; empty where it accepts others.
    pub choices: &'static [(&'static str, &'static str)],
    /// What holds without it.
    pub default: Default,
    /// What a change needs, as a clause.
    pub reload: &'static str,
    /// What it does; one paragraph a line. A line that begins with two blanks keeps its shape.
    pub about: String,
}

/// What holds without a key. The values are TOML.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// This value.
    Value(&'static str),
    /// Nothing is set; here is an example.
    None(&'static str),
    /// It must be given; here is an example.
    Required(&'static str),
}

/// Every table of the configuration with its keys, in the order of `binlogd config example`.
pub fn sections() -> Vec<SectionText> {
    Section::ALL
        .into_iter()
        .map(|section| SectionText {
            title: section.title(),
            about: declared(section).about(),
            keys: keys_of(section).iter().map(text).collect(),
        })
        .collect()
}

/// All metrics that there are, with made-up values, as OpenMetrics text.
pub fn metrics() -> String {
    sample::metrics()
}

/// An answer of `/status` in which everything is there, with made-up values, as indented JSON.
pub fn status() -> String {
    sample::status()
}

/// An answer of `/v1/quorum`, as [`status()`].
pub fn quorum() -> String {
    sample::quorum_answer()
}

/// An answer of `/v1/durable`, as [`status()`].
pub fn durable() -> String {
    sample::durable_answer()
}

/// An answer of `POST /v1/promote`, as [`status()`].
pub fn promote() -> String {
    sample::promote_answer()
}

fn text(key: &Key) -> KeyText {
    let choices = match key.kind {
        Kind::Choice(choices) | Kind::Choices(choices) => choices,
        _ => &[],
    };
    let default = match key.absent {
        Absent::Default(value) => Default::Value(value),
        Absent::Unset(value) => Default::None(value),
        Absent::Required(value) => Default::Required(value),
    };
    let reload = match key.reload {
        ReloadEffect::NextEmptyFolder => "a change counts while nothing has been copied",
        ReloadEffect::AtOnce => "SIGHUP takes up a change at once",
        ReloadEffect::Reconnect => "SIGHUP takes up a change, with a new connection to the source",
        ReloadEffect::Restart => "a change needs a restart",
    };
    let Key { name, flag, .. } = *key;
    KeyText { name, flag, allowed: key.allowed(), choices, default, reload, about: key.about() }
}
