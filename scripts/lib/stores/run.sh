# shellcheck shell=bash
# Start, make a bucket, sign, stop. A store's folder DIR holds what it keeps, store.log, and store.env, which is what start printed.

STORE_START_SECONDS_MAX=60
STORE_STOP_SECONDS=30
# For tests. Azurite's are the ones that it always has.
VERSITYGW_KEYS=(binlogd-root binlogd-root-secret)
AZURITE_KEYS=(devstoreaccount1 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==')

stores_start() {
    [[ $# -eq 2 ]] || die "usage: scripts/stores start versitygw|azurite DIR"
    local NAME=$1 DIR=$2 PORT program COMMAND=() pid
    case $NAME in versitygw | azurite) ;; *) die "$NAME is no store: there are versitygw and azurite" ;; esac
    program=$(stores_path "$NAME")
    need curl
    mkdir -p "$DIR"
    DIR=$(cd "$DIR" && pwd -P)
    if [[ -f $DIR/store.env ]]; then
        grep -qxF "NAME=$NAME" "$DIR/store.env" || die "$DIR holds another store: choose another folder"
        ! store_pid "$DIR" >/dev/null || die "the store in $DIR is running: stop it first"
        PORT=$(sed -n 's/^PORT=//p' "$DIR/store.env")
    else
        # Not one that the kernel would choose: while a store is down it would give that one to the next who asks.
        PORT=$(reserve_port "$DIR")
    fi
    "command_of_$NAME" "$program"
    (
        close_inherited
        exec setsid "${COMMAND[@]}"
    ) </dev/null >>"$DIR/store.log" 2>&1 &
    pid=$!
    wait_for_store "$pid" || die "$NAME did not start in $DIR: $(tail -3 "$DIR/store.log")"
    describe_store "$pid" | tee "$DIR/store.env"
}

command_of_versitygw() {
    mkdir -p "$DIR"/{data,versions,accounts}
    COMMAND=(
        env "ROOT_ACCESS_KEY=${VERSITYGW_KEYS[0]}" "ROOT_SECRET_KEY=${VERSITYGW_KEYS[1]}"
        "$1" --port "127.0.0.1:$PORT" --iam-dir "$DIR/accounts" --iam-cache-disable
        posix --versioning-dir "$DIR/versions" "$DIR/data"
    )
}

command_of_azurite() {
    COMMAND=("$1" --blobHost 127.0.0.1 --blobPort "$PORT" --location "$DIR")
}

# The store is ready when it listens, and not another program, and answers, whatever it says: both refuse who does not say who he is.
wait_for_store() {
    local pid=$1 deadline=$((SECONDS + STORE_START_SECONDS_MAX))
    while [[ $SECONDS -lt $deadline ]]; do
        alive "$pid" || return 1
        if listens "$pid" && curl --silent --output /dev/null --max-time 10 "http://127.0.0.1:$PORT/"; then return 0; fi
        sleep 0.05
    done
    kill -KILL "$pid" 2>/dev/null || true
    return 1
}

# Whether a process listens on PORT.
listens() {
    local sockets
    sockets=$(find "/proc/$1/fd" -lname 'socket:*' -printf '%l\n' 2>/dev/null | tr -dc '0-9\n')
    [[ -n $sockets ]] || return 1
    # State 0A is that of a socket that listens.
    awk -v sockets="$sockets" -v port="$(printf ':%04X' "$PORT")" '
        BEGIN { n = split(sockets, of, "\n"); for (i = 1; i <= n; i++) own[of[i]] }
        $4 == "0A" && $10 in own && index($2, port) { found = 1 }
        END { exit !found }' "/proc/$1/net/tcp"
}

describe_store() {
    local keys STARTED
    start_of "$1"
    case $NAME in
        versitygw) keys=("${VERSITYGW_KEYS[@]}") ;;
        azurite) keys=("${AZURITE_KEYS[@]}") ;;
    esac
    pair NAME "$NAME"
    case $NAME in
        versitygw) pair ENDPOINT "http://127.0.0.1:$PORT" ;;
        azurite) pair ENDPOINT "http://127.0.0.1:$PORT/${keys[0]}" ;;
    esac
    pair PORT "$PORT"
    pair PID "$1"
    pair STARTED "$STARTED"
    pair DIR "$DIR"
    pair ACCESS_KEY "${keys[0]}"
    pair SECRET_KEY "${keys[1]}"
    [[ $NAME != versitygw ]] || pair REGION us-east-1
}

# --- buckets ---------------------------------------------------------------------------------------------------------

