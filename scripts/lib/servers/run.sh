# shellcheck shell=bash
# shellcheck disable=SC2153 # KIND, CLIENT and BINLOG are load_server's.
#
# Start, stop, restart. A server's folder DIR holds
#   data/ error.log tls/ tmp/ mysqld.sock   the server's own
#   mysql mysqlbinlog mysqldump             wrappers of the client programs
#   server.env                              what start printed
#   server.state                            what restart needs: name, port, server id, socket, extra options

# Far longer than a start takes on a busy machine: a server that died is seen at once.
START_SECONDS_MAX=120
STOP_SECONDS=60
# A socket's path must fit 108 bytes with its final zero; the server needs a few for names of its own beside it.
SOCKET_BYTES_MAX=100

# --- commands --------------------------------------------------------------------------------------------------------

command_start() {
    [[ $# -gt 0 && $1 != -* ]] || die "usage: scripts/servers start NAME --dir DIR [--port N] [--server-id N] [--data-from DIR2] [-- OPTIONS…]"
    local NAME=$1 DIR='' PORT='' SERVER_ID='' SOCKET='' EXTRA=() data_from=''
    shift
    while [[ $# -gt 0 ]]; do
        case $1 in
            --) shift; EXTRA=("$@"); break ;;
            --dir | --port | --server-id | --data-from)
                [[ $# -gt 1 ]] || die "$1 wants a value"
                case $1 in
                    --dir) DIR=$2 ;;
                    --port) PORT=$2 ;;
                    --server-id) SERVER_ID=$2 ;;
                    --data-from) data_from=$2 ;;
                esac
                shift 2 ;;
            *) die "start does not know $1 (options for mysqld go after --)" ;;
        esac
    done
    [[ -n $DIR ]] || die "start needs --dir DIR"
    [[ ! -e $DIR/data ]] || die "$DIR holds a server already: restart it, or choose another folder"
    fetch "$NAME"
    mkdir -p "$DIR"
    DIR=$(cd "$DIR" && pwd -P)
    local chosen=$PORT
    [[ -n $PORT ]] || PORT=$(reserve_port "$DIR")
    : "${SERVER_ID:=$PORT}"
    SOCKET=$(socket_path "$DIR")
    load_server "$NAME" "$(home_of "$NAME")"
    copy_data "${data_from:-}"
    copy_tls
    save_state
    # Between our look at a port and the server's bind another program may take it: then choose again.
    local tries=5
    until launch; do
        tries=$((tries - 1))
        if lost_its_thread && [[ $tries -gt 0 ]]; then continue; fi
        if [[ -n $chosen ]] || ! log_says 'Address already in use'; then start_failed; fi
        PORT=$(reserve_port "$DIR")
        save_state
    done
}

