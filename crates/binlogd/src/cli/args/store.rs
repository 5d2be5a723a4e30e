//! An archive as it is named on the command line, and the keys that open it.

use crate::cli::exit::{EXIT_PROBLEM, usage_error};
use anyhow::Context as _;
use archive::chain::sources::sources;
use archive::chain::trust::Trust;
use archive::keys::Identities;
use archive::keys::signing::VerifyingKey;
use archive::reader::Reader;
use archive::segment::Opener;
use archive::store::StoreError;
use archive::store::remote;
use archive::store::remote::{Location, Options};
use clap::Args;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// How an archive is reached, and opened.
#[derive(Debug, Args)]
pub(in crate::cli) struct StoreArgs {
    /// One source of several
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) source: Option<String>,
    /// Private key with which encrypted objects are opened: a file of age or of SSH; several are tried in turn. Its passphrase,
    /// if it has one, is asked for
    #[arg(long, value_name = "FILE")]
    identity: Vec<PathBuf>,
    /// Public key of who writes the archive, as sign_key in [archive] has it, or a file of such keys: commits that nobody of them has
    /// signed are refused; several times for several writers
    #[arg(long, value_name = "KEY|FILE")]
    signed_by: Vec<String>,
    #[command(flatten)]
    reach: ReachArgs,
}

/// How an archive is reached.
#[derive(Debug, Default, Args)]
pub(in crate::cli) struct ReachArgs {
    /// Address of a store that is not the provider's own, as `https://minio.example:9000`
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Region of an S3 bucket
    #[arg(long)]
    region: Option<String>,
    /// Put the bucket into the path, not into the name of the host
    #[arg(long)]
    path_style: bool,
    /// Go on without TLS where the endpoint says http://
    #[arg(long)]
    allow_http: bool,
}

/// An archive that can be read.
pub(in crate::cli) struct Opened {
    /// What reads its objects.
    pub(in crate::cli) reader: Reader,
    /// The sources that were chosen.
    pub(in crate::cli) sources: Vec<String>,
    /// Whether a private key was given.
    pub(in crate::cli) has_identity: bool,
    /// Where it is, in words.
    pub(in crate::cli) place: String,
}

/// Whether an argument names an archive, and no folder. One that lacks a slash is none, but was meant as one, and is told so.
pub(in crate::cli) fn is_url(argument: &str) -> bool {
    argument.contains("://")
        || ["s3:", "gs:", "az:", "file:"].iter().any(|scheme| argument.starts_with(scheme))
}

/// Prints why an archive could not be opened. The exit code is that of a usage error, but where the store does not answer or refuses:
/// the same command may be well tomorrow.
pub(in crate::cli) fn not_opened(error: &anyhow::Error) -> ExitCode {
    let code = usage_error(&format!("{error:#}"));
    if error.chain().any(|cause| cause.is::<StoreError>()) { ExitCode::from(EXIT_PROBLEM) } else { code }
}

impl StoreArgs {
    /// For a copy in a folder.
    pub(in crate::cli) fn of_copy(source: &str) -> StoreArgs {
        StoreArgs {
            source: Some(source.to_owned()),
            identity: Vec::new(),
            signed_by: Vec::new(),
            reach: ReachArgs::default(),
        }
    }

    /// What was given that means something for an archive only; `None` when nothing was.
    pub(in crate::cli) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--identity", !self.identity.is_empty()),
            ("--signed-by", !self.signed_by.is_empty()),
            ("--endpoint", self.reach.endpoint.is_some()),
            ("--region", self.reach.region.is_some()),
            ("--path-style", self.reach.path_style),
            ("--allow-http", self.reach.allow_http),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// Opens the archive at `url` and finds its sources.
    ///
    /// # Errors
    /// In words: what is wrong with the address or a key, what the store says, or that it has no such source.
    pub(in crate::cli) fn open(&self, url: &str) -> anyhow::Result<Opened> {
        let (location, options) = self.reach.checked(url)?;
        let mut identities = Identities::new();
        for file in &self.identity {
            identities.add_file(file, &mut |question| {
                let may_ask = io::stdin().is_terminal();
                may_ask.then(|| rpassword::prompt_password(question).ok()).flatten().map(Into::into)
            })?;
        }
        for remark in identities.remarks() {
            errln!("warning: {remark}");
        }
        let trust = self.trust()?;
        let store = remote::open(&location, &options)?;
        let there = sources(&*store)?;
        let chosen = match &self.source {
            Some(source) if there.contains(source) => vec![source.clone()],
            Some(source) => {
                let there: Vec<&str> = there.iter().map(String::as_str).collect();
                anyhow::bail!("{location} has no source {source:?}; there are: {}", there.join(", "))
            }
            None => there.into_iter().collect(),
        };
        anyhow::ensure!(
            !chosen.is_empty(),
            "{location} has no archive of binlogd: name what url in [archive] names"
        );
        let has_identity = !identities.is_empty();
        let reader = Reader { store, opener: Arc::new(Opener::new(identities).trusting(trust)) };
        Ok(Opened { reader, sources: chosen, has_identity, place: location.to_string() })
    }
}

impl StoreArgs {
    /// Whose signatures are believed.
    fn trust(&self) -> anyhow::Result<Trust> {
        let mut keys = Vec::new();
        for argument in &self.signed_by {
            keys.extend(VerifyingKey::named(argument).context("--signed-by")?);
        }
        Ok(Trust::required(keys))
    }
}

impl ReachArgs {
    /// Where the archive at `url` is, and how it is reached.
    ///
    /// # Errors
    /// In words: what is wrong with the address, or means nothing there.
    pub(in crate::cli) fn checked(&self, url: &str) -> anyhow::Result<(Location, Options)> {
        let location: Location = url.parse().map_err(anyhow::Error::msg)?;
        let options = Options {
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            path_style: self.path_style.then_some(true),
            allow_http: self.allow_http,
        };
        options
            .check(&location)
            .map_err(|wrong| anyhow::anyhow!("--{} {}", wrong.name.replace('_', "-"), wrong.why))?;
        Ok((location, options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_as_a_url_is_no_folder() {
        for url in ["s3://bucket/prefix", "s3:/bucket/prefix", "file:/srv/archive", "ftp://host"] {
            assert!(is_url(url), "{url}");
        }
        for folder in ["/srv/s3:", "./s3:x", "data", "C:/data"] {
            assert!(!is_url(folder), "{folder}");
        }
    }

    #[test]
    fn a_store_that_does_not_answer_is_no_mistake_of_the_command_line() {
        let unavailable = StoreError::new(archive::store::Fault::Unavailable, "no answer");
        let error = anyhow::Error::from(unavailable).context("opening the archive");
        assert_eq!(not_opened(&error), ExitCode::from(EXIT_PROBLEM));
        assert_eq!(not_opened(&anyhow::anyhow!("no such source")), usage_error(&"no such source"));
    }
}
