# shellcheck shell=bash
# Two releases, signed by scripts/release and served over HTTP, as a clean Debian of each age meets them: the two commands of
# docs/install.md to the first acknowledged commit, changed files that are refused, and the upgrade under load.

try_repository() {
    local suite
    can_start_system || return 0
    release_tools
    make_keys
    serve "$DEMO/www"
    step 'signing two releases'
    sign_packages "$OLD" 0
    sign_packages "$NEW" 1
    WAY=apt
    for suite in bookworm trixie; do try_suite "$suite"; done
    WAY=dpkg
    choose_debian bookworm
}

# sign_packages FOLDER SECONDS: as of so many seconds after the commit. apt takes no list that is older than the one it has.
sign_packages() {
    SOURCE_DATE_EPOCH=$(($(git log -1 --format=%ct) + $2)) RELEASE_DIR=$DEMO/release/${1##*/} "$SCRIPTS/release" --key test@ --url "$URL" packages "$1" \
        >"$DEMO/log/release" 2>&1 || die_showing "$DEMO/log/release" 'scripts/release failed'
}

# hand_out FOLDER: the release of what scripts/dist put into FOLDER is what is published.
hand_out() { rm -rf "$DEMO/www" && cp -r "$DEMO/release/${1##*/}" "$DEMO/www"; }

# try_suite NAME: of Debian.
try_suite() {
    local started installed_ms commands changed
    choose_debian "$1"
    # Of what was tried before.
    rm -rf "$DEMO"/{source,ledger,copy}
    DEBIAN=$DEMO/$1/root
    new_debian "$DEMO/$1"
    ln -sfn "$DEBIAN/var/lib/binlogd" "$DEMO/copy"
    hand_out "$OLD"
    step "starting a clean Debian $1, with systemd"
    start_system "$DEMO/$1"
    # What the page counts on, and an administrator's yes.
    inside sh -c 'apt-get update && apt-get install --yes --no-install-recommends curl && echo "APT::Get::Assume-Yes yes;" >/etc/apt/apt.conf.d/yes' >"$DEMO/log/apt" 2>&1 ||
        die_showing "$DEMO/log/apt" 'the clean Debian cannot install curl'
    commands=$(grep -E '^sudo (curl .*binlogd\.sources|apt update)' docs/install.md | sed -e "s#https://PUBLISHER.example#$URL#" -e 's/sudo //g')
    expect "$(wc -l <<<"$commands")" 2 'commands of docs/install.md'
    step "in that Debian: ${commands//$'\n'/; }"
    started=$(now_us)
    inside sh -ec "$commands" >"$DEMO/log/apt" 2>&1 || die_showing "$DEMO/log/apt" 'the commands of docs/install.md fail'
    installed_ms=$((($(now_us) - started) / 1000))
    check_installed
    try_newcomer
    step "from the first command to the first acknowledged commit: $(((installed_ms + NEWCOMER_MS) / 1000)) s"
    hand_out "$NEW"
    with_changed_byte "$DEMO/www/apt/dists/stable/InRelease" refused 'repository is not updated' inside apt-get -o APT::Update::Error-Mode=any update
    changed=$(echo "$DEMO"/www/apt/pool/main/b/binlogd/*_amd64.deb)
    with_changed_byte "$changed" refused 'Hash Sum mismatch' apt_upgrade
    expect "$(inside dpkg-query -W -f '${Version}' binlogd)" "$VERSION-1" 'the version after what was refused'
    start_source
    configure "$DEBIAN/etc/binlogd"
    in_unit systemctl start binlogd
    until_true "$ATTACH_SECONDS_MAX" 'binlogd receives, with semi-sync' receives
    upgrade_under_load
    compare_with_ledger
    end_system
    end_source
}

# As docs/install.md has it.
apt_upgrade() { inside sh -ec 'apt update; apt install binlogd'; }
