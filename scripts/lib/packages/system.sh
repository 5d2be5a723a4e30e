# shellcheck shell=bash
# A clean Debian: unpacked once into a cache, and started with systemd on an overlay that keeps what changes.

choose_debian() { DEBIAN_SUITE=$1 DEBIAN_CACHE=${BINLOGD_DEBIAN:-$HOME/.cache/binlogd/debian}/$1-1; }
choose_debian bookworm
BOOT_SECONDS_MAX=120

# False where a system cannot be started, and that is said.
can_start_system() {
    if [[ $(id -u) -ne 0 ]]; then skip 'only root can start a clean Debian'; return 1; fi
    if ! command -v apt-get >/dev/null; then skip 'a clean Debian is made with debootstrap, which this host has no apt-get to install'; return 1; fi
}

fetch_debian() {
    [[ ! -d $DEBIAN_CACHE ]] || return 0
    need debootstrap
    need flock util-linux
    mkdir -p "$(dirname "$DEBIAN_CACHE")"
    (
        # shellcheck source=lib/servers/fetch.sh
        source "$SCRIPTS/lib/servers/fetch.sh"
        flock 9
        [[ ! -d $DEBIAN_CACHE ]] || exit 0
        say "making a clean Debian $DEBIAN_SUITE in $DEBIAN_CACHE"
        rm -rf "$DEBIAN_CACHE.new"
        debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus "$DEBIAN_SUITE" "$DEBIAN_CACHE.new" "$(debian_mirror)" \
            >"$DEMO/log/debootstrap" 2>&1 || die_showing "$DEMO/log/debootstrap" 'debootstrap failed'
        mv "$DEBIAN_CACHE.new" "$DEBIAN_CACHE"
    ) 9>"$DEBIAN_CACHE.lock"
}

# new_debian FOLDER: a Debian of its own at FOLDER/root.
new_debian() {
    local folder=$1
    fetch_debian
    mkdir -p "$folder"/{changes,work,root}
    # Some kernels put no overlay upon an overlay.
    mount -t overlay overlay -o "lowerdir=$DEBIAN_CACHE,upperdir=$folder/changes,workdir=$folder/work" "$folder/root" 2>/dev/null ||
        cp -a "$DEBIAN_CACHE/." "$folder/root/"
    MADE+=("$folder/root")
}

# start_system FOLDER: starts systemd in the Debian at FOLDER/root, with this host's network. Sets SYSTEM_PID and LEADER.
start_system() {
    local folder=$1
    need systemd-nspawn systemd-container
    # Not registered: this host need not run systemd itself.
    systemd-nspawn --quiet --register=no --keep-unit --boot --directory="$folder/root" --bind-ro="$OLD:/packages/old" \
        --bind-ro="$NEW:/packages/new" </dev/null >"$DEMO/log/system" 2>&1 &
    SYSTEM_PID=$!
    until_true "$BOOT_SECONDS_MAX" "systemd starts in the clean Debian ($DEMO/log/system)" has_booted
}

has_booted() {
    local state
    kill -0 "$SYSTEM_PID" 2>/dev/null || die_showing "$DEMO/log/system" 'the clean Debian did not start'
    LEADER=$(pgrep --parent "$SYSTEM_PID") || return 1
    LEADER=${LEADER%%$'\n'*}
    # Of a degraded system systemctl tells by its exit code, too.
    state=$(inside systemctl is-system-running 2>/dev/null) || true
    [[ $state == running || $state == degraded ]]
}

# A command in the started system, as root.
inside() { nsenter --target "$LEADER" --all --root --wd -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"; }

end_system() {
    local root
    if [[ -n ${SYSTEM_PID:-} ]]; then
        kill -TERM "$SYSTEM_PID" 2>/dev/null || true
        for _ in {1..100}; do
            kill -0 "$SYSTEM_PID" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$SYSTEM_PID" 2>/dev/null || true
        wait "$SYSTEM_PID" 2>/dev/null || true
        SYSTEM_PID=
    fi
    for root in "${MADE[@]}"; do ! mountpoint --quiet "$root" || umount "$root" || umount --lazy "$root"; done
    MADE=()
}
MADE=()