# What each store calls a bucket, made without a client: neither has a stock tool that is quick.
stores_bucket() {
    [[ $# -eq 2 || ($# -eq 3 && $3 == --locked) ]] || die "usage: scripts/stores bucket DIR NAME [--locked]"
    local NAME PORT PID STARTED DIR ENDPOINT ACCESS_KEY SECRET_KEY REGION bucket=$2 locked=${3:-}
    [[ -f $1/store.env ]] || die "there is no store in $1: start one first"
    # shellcheck source=/dev/null
    source "$1/store.env"
    "bucket_of_$NAME"
}

bucket_of_versitygw() {
    local lock=()
    [[ -z $locked ]] || lock=(--object-lock-enabled-for-bucket)
    ADMIN_SECRET_KEY=$SECRET_KEY ADMIN_ACCESS_KEY=$ACCESS_KEY "$(stores_path versitygw)" admin --endpoint-url "$ENDPOINT" \
        create-bucket --owner "$ACCESS_KEY" --bucket "$bucket" "${lock[@]}" >&2 || die "versitygw makes no bucket $bucket"
}

# A request that is signed with the account's key, as Azure's "Shared Key" wants it.
bucket_of_azurite() {
    [[ -z $locked ]] || die "Azurite knows no lock"
    local date version=2021-12-02 signed signature status
    date=$(LC_ALL=C date -u '+%a, %d %b %Y %T GMT')
    printf -v signed 'PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:%s\nx-ms-version:%s\n/%s/%s/%s\nrestype:container' \
        "$date" "$version" "$ACCESS_KEY" "$ACCESS_KEY" "$bucket"
    signature=$(signed_for_azure "$signed")
    status=$(curl --silent --output "$DIR/bucket.answer" --write-out '%{http_code}' --request PUT --header 'content-length: 0' \
        --header "x-ms-date: $date" --header "x-ms-version: $version" \
        --header "authorization: SharedKey $ACCESS_KEY:$signature" "$ENDPOINT/$bucket?restype=container") || true
    [[ $status == 201 ]] || die "Azurite makes no container $bucket: $status $(cat "$DIR/bucket.answer")"
}

# HMAC-SHA256 of a text with the account's key, as Azure has it.
signed_for_azure() {
    need openssl
    local key
    key=$(printf '%s' "$SECRET_KEY" | base64 -d | od -An -v -tx1 | tr -d ' \n')
    printf '%s' "$1" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64 -w 0
}

# --- a signature for others ------------------------------------------------------------------------------------------

# A "service SAS" of a container. Versions after this one sign more fields, which nobody here needs.
stores_sas() {
    [[ $# -eq 3 ]] || die "usage: scripts/stores sas DIR CONTAINER RIGHTS"
    local NAME PORT PID STARTED DIR ENDPOINT ACCESS_KEY SECRET_KEY REGION container=$2 rights=$3 version=2018-11-09 expires signed signature
    [[ -f $1/store.env ]] || die "there is no store in $1: start one first"
    # shellcheck source=/dev/null
    source "$1/store.env"
    [[ $NAME == azurite ]] || die "only Azurite knows such signatures"
    expires=$(date -u -d '+1 day' '+%Y-%m-%dT%H:%M:%SZ')
    # Rights, begin, end, place, policy, address, protocol, version, kind, snapshot, and five headers.
    printf -v signed '%s\n\n%s\n/blob/%s/%s\n\n\n\n%s\nc\n\n\n\n\n\n' "$rights" "$expires" "$ACCESS_KEY" "$container" "$version"
    signature=$(signed_for_azure "$signed")
    signature=${signature//+/%2B}
    signature=${signature//\//%2F}
    printf 'sv=%s&sr=c&sp=%s&se=%s&sig=%s\n' "$version" "$rights" "$expires" "${signature//=/%3D}"
}

# --- stop ------------------------------------------------------------------------------------------------------------

# The process of the store in DIR, if it runs. The number alone is no proof: it may have been given to another.
store_pid() {
    local pid STARTED
    pid=$(sed -n 's/^PID=//p' "$1/store.env")
    alive "$pid" && start_of "$pid" && [[ $STARTED == "$(sed -n 's/^STARTED=//p' "$1/store.env")" ]] || return 1
    printf '%s\n' "$pid"
}

stores_stop() {
    [[ $# -eq 1 || ($# -eq 2 && $2 == --kill) ]] || die "usage: scripts/stores stop DIR [--kill]"
    local dir=$1 signal=TERM pid
    [[ $# -eq 1 ]] || signal=KILL
    if [[ ! -f $dir/store.env ]]; then say "there is no store in $dir"; return; fi
    if pid=$(store_pid "$dir"); then
        kill -"$signal" "$pid" 2>/dev/null || true
        wait_gone "$pid" "$STORE_STOP_SECONDS" ||
            die "the store in $dir (process $pid) still runs after $STORE_STOP_SECONDS s; --kill ends it at once"
    fi
}
