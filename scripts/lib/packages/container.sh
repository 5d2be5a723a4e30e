# shellcheck shell=bash
# The image: read-only root, an account without rights, and the health check that it carries.

# The limits are those that a container of few rights may set anywhere, even where nobody may raise one.
PODMAN_RUN=(--runtime runc --network host --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --read-only --cap-drop all
    --security-opt no-new-privileges)

try_container() {
    local image folder=$DEMO/container name=binlogd-test-$$
    if [[ $(id -u) -ne 0 ]]; then skip 'only root can run the image here'; return 0; fi
    need podman
    need runc
    PODMAN_RUN_ROOT=$(mktemp -d /tmp/binlogd-podman.XXXXXX)
    step 'building the image, twice'
    image=$(DIST_DIR=$OLD SOURCE_DATE_EPOCH=$(commit_time) "$SCRIPTS/container" 2>"$DEMO/log/container") || die_showing "$DEMO/log/container" 'the image was not built'
    cp "$image" "$DEMO/image"
    image=$(DIST_DIR=$OLD SOURCE_DATE_EPOCH=$(commit_time) "$SCRIPTS/container" 2>"$DEMO/log/container")
    cmp "$image" "$DEMO/image" || die 'the same release gave two images'
    store load --quiet --input "$image" >/dev/null
    expect "$(store image inspect --format '{{.Config.User}}' "localhost/binlogd:$VERSION")" 65532:65532 'the user of the image'
    step "starting $SOURCE_TITLE, and the image with a read-only root"
    rm -rf "$DEMO/source"
    start_source
    mkdir -p "$folder"/{etc,data}
    printf '%s\n' "$REPLICATION_PASSWORD" >"$folder/etc/password"
    printf 'data_dir = "/var/lib/binlogd"\n[admin]\nlisten = "127.0.0.1:0"\n[[source]]\nhosts = ["db1.test:%s"]\nuser = "repl"\npassword_file = "password"\n' \
        "$PORT" >"$folder/etc/binlogd.toml"
    chown -R 65532:65532 "$folder"/{etc,data}
    chmod 400 "$folder/etc/password"
    CONTAINER=$name
    # The name is found by the program's own resolver: there is nothing else in the image.
    store run --detach --name "$name" "${PODMAN_RUN[@]}" --add-host db1.test:127.0.0.1 --volume "$folder/etc:/etc/binlogd:ro" \
        --volume "$folder/data:/var/lib/binlogd" "localhost/binlogd:$VERSION" >"$DEMO/log/podman" 2>&1 ||
        die_showing "$DEMO/log/podman" 'the image does not start'
    until_true 60 'the image is healthy' store healthcheck run "$name" >"$DEMO/log/health" 2>&1
    sql <<<'CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY); INSERT INTO d.t VALUES (4711)'
    expect "$(stat -c %u "$(find "$folder/data" -name search-index -prune -o -name mysql-bin.000001 -print)")" 65532 'the owner of the copy'
    step 'the source ends: the health check fails, and says why'
    "$SCRIPTS/servers" stop "$DEMO/source" --kill
    until_true 60 'the health check notices that the source is gone' is_unhealthy "$name"
    store stop --time 20 "$name" >/dev/null 2>&1
    expect "$(store inspect --format '{{.State.ExitCode}}' "$name")" 0 'the exit code of the image after SIGTERM'
    end_container
    end_source
}

commit_time() { printf '%s' "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"; }

# podman takes no longer name than 50 characters for the one folder, which therefore is not in $DEMO.
store() { podman --storage-driver vfs --root "$DEMO/store" --runroot "$PODMAN_RUN_ROOT" --cgroup-manager cgroupfs "$@"; }

is_unhealthy() {
    local code=0 said
    said=$(store exec "$1" /usr/bin/binlogd health --config /etc/binlogd/binlogd.toml 2>&1) || code=$?
    # podman may have words of its own in between, about cgroups and systemd.
    [[ $code -eq 1 ]] && grep -q '^default: ' <<<"$said"
}

end_container() {
    [[ -n ${PODMAN_RUN_ROOT:-} ]] || return 0
    [[ -z ${CONTAINER:-} ]] || store rm --force --time 5 "$CONTAINER" >/dev/null 2>&1 || true
    rm -rf --one-file-system "$PODMAN_RUN_ROOT"
    CONTAINER='' PODMAN_RUN_ROOT=''
}
