//! Makes the library's client of a location: from the options, and from the credentials in their usual places.
//!
//! Of the environment only what is listed here counts. Other variables that the library knows change how objects are
//! written or send them without TLS, and none of that may come from an environment that nobody looks at.

use super::aws_profile::{Environment, Profile, ProfileCredentials};
use super::connector::{CONNECT_LIMIT, Connector};
use super::location::Location;
use super::mask::Mask;
use super::options::Options;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum, S3ConditionalPut};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{BackoffConfig, ClientOptions, HeaderValue, ObjectStore, RetryConfig};
use std::sync::Arc;
use std::time::Duration;

/// Repetitions of a request inside the library. Who writes the archive tries again by itself, with patience.
const RETRIES: usize = 2;
/// No repetition begins later than this after the first try.
const RETRY_LIMIT: Duration = Duration::from_secs(20);
/// Unused connections are closed before the stores close them, which do so after 20 s.
const IDLE_LIMIT: Duration = Duration::from_secs(15);

/// Variables for S3. Encryption by the store and its keys are among them: what is asked for must not be left out.
const AWS: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_ENDPOINT_URL_STS",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_METADATA_ENDPOINT",
    "AWS_IMDSV1_FALLBACK",
    "AWS_REQUEST_PAYER",
    "AWS_SERVER_SIDE_ENCRYPTION",
    "AWS_SSE_KMS_KEY_ID",
    "AWS_SSE_BUCKET_KEY_ENABLED",
    "AWS_SSE_CUSTOMER_KEY_BASE64",
];

/// Variables for Azure.
const AZURE: &[&str] = &[
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_TOKEN",
    "AZURE_STORAGE_CLIENT_ID",
    "AZURE_CLIENT_ID",
    "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_CLIENT_SECRET",
    "AZURE_STORAGE_TENANT_ID",
    "AZURE_TENANT_ID",
    "AZURE_AUTHORITY_HOST",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_MSI_ENDPOINT",
    "AZURE_IDENTITY_ENDPOINT",
    "AZURE_MSI_RESOURCE_ID",
    "AZURE_OBJECT_ID",
    "AZURE_STORAGE_ENCRYPTION_KEY",
];

/// Variables for Google Cloud Storage.
const GOOGLE: &[&str] = &[
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
];

/// Variables whose values are secrets, whatever store they are for.
const SECRETS: &[&str] = &[
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SSE_CUSTOMER_KEY_BASE64",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_TOKEN",
    "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_CLIENT_SECRET",
    "AZURE_STORAGE_ENCRYPTION_KEY",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
];

/// A client and what its errors must not show.
pub(super) struct Client {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) mask: Mask,
}

/// Makes a client. No request is sent.
///
/// # Errors
/// In words, when the credentials or the options cannot be used.
pub(super) fn client(
    location: &Location,
    options: &Options,
    environment: Environment<'_>,
) -> Result<Client, String> {
    // Without a provider of its own the process would look for one by what is linked, and find none.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mask = Mask::new(SECRETS.iter().filter_map(|name| environment(name)));
    let given = |names: &'static [&'static str]| {
        let found = names.iter().map(|name| (*name, environment(name)));
        found.filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)))
    };
    let built = match location {
        Location::S3 { bucket, .. } => {
            s3(bucket, options, environment, given(AWS)).map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
        }
        Location::Google { bucket, .. } => google(bucket, options, given(GOOGLE)),
        Location::Azure { container, .. } => azure(container, options, given(AZURE)),
        Location::Folder(_) => Err("a folder has no client".to_owned()),
    };
    match built {
        Ok(store) => Ok(Client { store, mask }),
        Err(text) => Err(mask.text(&text)),
    }
}

