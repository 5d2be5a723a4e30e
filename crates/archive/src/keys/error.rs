//! Keys that cannot be used.

use super::file::FILE_BYTES_MAX;

/// A key that cannot be used. The text says what is to be done, and shows nothing of what was given as a key: it may be a secret
/// that stands in the wrong place.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {wrong}")]
pub struct KeyError {
    /// Where it stands: a file, with the number of the line, or a key of the configuration.
    pub place: String,
    /// What is wrong.
    pub wrong: Wrong,
}

impl KeyError {
    pub(super) fn new(place: impl Into<String>, wrong: Wrong) -> KeyError {
        KeyError { place: place.into(), wrong }
    }
}

/// What is wrong with a key, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Wrong {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// A file so long is none of keys.
    #[error("it has more than {} KiB, so it is no file of keys", FILE_BYTES_MAX >> 10)]
    TooLong,
    /// The file names no key.
    #[error("there is no key in it")]
    Empty,
    /// A private key of age where a public one is to be.
    #[error(
        "this is a private key (an identity of age), and what encrypts needs the public one: `age-keygen -y FILE` prints it. \
         Take the private key away from here; if others could read it here, make a new one"
    )]
    PrivateAge,
    /// A private key of SSH where a public one is to be.
    #[error(
        "this is a private key of SSH, and what encrypts needs the public one: it is in the file of the same name with .pub, and \
         `ssh-keygen -y -f FILE` prints it. Take the private key away from here; if others could read it here, make a new one"
    )]
    PrivateSsh,
    /// A file that is encrypted, where a public key is to be.
    #[error("this is a file that age has encrypted, and what encrypts needs a public key (age1… or ssh-…)")]
    EncryptedRecipients,
    /// Neither a key nor a line that begins as one.
    #[error(
        "this is no public key: one begins with age1, ssh-ed25519 or ssh-rsa. A passphrase cannot be one: age stretches it with \
         scrypt, about a second for each object, and an archive makes an object every few seconds. Make a key with age-keygen, \
         protect its file by the passphrase (age-keygen | age -p > key.age), and give its public key here"
    )]
    NotPublic,
    /// A public key that is damaged.
    #[error("this begins as a public key of age and is none: {0}. Copy it again, whole")]
    DamagedAge(&'static str),
    /// A public key of SSH that cannot be read.
    #[error("this begins as a public key of SSH and is none: copy the line of the .pub file again, whole")]
    DamagedSsh,
    /// A key of a kind that does not encrypt, or that age does not know.
    #[error(
        "a key of the kind {0} cannot be used: use a key that `age-keygen` makes, or one of SSH of the kind ssh-ed25519 or ssh-rsa"
    )]
    Unsupported(String),
    /// An RSA key of a length that is refused.
    #[error("this RSA key is too {0}: use one of 2048 to 4096 bits, or better one that `age-keygen` makes")]
    RsaLength(&'static str),
    /// A public key where a private one is to be.
    #[error(
        "this is a public key, and what decrypts needs the private one: the file that age-keygen wrote, or for SSH the file of the \
         same name without .pub"
    )]
    Public,
    /// Not a private key.
    #[error(
        "this is no private key: one of age begins with AGE-SECRET-KEY-1, one of SSH with -----BEGIN OPENSSH PRIVATE KEY-----"
    )]
    NotPrivate,
    /// A private key that is damaged. What is wrong with it would show a part of it.
    #[error("this begins as a private key of age and is none: it is damaged, or not whole")]
    DamagedIdentity,
    /// A private key of SSH that cannot be read.
    #[error(
        "this begins as a private key of SSH and cannot be read: it is damaged, or of a kind that age does not know (ssh-ed25519 and \
         ssh-rsa it does). An older form is rewritten by `ssh-keygen -p -f FILE`"
    )]
    DamagedSshIdentity,
    /// A private key of SSH that is encrypted in a way that age does not know.
    #[error(
        "this private key of SSH is protected in a way that age does not know: `ssh-keygen -p -f FILE` rewrites it"
    )]
    UnknownProtection,
    /// A file that is encrypted to a key.
    #[error("this file is encrypted, and not by a passphrase: decrypt it first (age -d -i KEY FILE)")]
    EncryptedToKey,
    /// A file that age has encrypted and that is damaged.
    #[error("this begins as a file that age has encrypted and is none: it is damaged, or not whole")]
    DamagedEncrypted,
    /// A file whose passphrase would take too long.
    #[error(
        "its passphrase is stretched so far (2^{0}) that it would take minutes: make the file again with `age -p`"
    )]
    TooMuchWork(u8),
    /// Nobody could be asked for the passphrase.
    #[error("it is protected by a passphrase, and there is nobody to ask for it: run this at a terminal")]
    NoPassphrase,
    /// A passphrase protects what a daemon is to use.
    #[error(
        "it is protected by a passphrase, and nobody can be asked for it here: give a file without one, which only the user that \
         binlogd runs as can read. `age -d -o NEW OLD` writes one of age, `ssh-keygen -p -f FILE` one of SSH"
    )]
    Protected,
    /// A key that signs and that everybody can read.
    #[error(
        "everybody on this machine can read this key (mode {0:04o}), and with it sign as this machine: `chmod o-rwx FILE`; if others could \
         read it, make a new one"
    )]
    OpenToAll(u32),
    /// A key that signs and that a passphrase protects.
    #[error(
        "this key is protected by a passphrase, and nobody can be asked for it here: `openssl pkey -in OLD -out NEW` writes one without"
    )]
    ProtectedSigning,
    /// Not a private key that signs.
    #[error(
        "this is {0}, and what signs is a private key of Ed25519: `openssl genpkey -algorithm ed25519 -out FILE` makes one"
    )]
    NotSigning(&'static str),
    /// Not a public key of who signs.
    #[error(
        "this is {0}, and what is wanted is the public key of who signs: it begins with MCowBQYDK2VwAyEA. binlogd logs that of sign_key, \
         and `openssl pkey -in FILE -pubout` prints it"
    )]
    NotVerifying(&'static str),
    /// The passphrase does not fit.
    #[error("the passphrase is not the one by which it is protected")]
    WrongPassphrase,
}
