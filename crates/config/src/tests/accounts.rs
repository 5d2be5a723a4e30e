//! Who may read and who may see: accounts of readers and of the admin address, certificates.

use super::*;

#[test]
fn readers_have_accounts() {
    let text = format!(
        "{SOURCE}[serve]\nlisten = \"[::1]:3307\"\nmax_connections = 7\n\
         [[serve.user]]\nname = \"a\"\npassword = \"s\"\n\
         [[serve.user]]\nname = \"b\"\npassword_hash = \"*6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9\"\nsources = [\"default\"]\n\
         privileges = [\"read\", \"purge\"]\n"
    );
    let serve = parse(&text).unwrap().config.serve;
    let hash = "*6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9";
    let user = |name: &str, proof, privileges| ServeUser {
        name: name.to_owned(),
        proof,
        sources: vec!["default".to_owned()],
        privileges,
        slot: None,
        bounds: Bounds::default(),
    };
    let users = vec![
        user("a", Proof::Password(Secret::new("s")), Privileges::READ),
        user("b", Proof::Hash(Secret::new(hash)), Privileges { read: true, purge: true, control: false }),
    ];
    let listen = Some("[::1]:3307".parse().unwrap());
    assert_eq!(serve, ServeConfig { listen, max_connections: 7, users, ..no_serving() });
}

