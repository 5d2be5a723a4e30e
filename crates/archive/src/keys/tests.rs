use super::*;
use crate::stock;
use age::secrecy::{ExposeSecret as _, SecretString};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Nobody who could be asked.
fn nobody(_: &str) -> Option<SecretString> {
    None
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// A private key of age, and its public key.
fn age_key() -> (String, String) {
    let identity = age::x25519::Identity::generate();
    (identity.to_string().expose_secret().to_owned(), identity.to_public().to_string())
}

/// A key that ssh-keygen made; `None` when there is none here.
fn ssh_key(folder: &Path, kind: &str, passphrase: &str) -> Option<PathBuf> {
    let path = folder.join(format!("{kind}-{}", passphrase.len()));
    let name = path.to_str().unwrap();
    // One round of stretching: a test has no secret to keep.
    stock::ssh_keygen(&["-q", "-t", kind, "-a", "1", "-C", "dba@db1", "-N", passphrase, "-f", name])?;
    Some(path)
}

fn public(path: &Path) -> PathBuf {
    path.with_extension("pub")
}

/// Whether what one encrypts the other decrypts.
fn fits(recipients: &Recipients, identities: &Identities) -> bool {
    let mut writer = recipients.encryptor().unwrap().wrap_output(Vec::new()).unwrap();
    writer.write_all(b"plain").unwrap();
    let object = writer.finish().unwrap();
    age::Decryptor::new_buffered(&object[..]).unwrap().decrypt(identities.iter()).is_ok()
}

/// The text of an error, and of its debugging form.
fn texts(error: &KeyError) -> String {
    format!("{error}\n{error:?}")
}

#[test]
fn recipients_are_read_from_strings_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (age_key().1, age_key().1);
    let mut recipients = Recipients::new();
    assert!(recipients.is_empty());
    recipients.add(&format!(" {one}\n"), "archive.recipients").unwrap();
    let file = write(folder.path(), "keys", format!("# ours\r\n\r\n  {two}\r\n# again\n{one}"));
    recipients.add_file(&file).unwrap();
    assert_eq!(recipients.labels(), [one, two], "each once");
    assert_eq!(format!("{recipients:?}"), format!("{:?}", recipients.labels()));

    let error = recipients.add_file(&write(folder.path(), "none", "# nothing\n")).unwrap_err();
    assert!(matches!(error.wrong, Wrong::Empty), "{error}");
    let error = recipients.add_file(&folder.path().join("absent")).unwrap_err();
    assert!(error.to_string().contains("absent: it cannot be read"), "{error}");
    let error = recipients.add_file(&write(folder.path(), "long", vec![b'#'; 2 << 20])).unwrap_err();
    assert!(matches!(error.wrong, Wrong::TooLong), "{error}");
}

#[test]
fn keys_of_ssh_are_called_as_ssh_keygen_calls_them() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["ed25519", "rsa"] {
        let Some(path) = ssh_key(folder.path(), kind, "") else { return };
        let mut recipients = Recipients::new();
        recipients.add_file(&public(&path)).unwrap();
        let listed = stock::ssh_keygen(&["-l", "-f", path.to_str().unwrap()]).unwrap();
        let listed = String::from_utf8(listed).unwrap();
        assert_eq!(recipients.labels(), [listed.split(' ').nth(1).unwrap()]);

        let mut identities = Identities::new();
        identities.add_file(&path, &mut nobody).unwrap();
        assert_eq!(identities.labels(), recipients.labels());
        assert!(fits(&recipients, &identities));
    }
}

