//! Who may read what.

use config::{Bounds, Privileges, Proof, ServeConfig, SourceConfig};
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::{Accounts, Methods, Verifiers};

/// The accounts of readers.
#[derive(Debug, Default)]
pub struct Users(BTreeMap<String, User>);

/// One account.
#[derive(Debug)]
struct User {
    verifiers: Verifiers,
    /// Names of the sources that it may read.
    sources: Vec<String>,
    privileges: Privileges,
    /// The slot that its readers have.
    slot: Option<String>,
    bounds: Bounds,
}

/// Why a user is served no source on the common port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "user '{user}' may read several sources ({}), and this port cannot tell which is meant; name one of them in its \
     [[serve.user]]",
    sources.join(", ")
)]
pub(crate) struct Ambiguous {
    user: String,
    sources: Vec<String>,
}

impl Users {
    /// Those of the configuration; where it names none, the accounts by which the sources themselves are read, so that a
    /// replica that is moved from a source to binlogd needs another address and nothing else.
    pub fn new(config: &ServeConfig, sources: &[SourceConfig]) -> Users {
        let mut users: BTreeMap<String, User> = BTreeMap::new();
        for user in &config.users {
            let verifiers = match &user.proof {
                Proof::Password(password) => Verifiers::from_password(password),
                Proof::Hash(text) => match text.expose().parse() {
                    Ok(verifiers) => verifiers,
                    // The configuration was refused for it.
                    Err(_) => continue,
                },
            };
            let of_user = User {
                verifiers,
                sources: user.sources.clone(),
                privileges: user.privileges,
                slot: user.slot.clone(),
                bounds: user.bounds.clone(),
            };
            users.insert(user.name.clone(), of_user);
        }
        if config.users.is_empty() {
            for source in sources {
                let (password, _) = source.password_now();
                if password.expose().is_empty() {
                    tracing::warn!(
                        source = source.name,
                        "readers cannot log in as {}: this account has no password. Give readers accounts with [[serve.user]]",
                        source.user
                    );
                    continue;
                }
                let verifiers = Verifiers::from_password(&password);
                match users.get_mut(&source.user) {
                    // Of two passwords for one name the first source's counts.
                    Some(user) if user.verifiers == verifiers => user.sources.push(source.name.clone()),
                    Some(_) => tracing::warn!(
                        source = source.name,
                        "readers cannot be served this source as {}: another source has that user with another password; \
                         give readers accounts with [[serve.user]]",
                        source.user
                    ),
                    None => {
                        let sources = vec![source.name.clone()];
                        let user = User {
                            verifiers,
                            sources,
                            privileges: Privileges::READ,
                            bounds: Bounds::default(),
                            slot: None,
                        };
                        users.insert(source.user.clone(), user);
                    }
                }
            }
        }
        Users(users)
    }

    /// Every source that somebody may read, each once, in the order of the users' names.
    pub(crate) fn all_sources(&self) -> impl Iterator<Item = &str> {
        let mut seen = std::collections::BTreeSet::new();
        self.0
            .values()
            .flat_map(|user| &user.sources)
            .map(String::as_str)
            .filter(move |name| seen.insert(*name))
    }

    /// The slot of a user's readers.
    pub(crate) fn slot_of(&self, user: &str) -> Option<&str> {
        self.0.get(user)?.slot.as_deref()
    }

    /// What a user may do; nothing, if there is none of that name.
    pub(crate) fn privileges_of(&self, user: &str) -> Privileges {
        self.0.get(user).map_or_else(Privileges::default, |user| user.privileges)
    }

    /// What holds a user's dumps back.
    pub(crate) fn bounds_of(&self, user: &str) -> Bounds {
        self.0.get(user).map_or_else(Bounds::default, |user| user.bounds.clone())
    }

    /// The source that a user who has logged in is served.
    pub(crate) fn source_of(&self, user: &str) -> Result<&str, Ambiguous> {
        let sources = self.0.get(user).map_or(&[][..], |user| &user.sources);
        match sources {
            [only] => Ok(only),
            _ => Err(Ambiguous { user: user.to_owned(), sources: sources.to_vec() }),
        }
    }
}

impl Accounts for Users {
    fn find(&self, user: &str, _from: IpAddr) -> Option<Verifiers> {
        self.0.get(user).map(|user| user.verifiers)
    }

    fn methods(&self) -> Vec<Methods> {
        self.0.values().map(|user| user.verifiers.methods()).collect()
    }
}