#[test]
fn what_is_wrong_with_readers_is_said() {
    let serve = |text: &str| errors(&format!("{SOURCE}[serve]\n{text}\n"));
    let user = |text: &str| serve(&format!("[[serve.user]]\n{text}"));
    let named = "name = \"a\"\npassword = \"hunter2\"\n";
    for (error, words) in [
        (serve("require_tls = true\nauto_generate_certs = false"), "require_tls needs a certificate"),
        (serve("listen = \"here\""), "must be an IP address and port, such as 127.0.0.1:3307"),
        (serve("user = 1"), "write it as [[serve.user]]"),
        (serve("[serve.user]\nname = \"a\""), "write [[serve.user]], with two brackets"),
        (user("password = \"x\""), "[[serve.user]] lacks name"),
        (
            user(&format!("{named}privileges = [\"super\"]")),
            "must be a list of \"read\", \"purge\", \"control\", \"all\"",
        ),
        (user(&format!("{named}privileges = []")), "must be a list of"),
        (user(&format!("{named}stop_before = \"2026-11-23\"")), "can be a day and a GTID of MariaDB"),
        (user(&format!("{named}stop_after = \"soon\"")), "must be a GTID set of MySQL"),
        (
            user(&format!("{named}stop_after = \"0-1-2\"\nstop_before = \"0-1-2\"")),
            "dumps stop at one point: remove one of them",
        ),
        (user(&format!("{named}delay = 5")), "delay = 5"),
        (user("name = \"a\""), "[[serve.user]] lacks a password: add password_file"),
        (
            user("name = \"a\"\npassword_hash = \"$A$005$x\""),
            "a salted hash ($A$…, $5$…) can only be checked by",
        ),
        (user("name = \"a\"\npassword_hash = \"x\""), "a password hash has one of these forms"),
        (user(&format!("{named}sources = [\"orders\"]")), "there is no [[source]] with the name \"orders\""),
        (user(&format!("{named}[[serve.user]]\n{named}")), "name = \"a\" is taken by the [[serve.user]] at"),
        (user(&format!("{named}password_env = \"X\"")), "both give the password"),
    ] {
        assert!(error.contains(words), "{words}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    let two = "[[source]]\nname = \"b\"\nhosts = [\"db2\"]\nuser = \"r\"\n";
    let several = errors(&format!("{SOURCE}{two}[[serve.user]]\n{named}"));
    assert!(several.contains("lacks sources: there are several"), "{several}");
    let both = errors(&format!("{SOURCE}{two}[[serve.user]]\n{named}sources = [\"default\", \"b\"]\n"));
    assert!(
        both.contains("a user is served one source")
            && both.contains("[[serve.user]] with a name of its own"),
        "{both}"
    );
    let listen = "[serve]\nlisten = \"127.0.0.1:3307\"\n";
    let other = two.replace("\"r\"", "\"other\"");
    assert!(parse(&format!("{SOURCE}{other}{listen}")).is_ok());
    assert!(parse(&format!("{SOURCE}{other}")).is_ok());
    let user = parse(SOURCE).unwrap().config.sources[0].user.clone();
    let same = two.replace("\"r\"", &format!("\"{user}\""));
    assert!(parse(&format!("{SOURCE}{same}")).is_ok(), "nobody is served");
    let shared = errors(&format!("{SOURCE}{same}{listen}"));
    assert!(shared.contains("cannot say which they want: give readers accounts of their own"), "{shared}");
}

#[test]
fn a_certificate_for_readers_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let make = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (one, other) = (make(), make());
    write("cert.pem", &one.cert.pem());
    write("key.pem", &one.signing_key.serialize_pem());
    write("foreign.pem", &other.signing_key.serialize_pem());
    write("empty.pem", "");
    let parse = |cert: &str, key: &str| {
        let text = format!("{SOURCE}[serve]\ntls_cert = \"{cert}\"\ntls_key = \"{key}\"\n");
        Config::parse(&text, &folder.path().join("b.toml"), &|_| None)
    };
    parse("cert.pem", "key.pem").unwrap();
    for (cert, key, words) in [
        ("cert.pem", "foreign.pem", "and tls_key the private key of that certificate"),
        ("empty.pem", "key.pem", "tls_cert must hold the server's certificate"),
        ("cert.pem", "empty.pem", "cannot use tls_key file"),
        ("none.pem", "key.pem", "cannot be read: No such file"),
    ] {
        let error = parse(cert, key).unwrap_err();
        assert!(error.problems.len() == 1 && error.to_string().contains(words), "{words}: {error}");
    }
}

#[test]
fn users_of_the_admin_address_are_read_and_their_passwords_do_not_leave_in_clear() {
    let admin = |listen: &str, more: &str| {
        parse(&format!("[admin]\nlisten = \"{listen}\"\n{more}{SOURCE}")).map(|loaded| loaded.config.admin)
    };
    let user = "[[admin.user]]\nname = \"dba\"\npassword = \"secret\"\n";
    assert_eq!(admin("127.0.0.1:1", user).unwrap().users[0].name, "dba");
    assert!(admin("10.1.2.3:1", "").unwrap().users.is_empty(), "whoever reaches it may read, as before");
    let refused = admin("10.1.2.3:1", user).unwrap_err().to_string();
    assert!(refused.contains("[[admin.user]] needs tls_cert and tls_key"), "{refused}");
    assert!(admin("10.1.2.3:1", "write = false\n").is_ok());
    for near in ["127.0.0.1:1", "[::1]:1"] {
        assert!(admin(near, "write = true\n").unwrap().write, "who is on this machine may");
    }
    for far in ["10.1.2.3:1", "0.0.0.0:1", "[::]:1"] {
        let refused = admin(far, "write = true\n").unwrap_err().to_string();
        assert!(
            refused.contains("write = true needs an [[admin.user]] where listen is no loopback"),
            "{refused}"
        );
    }
    let writes =
        admin("[::1]:1", &format!("write = true\n{user}write = true\n{}", user.replace("dba", "b"))).unwrap();
    assert_eq!(writes.users.iter().map(|user| user.write).collect::<Vec<_>>(), [true, false]);
    let text = format!("[admin]\n{user}write = true\n{SOURCE}");
    let warnings = parse(&text).unwrap().warnings;
    let warning =
        warnings.iter().map(ToString::to_string).find(|warning| warning.contains("does nothing without"));
    assert!(warning.is_some_and(|warning| warning.contains("b.toml:5")), "{warnings:?}");
    let twice = admin("[::1]:1", &user.repeat(2)).unwrap_err().to_string();
    assert!(twice.contains("is taken by the [[admin.user]]"), "{twice}");
    let nobody = admin("[::1]:1", "[[admin.user]]\nname = \"dba\"\n").unwrap_err().to_string();
    assert!(nobody.contains("lacks a password"), "{nobody}");
}

#[test]
fn tls_files_must_exist_and_fit_the_mode() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("b.toml");
    std::fs::write(folder.path().join("a.pem"), "").unwrap();
    let parse = |lines: &str| Config::parse(&format!("{SOURCE}{lines}"), &config, &|_| None);
    let at = config.display();
    for (lines, message) in [
        (
            "tls_ca = \"a.pem\"",
            "4:10: tls_ca is not used while tls is preferred: set tls to verify-ca or verify-full, or remove tls_ca",
        ),
        ("tls_cert = \"a.pem\"", "4:12: tls_cert needs tls_key, its private key"),
        ("tls_key = \"a.pem\"", "4:11: tls_key needs tls_cert, the certificate that it belongs to"),
        (
            "tls = \"disabled\"\ntls_cert = \"a.pem\"\ntls_key = \"a.pem\"",
            "5:12: tls_cert and tls_key are not used while tls is disabled",
        ),
        (
            "tls = \"verify-ca\"\ntls_ca = \"none.pem\"",
            "5:10: tls_ca = \"none.pem\": cannot be read: No such file or directory (os error 2)",
        ),
        ("tls = \"verify-ca\"\ntls_ca = \".\"", "5:10: tls_ca = \".\": is a folder, not a PEM file"),
        ("tls = \"verify-ca\"\ntls_ca = 1", "5:10: tls_ca = 1: must be a path"),
    ] {
        assert_eq!(parse(lines).expect_err(lines).to_string(), format!("{at}:{message}"), "{lines}");
    }
    let loaded =
        parse("tls = \"verify-full\"\ntls_ca = \"a.pem\"\ntls_cert = \"a.pem\"\ntls_key = \"a.pem\"")
            .unwrap();
    let file = Some(folder.path().join("a.pem"));
    assert_eq!(
        loaded.config.sources[0].tls,
        TlsOptions { mode: TlsMode::VerifyFull, ca: file.clone(), cert: file.clone(), key: file }
    );
    assert!(
        loaded.warnings[0].to_string().contains("a.pem is a private key and others"),
        "{:?}",
        loaded.warnings
    );
}
