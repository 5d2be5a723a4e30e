//! The files that AWS's own tools share, `~/.aws/credentials` and `~/.aws/config`: the simple keys of a profile.
//!
//! Profiles that name another one, a program or a login in a browser are not followed: that is said, not guessed.

use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

/// Looks up a variable of the environment.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Keys of a profile which say that its credentials come from elsewhere.
const ELSEWHERE: [&str; 5] =
    ["role_arn", "credential_process", "sso_session", "sso_start_url", "login_session"];

/// A profile of the shared files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Profile {
    name: String,
    /// With the keys.
    credentials: PathBuf,
    /// Its region, from whichever file says it.
    pub(super) region: Option<String>,
}

/// What the shared files say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The profile with keys, when there is one.
    pub(super) profile: Option<Profile>,
    /// The region of the chosen profile.
    pub(super) region: Option<String>,
}

/// A profile's keys.
struct Keys {
    id: String,
    secret: String,
    token: Option<String>,
}

impl Profile {
    /// Looks for the profile that `AWS_PROFILE` names, or `default`.
    ///
    /// # Errors
    /// In words, when `AWS_PROFILE` names one that is not there or whose credentials come from elsewhere.
    pub(super) fn find(environment: Environment<'_>) -> Result<Found, String> {
        let home = environment("HOME").map(PathBuf::from);
        let place = |variable: &str, file: &str| {
            environment(variable)
                .map(PathBuf::from)
                .or_else(|| home.as_ref().map(|home| home.join(".aws").join(file)))
        };
        let named = environment("AWS_PROFILE").filter(|name| !name.is_empty());
        let name = named.clone().unwrap_or_else(|| "default".to_owned());
        let read = |place: Option<&PathBuf>| {
            place.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default()
        };
        let credentials = place("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let in_credentials = section(&read(credentials.as_ref()), &name, false);
        let in_config = section(&read(place("AWS_CONFIG_FILE", "config").as_ref()), &name, true);
        let region = [&in_credentials, &in_config]
            .iter()
            .find_map(|found| found.as_ref()?.get("region").cloned())
            .filter(|region| !region.is_empty());
        let has_keys = in_credentials.as_ref().is_some_and(|found| found.contains_key("aws_access_key_id"));
        if let (true, Some(credentials)) = (has_keys, credentials) {
            let profile = Profile { name, credentials, region: region.clone() };
            profile.keys()?;
            return Ok(Found { profile: Some(profile), region });
        }
        if let Some(name) = named {
            let elsewhere = [&in_credentials, &in_config].into_iter().flatten();
            let from =
                elsewhere.flat_map(|found| ELSEWHERE.iter().find(|key| found.contains_key(**key))).next();
            return Err(match from {
                Some(key) => format!(
                    "the AWS profile \"{name}\" gets its credentials by {key}, which binlogd does not follow: give keys in the \
                     environment, as `aws configure export-credentials` prints them"
                ),
                None => format!(
                    "AWS_PROFILE names \"{name}\", and the shared credentials file has no keys for it: write [{name}] with \
                     aws_access_key_id and aws_secret_access_key there, or unset AWS_PROFILE"
                ),
            });
        }
        Ok(Found { profile: None, region })
    }

    /// The keys as they stand in the file now: whoever rotates them writes the file anew.
    fn keys(&self) -> Result<Keys, String> {
        let path = self.credentials.display();
        let text = std::fs::read_to_string(&self.credentials)
            .map_err(|error| format!("the shared credentials file {path} cannot be read: {error}"))?;
        let mut found = section(&text, &self.name, false).unwrap_or_default();
        let mut key = |name: &str| found.remove(name).filter(|value| !value.is_empty());
        match (key("aws_access_key_id"), key("aws_secret_access_key")) {
            (Some(id), Some(secret)) => Ok(Keys { id, secret, token: key("aws_session_token") }),
            _ => Err(format!("[{}] of {path} lacks aws_access_key_id or aws_secret_access_key", self.name)),
        }
    }

    /// Where the keys come from, in words.
    pub(super) fn describe(&self) -> String {
        format!("[{}] of {}", self.name, self.credentials.display())
    }
}

/// Credentials that are read from the file at each use.
pub(super) struct ProfileCredentials(pub(super) Profile);

impl fmt::Debug for ProfileCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProfileCredentials({})", self.0.describe())
    }
}

impl CredentialProvider for ProfileCredentials {
    type Credential = AwsCredential;