fn s3(
    bucket: &str,
    options: &Options,
    environment: Environment<'_>,
    given: impl Iterator<Item = (&'static str, String)>,
) -> Result<object_store::aws::AmazonS3, String> {
    let mut builder = AmazonS3Builder::new();
    for (name, value) in given {
        let key: AmazonS3ConfigKey = name.to_ascii_lowercase().parse().map_err(|_| unknown(name))?;
        builder = builder.with_config(key, value);
    }
    let is_set = |name: &str| environment(name).is_some_and(|value| !value.is_empty());
    // A profile comes after keys in the environment and before what a machine or a pod has, as AWS's tools have it.
    if !is_set("AWS_ACCESS_KEY_ID") && !is_set("AWS_SECRET_ACCESS_KEY") {
        let found = Profile::find(environment)?;
        if let Some(profile) = found.profile {
            builder = builder.with_credentials(Arc::new(ProfileCredentials(profile)));
        }
        if let Some(region) = found.region
            && !is_set("AWS_REGION")
            && !is_set("AWS_DEFAULT_REGION")
        {
            builder = builder.with_region(region);
        }
    }
    if let Some(region) = &options.region {
        builder = builder.with_region(region);
    }
    let is_path_style = options.is_path_style();
    if let Some(endpoint) = &options.endpoint {
        builder =
            builder.with_endpoint(if is_path_style { endpoint.clone() } else { in_host(endpoint, bucket) });
    }
    builder
        .with_bucket_name(bucket)
        .with_virtual_hosted_style_request(!is_path_style)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // Object Lock demands a checksum with each object.
        .with_checksum_algorithm(Checksum::SHA256)
        // One request an object: its refusal then has a status of its own.
        .with_disable_bulk_delete(true)
        .with_client_options(client_options(options))
        .with_retry(retries())
        .with_http_connector(Connector::new(bucket))
        .build()
        .map_err(|error| super::connector::in_words(&error))
}

fn google(
    bucket: &str,
    options: &Options,
    given: impl Iterator<Item = (&'static str, String)>,
) -> Result<Arc<dyn ObjectStore>, String> {
    let mut builder = GoogleCloudStorageBuilder::new();
    for (name, value) in given {
        let key: GoogleConfigKey = name.to_ascii_lowercase().parse().map_err(|_| unknown(name))?;
        builder = builder.with_config(key, value);
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_base_url(endpoint);
    }
    let store = builder
        .with_bucket_name(bucket)
        .with_client_options(client_options(options))
        .with_retry(retries())
        .with_http_connector(Connector::new(bucket))
        .build()
        .map_err(|error| super::connector::in_words(&error))?;
    Ok(Arc::new(store))
}

fn azure(
    container: &str,
    options: &Options,
    given: impl Iterator<Item = (&'static str, String)>,
) -> Result<Arc<dyn ObjectStore>, String> {
    let mut builder = MicrosoftAzureBuilder::new();
    let mut has_account = false;
    for (name, value) in given {
        let key: AzureConfigKey = name.to_ascii_lowercase().parse().map_err(|_| unknown(name))?;
        has_account |= matches!(key, AzureConfigKey::AccountName);
        builder = builder.with_config(key, value);
    }
    if !has_account {
        return Err(
            "the storage account is not known: set AZURE_STORAGE_ACCOUNT_NAME in the environment".to_owned()
        );
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    let store = builder
        .with_container_name(container)
        .with_allow_http(options.allow_http)
        .with_client_options(client_options(options))
        .with_retry(retries())
        .with_http_connector(Connector::new(container))
        .build()
        .map_err(|error| super::connector::in_words(&error))?;
    Ok(Arc::new(store))
}

fn unknown(name: &str) -> String {
    format!("this version does not know the variable {name}")
}

/// An endpoint with the bucket in front of its host.
fn in_host(endpoint: &str, bucket: &str) -> String {
    match endpoint.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{bucket}.{}", rest.trim_end_matches('/')),
        None => endpoint.to_owned(),
    }
}

fn client_options(options: &Options) -> ClientOptions {
    ClientOptions::new()
        .with_user_agent(HeaderValue::from_static(concat!("binlogd/", env!("CARGO_PKG_VERSION"))))
        .with_allow_http(options.allow_http)
        // The connector has limits that know how much is on the way.
        .with_timeout_disabled()
        .with_connect_timeout(CONNECT_LIMIT)
        .with_pool_idle_timeout(IDLE_LIMIT)
}

fn retries() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(1),
        base: 2.,
    };
    RetryConfig { backoff, max_retries: RETRIES, retry_timeout: RETRY_LIMIT }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(url: &str, options: &Options, variables: &[(&str, &str)]) -> Result<Client, String> {
        let environment = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        client(&url.parse().unwrap(), options, &environment)
    }

    #[test]
    fn every_variable_is_known_to_the_library() {
        for name in AWS {
            assert!(name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>().is_ok(), "{name}");
        }
        for name in AZURE {
            assert!(name.to_ascii_lowercase().parse::<AzureConfigKey>().is_ok(), "{name}");
        }
        for name in GOOGLE {
            assert!(name.to_ascii_lowercase().parse::<GoogleConfigKey>().is_ok(), "{name}");
        }
    }

    #[test]
    fn clients_are_made_without_a_request() {
        let keys = [("AWS_ACCESS_KEY_ID", "AKI"), ("AWS_SECRET_ACCESS_KEY", "verysecret")];
        assert!(open("s3://bucket/x", &Options::default(), &keys).is_ok());
        let azure = [("AZURE_STORAGE_ACCOUNT_NAME", "account"), ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")];
        assert!(open("az://container", &Options::default(), &azure).is_ok());
        let key = r#"{"private_key": "x", "private_key_id": "x", "client_email": "x", "gcs_base_url": "https://x", "disable_oauth": true}"#;
        assert!(open("gs://bucket", &Options::default(), &[("GOOGLE_SERVICE_ACCOUNT_KEY", key)]).is_ok());
    }

    #[test]
    fn what_is_missing_is_said() {
        let error = |result: Result<Client, String>| result.err().unwrap();
        let half = [("AWS_ACCESS_KEY_ID", "AKI")];
        let text = error(open("s3://bucket", &Options::default(), &half));
        assert!(text.to_ascii_lowercase().contains("secret"), "{text}");
        let text = error(open("az://container", &Options::default(), &[]));
        assert!(text.contains("AZURE_STORAGE_ACCOUNT_NAME"), "{text}");
        let wrong = [("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json")];
        let text = error(open("gs://bucket", &Options::default(), &wrong));
        assert!(text.contains("/nowhere/key.json"), "{text}");
    }

    #[test]
    fn the_bucket_goes_in_front_of_the_host() {
        assert_eq!(in_host("https://s3.example.com/", "b"), "https://b.s3.example.com");
    }
}