#[test]
fn a_protected_key_of_ssh_asks_for_its_passphrase() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["ed25519", "rsa"] {
        let Some(path) = ssh_key(folder.path(), kind, "correct horse") else { return };
        // Everybody may read it: that is what the passphrase is for.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let mut identities = Identities::new();
        let error = identities.add_file(&path, &mut nobody).unwrap_err();
        assert!(matches!(error.wrong, Wrong::NoPassphrase), "{error}");
        let error = identities.add_file(&path, &mut |_| Some("wrong".into())).unwrap_err();
        assert!(matches!(error.wrong, Wrong::WrongPassphrase), "{error}");
        let mut asked = Vec::new();
        let mut ask = |what: &str| {
            asked.push(what.to_owned());
            Some("correct horse".into())
        };
        identities.add_file(&path, &mut ask).unwrap();
        assert_eq!(asked, [path.to_str().unwrap()]);
        assert_eq!(identities.remarks(), [] as [String; 0]);
        let mut recipients = Recipients::new();
        recipients.add_file(&public(&path)).unwrap();
        assert!(fits(&recipients, &identities));
    }
}

#[test]
fn a_file_of_keys_may_be_encrypted_by_a_passphrase() {
    let folder = tempfile::tempdir().unwrap();
    let (secret, label) = age_key();
    let mut recipient = age::scrypt::Recipient::new("correct horse".into());
    recipient.set_work_factor(4);
    let text = format!("# created: today\n# public key: {label}\n{secret}\n");
    for armored in [false, true] {
        let encryptor = age::Encryptor::with_recipients(std::iter::once(&recipient as &dyn age::Recipient));
        let format = if armored { age::armor::Format::AsciiArmor } else { age::armor::Format::Binary };
        let output = age::armor::ArmoredWriter::wrap_output(Vec::new(), format).unwrap();
        let mut writer = encryptor.unwrap().wrap_output(output).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
        let file = writer.finish().unwrap().finish().unwrap();
        let path = write(folder.path(), "key.age", &file);

        let mut identities = Identities::new();
        identities.add_file(&path, &mut |_| Some("correct horse".into())).unwrap();
        assert_eq!(identities.labels(), std::slice::from_ref(&label));
        let error = identities.add_file(&path, &mut |_| Some("wrong".into())).unwrap_err();
        assert!(matches!(error.wrong, Wrong::WrongPassphrase), "{error}");
        let error = identities.add_file(&path, &mut nobody).unwrap_err();
        assert!(matches!(error.wrong, Wrong::NoPassphrase), "{error}");
        let error = identities.add_unattended(&path).unwrap_err();
        assert!(matches!(error.wrong, Wrong::Protected) && error.place.ends_with("key.age"), "{error}");
        let cut = write(folder.path(), "cut.age", &file[..file.len() - 40]);
        let error = identities.add_file(&cut, &mut |_| Some("correct horse".into())).unwrap_err();
        assert!(matches!(error.wrong, Wrong::DamagedEncrypted), "{error}");
        let error = Recipients::new().add_file(&path).unwrap_err();
        assert!(matches!(error.wrong, Wrong::EncryptedRecipients), "{error}");
    }
}

#[test]
fn a_file_that_is_encrypted_to_a_key_is_no_identity() {
    let folder = tempfile::tempdir().unwrap();
    let mut recipients = Recipients::new();
    recipients.add(&age_key().1, "here").unwrap();
    let mut writer = recipients.encryptor().unwrap().wrap_output(Vec::new()).unwrap();
    writer.write_all(age_key().0.as_bytes()).unwrap();
    let path = write(folder.path(), "key.age", writer.finish().unwrap());
    let error = Identities::new().add_file(&path, &mut nobody).unwrap_err();
    assert!(matches!(error.wrong, Wrong::EncryptedToKey), "{error}");
}

#[test]
fn a_private_key_among_public_ones_is_refused_and_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (secret, _) = age_key();
    let file = write(folder.path(), "keys", format!("# mine\n{secret}\n"));
    for error in [
        Recipients::new().add(&secret, "archive.recipients").unwrap_err(),
        Recipients::new().add(&secret.to_lowercase(), "archive.recipients").unwrap_err(),
        Recipients::new().add_file(&file).unwrap_err(),
    ] {
        let text = texts(&error);
        assert!(text.contains("private key") && text.contains("age-keygen -y"), "{text}");
        assert!(!text.to_uppercase().contains(&secret[20..30]), "{text}");
    }
    let error = Recipients::new().add_file(&file).unwrap_err();
    assert!(error.place.ends_with("keys, line 2"), "{error}");

    let Some(path) = ssh_key(folder.path(), "ed25519", "") else { return };
    let text = fs::read_to_string(&path).unwrap();
    for error in
        [Recipients::new().add_file(&path).unwrap_err(), Recipients::new().add(&text, "x").unwrap_err()]
    {
        let shown = texts(&error);
        assert!(shown.contains("private key of SSH") && shown.contains(".pub"), "{shown}");
        assert!(!text.lines().skip(1).any(|line| shown.contains(line)), "{shown}");
    }
}