    fn get_credential<'life0, 'async_trait>(
        &'life0 self,
    ) -> Pin<Box<dyn Future<Output = object_store::Result<Arc<AwsCredential>>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let credential = self.0.keys().map(|keys| {
            Arc::new(AwsCredential { key_id: keys.id, secret_key: keys.secret, token: keys.token })
        });
        Box::pin(async move {
            credential.map_err(|text| object_store::Error::Generic { store: "S3", source: text.into() })
        })
    }
}

/// The keys of a profile's section, lower case; `None` when there is no such section. In the configuration file all but the
/// default are called `[profile name]`.
fn section(text: &str, profile: &str, in_config: bool) -> Option<BTreeMap<String, String>> {
    let mut found: Option<BTreeMap<String, String>> = None;
    let mut is_inside = false;
    for line in text.lines() {
        let is_nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(title) = line.strip_prefix('[') {
            let title = title.split(']').next().unwrap_or_default().trim();
            let name = match title.strip_prefix("profile") {
                Some(name) if in_config && name.starts_with([' ', '\t']) => name.trim(),
                _ if in_config && title != "default" => "",
                _ => title,
            };
            is_inside = !name.is_empty() && name == profile;
            if is_inside {
                found.get_or_insert_default();
            }
        } else if let (true, false, Some((key, value)), Some(found)) =
            (is_inside, is_nested, line.split_once('='), found.as_mut())
        {
            // A comment may follow a blank, as AWS's tools have it.
            let value = value.split(" #").next().unwrap_or_default().trim();
            found.insert(key.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const CREDENTIALS: &str = "\
# of the tools
[default]
aws_access_key_id = AKIDEFAULT
aws_secret_access_key=verysecret

[ backup ]
aws_access_key_id=AKIBACKUP   # the small one
AWS_SECRET_ACCESS_KEY = with=sign+/
aws_session_token = token
region = eu-west-1
[half]
aws_access_key_id = AKIHALF
";
    const CONFIG: &str = "\
[default]
region = us-west-2
s3 =
    region = nested-1
[profile login]
sso_session = corp
region=eu-north-1
";

    /// The folder in which a test's files stand, as an environment.
    fn environment_of(folder: &Path, profile: Option<&'static str>) -> impl Fn(&str) -> Option<String> {
        let folder = folder.display().to_string();
        move |name| match name {
            "HOME" => Some(folder.clone()),
            "AWS_PROFILE" => profile.map(str::to_owned),
            _ => None,
        }
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".aws")).unwrap();
        std::fs::write(folder.path().join(".aws/credentials"), CREDENTIALS).unwrap();
        std::fs::write(folder.path().join(".aws/config"), CONFIG).unwrap();
        folder
    }

    #[test]
    fn the_default_and_a_named_profile_are_found() {
        let folder = folder();
        let found = Profile::find(&environment_of(folder.path(), None)).unwrap();
        assert_eq!(found.region.as_deref(), Some("us-west-2"));
        let keys = found.profile.unwrap().keys().unwrap();
        assert_eq!((keys.id.as_str(), keys.secret.as_str()), ("AKIDEFAULT", "verysecret"));
        assert_eq!(keys.token, None);

        let found = Profile::find(&environment_of(folder.path(), Some("backup"))).unwrap();
        assert_eq!(found.region.as_deref(), Some("eu-west-1"));
        let profile = found.profile.unwrap();
        let keys = profile.keys().unwrap();
        assert_eq!((keys.id.as_str(), keys.secret.as_str()), ("AKIBACKUP", "with=sign+/"));
        assert_eq!(keys.token.as_deref(), Some("token"));

        // Rotated in the file: the next use has the new ones.
        let path = folder.path().join(".aws/credentials");
        std::fs::write(&path, CREDENTIALS.replace("AKIBACKUP", "AKINEW")).unwrap();
        assert_eq!(profile.keys().unwrap().id, "AKINEW");
    }

    #[test]
    fn a_profile_that_gives_no_keys_is_an_error_by_name() {
        let folder = folder();
        for (name, why) in [
            ("half", "lacks"),
            ("login", "sso_session"),
            ("missing", "\"missing\""),
            ("profile login", "profile login"),
        ] {
            let error = Profile::find(&environment_of(folder.path(), Some(name))).unwrap_err();
            assert!(error.contains(why), "{name}: {error}");
        }
    }

    #[test]
    fn without_files_there_is_nothing_and_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let found = Profile::find(&environment_of(folder.path(), None)).unwrap();
        assert_eq!(found, Found { profile: None, region: None });
    }

    #[test]
    fn no_key_shows_in_debug_output() {
        let folder = folder();
        let profile = Profile::find(&environment_of(folder.path(), None)).unwrap().profile.unwrap();
        let shown = format!("{:?} {profile:?}", ProfileCredentials(profile.clone()));
        assert!(!shown.contains("verysecret"), "{shown}");
    }
}
