//! How a connection is protected.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// What TLS must achieve, with the meaning of the MySQL client's `--ssl-mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// Never TLS.
    Disabled,
    /// TLS where the server offers it, clear text otherwise.
    #[default]
    Preferred,
    /// TLS or no connection; the certificate is not checked.
    Required,
    /// TLS, and the certificate must come from `ca`.
    VerifyCa,
    /// As `VerifyCa`, and the certificate must name the host.
    VerifyFull,
}

impl fmt::Display for TlsMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "disabled",
            Self::Preferred => "preferred",
            Self::Required => "required",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        })
    }
}

impl FromStr for TlsMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "disabled" => Ok(Self::Disabled),
            "preferred" => Ok(Self::Preferred),
            "required" => Ok(Self::Required),
            "verify-ca" => Ok(Self::VerifyCa),
            "verify-full" => Ok(Self::VerifyFull),
            _ => Err(format!("{text:?} is none of disabled, preferred, required, verify-ca, verify-full")),
        }
    }
}

/// TLS of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// What TLS must achieve.
    pub mode: TlsMode,
    /// PEM file with the certificate authorities to trust.
    pub ca: Option<PathBuf>,
    /// PEM file with the client's certificate chain.
    pub cert: Option<PathBuf>,
    /// PEM file with the client's private key.
    pub key: Option<PathBuf>,
}