command_restart() {
    [[ $# -gt 0 ]] || die "usage: scripts/servers restart DIR [-- OPTIONS…]"
    local DIR=$1 NAME PORT SERVER_ID SOCKET EXTRA
    shift
    [[ -f $DIR/server.state ]] || die "there is no server in $DIR: start one first"
    DIR=$(cd "$DIR" && pwd -P)
    # shellcheck source=/dev/null
    source "$DIR/server.state"
    if [[ $# -gt 0 ]]; then
        [[ $1 == -- ]] || die "restart does not know $1 (options for mysqld go after --)"
        shift
        EXTRA=("$@")
    fi
    ! running_pid "$DIR" >/dev/null || die "the server in $DIR is running: stop it first"
    mkdir -p "$(dirname "$SOCKET")"
    fetch "$NAME"
    load_server "$NAME" "$(home_of "$NAME")"
    save_state
    # MySQL 5.7 crashes now and then in a thread of InnoDB while it recovers from a kill; a later start succeeds.
    local tries=5
    until launch; do
        tries=$((tries - 1))
        if [[ $tries -eq 0 ]] || ! { has_crashed || lost_its_thread; }; then start_failed; fi
        say 'the server crashed while starting; once more'
    done
}

command_stop() {
    [[ $# -gt 0 ]] || die "usage: scripts/servers stop DIR [--kill] [--timeout SECONDS]"
    local dir=$1 signal=TERM seconds=$STOP_SECONDS pid
    shift
    while [[ $# -gt 0 ]]; do
        case $1 in
            --kill) signal=KILL; shift ;;
            --timeout) seconds=${2:?--timeout wants seconds}; shift 2 ;;
            *) die "stop does not know $1" ;;
        esac
    done
    if [[ ! -f $dir/server.env ]]; then say "there is no server in $dir"; return; fi
    dir=$(cd "$dir" && pwd -P)
    if pid=$(running_pid "$dir"); then
        kill -"$signal" "$pid" 2>/dev/null || true
        wait_gone "$pid" "$seconds" || die "the server in $dir (process $pid) still runs after $seconds s; --kill ends it at once"
    fi
    remove_short_socket "$dir"
}

# --- before the start ------------------------------------------------------------------------------------------------

# A port that nobody listens on and that no other folder of a server or store has been given: a stopped one wants its port back.
# Below 32768, where the kernel does not pick the ports of outgoing connections.
reserve_port() {
    local dir=$1 port owner
    mkdir -p "$CACHE/ports"
    (
        flock 9
        for ((tries = 0; tries < 200; tries++)); do
            port=$((20000 + RANDOM % 12000))
            owner=$(cat "$CACHE/ports/$port" 2>/dev/null || true)
            [[ -z $owner || ! -e $owner ]] || continue
            ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || continue
            printf '%s\n' "$dir" >"$CACHE/ports/$port"
            printf '%s\n' "$port"
            exit 0
        done
        die "found no free port between 20000 and 32000"
    ) 9>"$CACHE/ports/lock"
}

socket_path() {
    local path=$1/mysqld.sock
    if [[ $(printf '%s' "$path" | wc -c) -gt $SOCKET_BYTES_MAX ]]; then
        path=$(TMPDIR='' mktemp -d -t binlogd-sock.XXXXXX)/mysqld.sock
    fi
    printf '%s\n' "$path"
}

remove_short_socket() {
    local SOCKET=
    # shellcheck source=/dev/null
    source "$1/server.env"
    case $SOCKET in */binlogd-sock.??????/mysqld.sock) rm -rf "$(dirname "$SOCKET")" ;; esac
}

copy_data() {
    local from=$1
    if [[ -z $from ]]; then
        from=$(home_of "$NAME")/template
    else
        ! running_pid "$from" >/dev/null || die "the server in $from is running: stop it before copying its data"
        [[ ! -d $from/data ]] || from=$from/data
        [[ -d $from ]] || die "there is no data directory in $from"
    fi
    # Two thirds of a fresh data directory are zeros: nobody has to write them.
    cp -a --reflink=auto --sparse=always "$from" "$DIR/data"
    mkdir -p "$DIR/tmp"
    # A copy is another server: two with one UUID would throw each other off their source.
    rm -f "$DIR/data/auto.cnf"
}

# A certificate authority and a server certificate with the names that clients verify: made once, as two keys take a third of
# what a start takes, and the same for every server of this cache.
copy_tls() {
    local made=$CACHE/tls
    (
        flock 9
        [[ -d $made ]] || make_tls "$made"
    ) 9>"$CACHE/tls.lock"
    cp -a "$made" "$DIR/tls"
}

make_tls() {
    local tls=$1.new log
    need openssl
    rm -rf "$tls"
    mkdir -p "$tls"
    log=$tls/openssl.log
    {
        openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -sha256 -subj '/CN=binlogd test authority' \
            -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign \
            -keyout "$tls/ca-key.pem" -out "$tls/ca.pem" &&
            openssl req -newkey rsa:2048 -nodes -sha256 -subj '/CN=127.0.0.1' \
                -keyout "$tls/key.pem" -out "$tls/server.csr" &&
            printf '%s\n' basicConstraints=CA:FALSE keyUsage=digitalSignature,keyEncipherment \
                extendedKeyUsage=serverAuth subjectAltName=IP:127.0.0.1,DNS:localhost >"$tls/server.ext" &&
            openssl x509 -req -sha256 -days 3650 -in "$tls/server.csr" -CA "$tls/ca.pem" -CAkey "$tls/ca-key.pem" \
                -CAcreateserial -extfile "$tls/server.ext" -out "$tls/server-cert.pem" &&
            # MySQL 5.7's own TLS library reads only the older form of a key.
            openssl rsa -traditional -in "$tls/key.pem" -out "$tls/server-key.pem"
    } >"$log" 2>&1 || die "openssl cannot make certificates: $(tail -3 "$log")"
    rm -f "$tls"/{server.csr,server.ext,key.pem}
    mv "$tls" "$1"
}

save_state() { declare -p NAME PORT SERVER_ID SOCKET EXTRA >"$DIR/server.state"; }

# --- the start -------------------------------------------------------------------------------------------------------

# The options that every server gets. What the caller gave stands last and so overrides. Fills the array OPTIONS.
server_options() {
    OPTIONS=(
        "${MYSQLD_PATHS[@]}" "--datadir=$DIR/data" "--tmpdir=$DIR/tmp" "--log-error=$DIR/error.log"
        "--pid-file=$DIR/mysqld.pid" "--socket=$SOCKET" --bind-address=127.0.0.1 "--port=$PORT"
        --skip-name-resolve --secure-file-priv= --local-infile=1
        "--server-id=$SERVER_ID" --log-bin=mysql-bin --sync-binlog=1 --innodb-flush-log-at-trx-commit=1
        --loose-binlog-format=ROW --loose-log-bin-trust-function-creators=1
        --innodb-buffer-pool-size=64M "${REDO_LOG[@]}" --performance-schema=OFF
    )
    if has_tls; then
        OPTIONS+=("--ssl-ca=$DIR/tls/ca.pem" "--ssl-cert=$DIR/tls/server-cert.pem" "--ssl-key=$DIR/tls/server-key.pem")
    else
        OPTIONS+=(--skip-ssl)
    fi
    if [[ $KIND == mysql ]]; then
        # As MariaDB has it. While MySQL shuts down and waits for its dump threads, for 8 seconds where they do not end, its
        # scheduler of events takes a whole core.
        OPTIONS+=(--event-scheduler=OFF --innodb-log-buffer-size=16M)
        ! at_least 8.0.11 || OPTIONS+=(--mysqlx=0)
        ! at_least 9.0.0 || OPTIONS+=(--gtid-mode=ON --enforce-gtid-consistency=ON)
        # Loaded but not switched on: that is the caller's to say (--rpl-semi-sync-source-enabled=1).
        local plugin
        for plugin in semisync_source.so semisync_replica.so; do
            [[ ! -e $PLUGINS/$plugin ]] || OPTIONS+=("--plugin-load-add=$plugin")
        done
    fi
    if is_galera_node; then OPTIONS+=("--wsrep-provider=$WSREP_PROVIDER" --wsrep-sst-method=rsync --innodb-autoinc-lock-mode=2); fi
    OPTIONS+=("${EXTRA[@]}")
}

is_galera_node() { [[ " ${EXTRA[*]} " == *' --wsrep-on=ON '* ]]; }

# TLS versions, as measured: 9.7, 8.0.31 and both MariaDBs 1.2 and 1.3; 8.0.15 1.0 to 1.2; 5.7.22 1.0 and 1.1, which
# today's clients refuse. There it is left off, or every client that prefers TLS would fail; who wants it says
# --ssl=1 --ssl-ca=… --ssl-cert=… --ssl-key=… with the files in DIR/tls.
has_tls() { at_least 8.0.0; }

# Starts the server, waits until it answers, prints and saves the description; false if it does not come up.
launch() {
    local OPTIONS pid WSREP_PATH=$PATH WSREP_PROVIDER
    if is_galera_node; then load_galera; fi
    server_options
    write_wrappers
    # A killed server leaves its lock behind, and MySQL takes its number for a running process while it is a zombie.
    rm -f "$SOCKET" "$SOCKET.lock" "$DIR/mysqld.pid"
    : >>"$DIR/error.log"
    LOG_START=$(stat -c %s "$DIR/error.log")
    (
        # A pipe of the caller's that the server held open would keep the caller waiting for its end.
        close_inherited
        cd "$DIR/data" || exit
        PATH=$WSREP_PATH exec setsid "${MYSQLD[@]}" "${OPTIONS[@]}"
    ) </dev/null >>"$DIR/error.log" 2>&1 &
    pid=$!
    # Before it is ready, so that a server whose start was interrupted can be stopped.
    describe "$pid" >"$DIR/server.env.new"
    mv "$DIR/server.env.new" "$DIR/server.env"
    wait_ready "$pid" || return 1
    cat "$DIR/server.env"
}

close_inherited() {
    local fd
    for fd in /proc/self/fd/*; do
        fd=${fd##*/}
        [[ $fd -le 2 ]] || eval "exec $fd>&-"
    done
}

log_since_launch() { tail -c +"$((LOG_START + 1))" "$DIR/error.log"; }

# Looks often, and so without a program of its own for each look: many servers start at once on small machines.
wait_ready() {
    local pid=$1 deadline=$((SECONDS + START_SECONDS_MAX)) LAST_ANSWER='' never
    exec {never}<> <(:)
    while [[ $SECONDS -lt $deadline ]]; do
        alive "$pid" || return 1
        if says_ready && answers; then
            exec {never}>&-
            return 0
        fi
        read -rt 0.02 -u "$never" || true
    done
    # Not left behind: nobody would have its description to stop it by.
    kill -KILL "$pid" 2>/dev/null || true
    say "it was not ready within $START_SECONDS_MAX s${LAST_ANSWER:+; the client said: $LAST_ANSWER}"
    return 1
}

says_ready() { log_says 'ready for connections'; }

# Whether the log since the launch has the text. No grep -q behind a pipe: it goes when it has found the text, what still writes
# to it ends with SIGPIPE, and with pipefail that is "no".
log_says() {
    # Bytes, as LOG_START counts them.
    local LC_ALL=C said
    said=$(<"$DIR/error.log")
    [[ ${said:LOG_START} == *"$1"* ]]
}

# Whether the server takes connections. Being refused as a user is an answer too: a copied data directory may have
# other passwords. Errors 20xx are the client's own: it reached nobody.
answers() {
    LAST_ANSWER=$("$DIR/mysql" -e 'SELECT 1' 2>&1) && return 0
    [[ $LAST_ANSWER == *ERROR\ [13]* ]]
}

# Galera looks at a thread that it has just begun, and now and then does not know it yet.
lost_its_thread() { log_says 'Failed to read thread schedparams'; }

has_crashed() { log_says 'mysqld got signal'; }

start_failed() {
    say "the server did not start; errors and the end of $DIR/error.log:"
    # Its farewell is long and would push the reason out of sight.
    log_since_launch | grep -F '[ERROR]' | head -10 >&2 || true
    log_since_launch | tail -12 >&2
    die "$NAME did not start in $DIR"
}

# --- the description -------------------------------------------------------------------------------------------------

write_wrappers() {
    local client=(--no-defaults) binlog=(--no-defaults)
    client+=(--protocol=tcp --host=127.0.0.1 "--port=$PORT" --user=root --default-character-set=utf8mb4)
    if [[ -n $CLIENT_PLUGINS ]]; then
        client+=("--plugin-dir=$CLIENT_PLUGINS")
        binlog+=("--plugin-dir=$CLIENT_PLUGINS")
    fi
    # In clear: root has no password here, and TLS takes half of what a call of the client costs. Who wants TLS asks for it.
    if [[ ${CLIENT[-1]} == */mariadb ]]; then
        # With nothing to prove itself by, the client would warn at every call.
        client+=(--skip-ssl --skip-ssl-verify-server-cert)
    else
        client+=(--ssl-mode=DISABLED --get-server-public-key)
    fi
    write_wrapper "$DIR/mysql" "${CLIENT[@]}" "${client[@]}"
    write_wrapper "$DIR/mysqlbinlog" "${BINLOG[@]}" "${binlog[@]}"
    # It takes the same words as the client.
    write_wrapper "$DIR/mysqldump" "${DUMP[@]}" "${client[@]}"
}

# command_programs NAME --dir DIR: the server and the client as packages would have installed them, under the names of programs.
command_programs() {
    [[ $# -eq 3 && $2 == --dir ]] || die "usage: scripts/servers programs NAME --dir DIR"
    local name=$1 dir=$3
    fetch "$name"
    load_server "$name" "$(home_of "$name")"
    mkdir -p "$dir"
    # Whoever calls a server says --no-defaults first, as these paths do.
    write_wrapper "$dir/mysqld" "${MYSQLD[@]}" "${MYSQLD_PATHS[@]}"
    sed -i 's/^exec/[[ ${1:-} != --no-defaults ]] || shift\n&/' "$dir/mysqld"
    write_wrapper "$dir/mysql" "${CLIENT[@]}"
    write_wrapper "$dir/dump" "${DUMP[@]}"
    # An option file comes first.
    [[ -z $CLIENT_PLUGINS ]] || sed -i "s|\"\$@\"|& --plugin-dir=$CLIENT_PLUGINS|" "$dir/mysql" "$dir/dump"
}

write_wrapper() {
    local path=$1
    shift
    printf '#!/usr/bin/env bash\nexec%s "$@"\n' "$(printf ' %q' "$@")" >"$path.new"
    chmod +x "$path.new"
    mv "$path.new" "$path"
}

describe() {
    local pid=$1
    pair NAME "$NAME"
    pair HOST 127.0.0.1
    pair PORT "$PORT"
    pair SOCKET "$SOCKET"
    pair PID "$pid"
    pair DATADIR "$DIR/data"
    pair DIR "$DIR"
    pair BASEDIR "$BASE"
    pair MYSQL "$DIR/mysql"
    pair MYSQLBINLOG "$DIR/mysqlbinlog"
    pair MYSQLDUMP "$DIR/mysqldump"
    pair USER root
    pair PASSWORD ''
    pair SERVER_KIND "$KIND"
    pair VERSION "$VERSION"
    if has_tls; then pair SSL_CA "$DIR/tls/ca.pem"; else pair SSL_CA ''; fi
}

# KEY=VALUE, quoted only where a shell needs it, so that other readers can take plain values as they are.
pair() {
    if [[ -z $2 ]]; then printf '%s=\n' "$1"; else printf '%s=%q\n' "$1" "$2"; fi
}

# --- processes -------------------------------------------------------------------------------------------------------

# A zombie has ended, only its parent has not looked; where process 1 never looks, it stays for ever. While it has
# other threads it is still ending, and still holds its files.
alive() {
    local key state='' threads
    while read -r key state _; do [[ $key != State: ]] || break; done 2>/dev/null <"/proc/$1/status" || return 1
    [[ $key == State: && $state != X* ]] || return 1
    [[ $state == Z* ]] || return 0
    threads=("/proc/$1/task"/*)
    [[ ${#threads[@]} -gt 1 ]]
}

# The process of the server in DIR, if it runs. The number alone is no proof: it may have been given to another.
running_pid() {
    local dir=$1 pid word words=()
    [[ -f $dir/server.env ]] || return 1
    dir=$(cd "$dir" && pwd -P)
    pid=$(sed -n 's/^PID=//p' "$dir/server.env")
    alive "$pid" && mapfile -d '' -t words 2>/dev/null <"/proc/$pid/cmdline" || return 1
    for word in "${words[@]}"; do
        [[ $word == "--datadir=$dir/data" ]] || continue
        printf '%s\n' "$pid"
        return
    done
    return 1
}

# Sets STARTED to when a process started, in ticks since the machine did; to nothing when it is gone.
start_of() {
    local line='' words
    read -r line 2>/dev/null <"/proc/$1/stat" || true
    # The name of the program, in brackets, may hold anything.
    read -ra words <<<"${line##*) }"
    STARTED=${words[19]:-}
}

# Waits for the end of a process. Not for that of its command line, which goes before its files and its port do. Looks often, and so
# without a program of its own for each look, as wait_ready does.
wait_gone() {
    local pid=$1 deadline=$((SECONDS + $2)) STARTED began never
    start_of "$pid"
    began=$STARTED
    exec {never}<> <(:)
    # Another process may have got the number meanwhile.
    while alive "$pid" && start_of "$pid" && [[ $STARTED == "$began" ]]; do
        [[ $SECONDS -lt $deadline ]] || return 1
        read -rt 0.02 -u "$never" || true
    done
    exec {never}>&-
}
