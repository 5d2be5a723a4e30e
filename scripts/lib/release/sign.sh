# shellcheck shell=bash
# The key, and what it signs. Each signature has the time of the commit, so that it is the same whenever it is made. RSA and
# Ed25519 sign alike each time; a token that signs with random numbers does not.

# Sets FINGERPRINT, KEY_OWNER, and writes the public key. A key that cannot sign is found before anything is built.
find_key() {
    local found=() listed
    [[ -n $KEY ]] || die '--key names the key that signs, and none is made here: RELEASING.md says how to make one'
    listed=$(gpg --batch --with-colons --list-secret-keys -- "$KEY" 2>/dev/null) || die "gpg has no secret key $KEY: gpg --list-secret-keys"
    mapfile -t found < <(awk -F: '$1 == "sec" { wanted = 1 } wanted && $1 == "fpr" { print $10; wanted = 0 }' <<<"$listed")
    [[ ${#found[@]} -eq 1 ]] || die "gpg has ${#found[@]} secret keys for '$KEY': name one by its fingerprint"
    FINGERPRINT=${found[0]}
    KEY_OWNER=$(awk -F: '$1 == "uid" && !owner { owner = $10 } END { print owner }' <<<"$listed" | sed 's/\\x3a/:/g')
    sign --detach-sign </dev/null >/dev/null ||
        die "gpg cannot sign with $FINGERPRINT as of $(date --date="@$SOURCE_DATE_EPOCH" --rfc-3339=seconds), the time of the commit:
a key that is younger than the commit or has expired signs nothing, and one with a passphrase asks for it (export GPG_TTY=\$(tty))"
}

# sign OPTION…: one signature of gpg, which warns of the time each time.
sign() {
    gpg --batch --yes --quiet --no-emit-version --local-user "$FINGERPRINT" --digest-algo SHA512 --faked-system-time "$SOURCE_DATE_EPOCH!" "$@" 2>"$WORK/gpg" ||
        { grep -v 'running with faked system time' "$WORK/gpg" >&2; return 1; }
}

# sign_file FILE: into FILE.asc.
sign_file() { sign --armor --output "$1.asc" --detach-sign "$1" || die "gpg did not sign $1"; }

# sign_rpm FILE: in the package itself, where rpm and dnf look for it.
sign_rpm() {
    # Debian's rpm looks for a gpg of another name.
    rpmsign --define "__gpg $(command -v gpg)" --define "_gpg_name $FINGERPRINT" --define '_gpg_digest_algo sha512' \
        --define "_gpg_sign_cmd_extra_args --batch --faked-system-time $SOURCE_DATE_EPOCH!" --addsign "$1" >"$WORK/rpmsign" 2>&1 ||
        die "rpmsign did not sign $1: $(cat "$WORK/rpmsign")"
}

public_key() { gpg --batch --armor --no-emit-version --export-options export-minimal --export "$FINGERPRINT"; }
