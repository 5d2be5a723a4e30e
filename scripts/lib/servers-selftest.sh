# shellcheck shell=bash
# One round through each server's life, as the tests use it: does this host run them all?

command_selftest() {
    local names=("$@") name failed=0
    [[ $# -gt 0 ]] || mapfile -t names < <(server_names)
    for name in "${names[@]}"; do
        column "$name" 2 >/dev/null
        # In a process of its own, so that its failure ends it and not the others.
        "$SCRIPTS/servers" fetch "$name" && bash "$SCRIPTS/lib/servers-round.sh" "$SCRIPTS/servers" "$name" || failed=$((failed + 1))
    done
    printf '%d passed, %d failed\n' $((${#names[@]} - failed)) "$failed"
    [[ $failed -eq 0 ]]
}
