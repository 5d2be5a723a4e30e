//! What the users of the admin address and those of the port for readers have in common.

use super::super::document::Table;
use super::super::entry::Entry;
use super::super::error::{Findings, Place};
use super::super::key::Section;
use super::password::{Environment, Origins, Password};
use std::collections::HashMap;
use wire::Secret;

/// What binlogd knows of a user's password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The password.
    Password(Secret),
    /// What one method of authentication needs instead; checked.
    Hash(Secret),
}

impl Proof {
    /// What the keys of a user's `table` give: exactly one of them must. `None` after an error.
    pub(super) fn given(
        origins: &Origins<'_>,
        table: &Table,
        environment: Environment<'_>,
        findings: &mut Findings,
    ) -> Option<Proof> {
        match origins.password(environment, findings)? {
            Password::Text(secret) | Password::File(secret, _) => Some(Proof::Password(secret)),
            Password::Hash(secret) => Some(Proof::Hash(secret)),
            Password::None => {
                let title = table.section.title();
                let text = format!("{title} lacks a password: add password_file = \"…\"");
                findings.error(&table.place, text);
                None
            }
        }
    }
}

/// Two users of one name would make it a matter of chance which password counts.
pub(super) fn check_user_names<'a>(
    section: Section,
    users: impl Iterator<Item = (&'a Place, &'a Entry<String>)>,
    findings: &mut Findings,
) {
    let mut seen: HashMap<&str, &Place> = HashMap::new();
    for (place, name) in users {
        let Some(name) = &name.value else { continue };
        if let Some(first) = seen.insert(name, place) {
            findings.error(
                place,
                format!(
                    "name = \"{name}\" is taken by the {} at {first}: give each its own name",
                    section.title()
                ),
            );
        }
    }
}
