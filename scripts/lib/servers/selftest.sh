# shellcheck shell=bash
# One round through each server's life, as the tests use it: does this host run them all?

command_selftest() {
    local names=("$@") name failed=0
    [[ $# -gt 0 ]] || mapfile -t names < <(server_names)
    for name in "${names[@]}"; do
        column "$name" 2 >/dev/null
        # Each in a process of its own, so that its failure ends it and not the others.
        if ! "$SCRIPTS/servers" fetch "$name"; then
            printf 'failed  %-14s at: fetch\n' "$name"
            failed=$((failed + 1))
        elif ! bash "$SCRIPTS/lib/servers/round.sh" "$SCRIPTS/servers" "$name"; then
            failed=$((failed + 1))
        fi
    done
    printf '%d passed, %d failed\n' $((${#names[@]} - failed)) "$failed"
    [[ $failed -eq 0 ]]
}