#[test]
fn a_passphrase_is_no_recipient_and_is_not_shown() {
    let error = Recipients::new().add("correct horse", "archive.recipients").unwrap_err();
    let text = texts(&error);
    assert!(text.contains("scrypt") && text.contains("age -p") && !text.contains("horse"), "{text}");
}

#[test]
fn public_keys_that_cannot_be_used_are_refused_by_name() {
    let (_, whole) = age_key();
    let damaged = format!("{}{}", &whole[..20], &whole[21..]);
    for (key, expected) in [
        (&*damaged, "begins as a public key of age"),
        ("age1yubikey1qwt50d05nh5vutpdzmlg5wn80xq5negm4uj9ghv0snvdd3yysf5yw", "kind age1yubikey"),
        ("ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTI= a@b", "kind ecdsa-sha2-nistp256"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC", "begins as a public key of SSH"),
        ("ssh-rsa", "begins as a public key of SSH"),
    ] {
        let error = Recipients::new().add(key, "here").unwrap_err().to_string();
        assert!(error.starts_with("here: ") && error.contains(expected), "{key}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short");
    let name = path.to_str().unwrap();
    if stock::ssh_keygen(&["-q", "-t", "rsa", "-b", "1024", "-N", "", "-f", name]).is_none() {
        return;
    }
    let error = Recipients::new().add_file(&public(&path)).unwrap_err();
    assert!(matches!(error.wrong, Wrong::RsaLength("short")), "{error}");
}

#[test]
fn a_public_key_among_private_ones_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (secret, label) = age_key();
    let path = write(folder.path(), "keys", format!("{secret}\n{label}\n"));
    let error = Identities::new().add_file(&path, &mut nobody).unwrap_err();
    assert!(matches!(error.wrong, Wrong::Public) && error.place.ends_with("line 2"), "{error}");
    for (text, expected) in [
        ("hunter2\n", "no private key"),
        ("# only this\n", "no key in it"),
        ("AGE-PLUGIN-YUBIKEY-1QQQQ\n", "AGE-PLUGIN"),
        (&format!("{}\n", &secret[..40]), "damaged"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\n", "private key of SSH and cannot be read"),
        ("age-encryption.org/v1\n-> X25519", "encrypted and is none"),
    ] {
        let path = write(folder.path(), "wrong", text);
        let error = Identities::new().add_file(&path, &mut nobody).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
        assert!(!texts(&error).contains(&secret[20..30]) && !texts(&error).contains("hunter2"), "{error:?}");
    }
    let Some(path) = ssh_key(folder.path(), "ed25519", "") else { return };
    let error = Identities::new().add_file(&public(&path), &mut nobody).unwrap_err();
    assert!(matches!(error.wrong, Wrong::Public), "{error}");
}

#[test]
fn private_keys_that_everybody_can_read_are_remarked_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let ((one, label), (two, other)) = (age_key(), age_key());
    let path = write(folder.path(), "keys", format!("# two\n{one}\n\n{two}\n{one}\n"));
    let mut identities = Identities::new();
    identities.add_file(&path, &mut nobody).unwrap();
    assert_eq!(identities.labels(), [label, other]);
    assert_eq!(identities.remarks(), [] as [String; 0]);
    let shown = format!("{identities:?}");
    assert!(!shown.contains("SECRET") && shown.contains("age1"), "{shown}");

    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    identities.add_file(&path, &mut nobody).unwrap();
    let [remark] = identities.remarks() else { panic!("{:?}", identities.remarks()) };
    assert!(remark.contains("mode 0644") && remark.contains("chmod"), "{remark}");
}
