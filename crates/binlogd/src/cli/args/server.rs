//! How a verb logs in to a server that it asks.

use crate::cli::args::login::ServerLogin;
use clap::Args;
use std::path::PathBuf;
use wire::{ConnectOptions, Secret, TlsMode};

/// Password and encryption.
#[derive(Debug, Args)]
pub(in crate::cli) struct ServerFlags {
    /// File with the server's password, alone on its line; else the variable BINLOGD_PASSWORD counts
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Encryption of this command's connection to the server: disabled, preferred, required, verify-ca or verify-full
    #[arg(long, value_name = "MODE", default_value = "preferred")]
    tls: TlsMode,
    /// PEM file with the authorities that --tls verify-ca and verify-full trust
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
}

impl ServerFlags {
    /// The server of `argument`, and who to be there.
    ///
    /// # Errors
    /// What is wrong with the command line.
    pub(in crate::cli) fn options(
        &self,
        argument: &str,
        purpose: &str,
        url: &Secret,
    ) -> Result<ConnectOptions, String> {
        let login = ServerLogin {
            argument,
            purpose,
            url,
            password_file: self.password_file.as_deref(),
            tls: self.tls,
            tls_ca: self.tls_ca.as_ref(),
            asks: true,
        };
        login.options()
    }
}
