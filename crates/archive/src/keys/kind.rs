//! What a text is, by how it begins: a key in the wrong place is to be called by its name.

/// What a text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A public key of age, X25519.
    AgePublic,
    /// A private key of age, X25519.
    AgePrivate,
    /// A public key of SSH of a kind that encrypts.
    SshPublic,
    /// A private key of SSH, of whatever kind.
    SshPrivate,
    /// Something that age has encrypted.
    Encrypted,
    /// A public key of the named kind, which cannot be used.
    OtherPublic(String),
    /// A private key of a plugin of age, or of a kind that not every age knows.
    OtherPrivate,
    /// None of these.
    Unknown,
}

/// Kinds of SSH that only sign.
const SIGNING: [&str; 5] = ["ssh-dss", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-", "ssh-ed448"];

/// What the text is, or the file that begins with it.
pub(super) fn of(text: &[u8]) -> Kind {
    let begins =
        |with: &str| text.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with.as_bytes()));
    if begins("age-encryption.org/") || begins("-----BEGIN AGE ENCRYPTED FILE-----") {
        return Kind::Encrypted;
    }
    if begins("-----BEGIN ") || begins("---- BEGIN ") {
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let is_private = line.windows(11).any(|word| word == b"PRIVATE KEY");
        return if is_private { Kind::SshPrivate } else { Kind::Unknown };
    }
    if begins("AGE-SECRET-KEY-1") {
        return Kind::AgePrivate;
    }
    if begins("AGE-SECRET-KEY-") || begins("AGE-PLUGIN-") {
        return Kind::OtherPrivate;
    }
    let word = text.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    let word = String::from_utf8_lossy(word);
    match &*word {
        "ssh-ed25519" | "ssh-rsa" => Kind::SshPublic,
        _ if word.contains("-cert-v01@") || SIGNING.iter().any(|kind| word.starts_with(kind)) => {
            Kind::OtherPublic(word.into_owned())
        }
        // Bech32 has its 1 between the kind and the key, and none in the key.
        _ if word.starts_with("age1") => match word.rfind('1') {
            None | Some(3) => Kind::AgePublic,
            Some(end) => Kind::OtherPublic(word[..end].to_owned()),
        },
        _ => Kind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_begin() {
        for (text, kind) in [
            ("age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa", Kind::AgePublic),
            (
                "age1yubikey1qwt50d05nh5vutpdzmlg5wn80xq5negm4uj9ghv0snvdd3yysf5yw",
                Kind::OtherPublic("age1yubikey".into()),
            ),
            ("AGE-SECRET-KEY-1GQ9778", Kind::AgePrivate),
            ("age-secret-key-1gq9778", Kind::AgePrivate),
            ("AGE-SECRET-KEY-PQ-1GQ9778", Kind::OtherPrivate),
            ("AGE-PLUGIN-YUBIKEY-1GQ9", Kind::OtherPrivate),
            ("ssh-ed25519 AAAAC3Nza dba@db1", Kind::SshPublic),
            ("ssh-rsa AAAA", Kind::SshPublic),
            ("sk-ssh-ed25519@openssh.com AAAA", Kind::OtherPublic("sk-ssh-ed25519@openssh.com".into())),
            ("ecdsa-sha2-nistp256 AAAA", Kind::OtherPublic("ecdsa-sha2-nistp256".into())),
            ("ssh-rsa-cert-v01@openssh.com AAAA", Kind::OtherPublic("ssh-rsa-cert-v01@openssh.com".into())),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb", Kind::SshPrivate),
            ("-----BEGIN RSA PRIVATE KEY-----\n", Kind::SshPrivate),
            ("-----BEGIN PUBLIC KEY-----\nPRIVATE KEY", Kind::Unknown),
            ("-----BEGIN AGE ENCRYPTED FILE-----\n", Kind::Encrypted),
            ("age-encryption.org/v1\n", Kind::Encrypted),
            ("hunter2", Kind::Unknown),
            ("", Kind::Unknown),
        ] {
            assert_eq!(of(text.as_bytes()), kind, "{text}");
        }
    }
}
