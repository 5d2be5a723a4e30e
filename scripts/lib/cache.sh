# shellcheck shell=bash
# shellcheck disable=SC2034 # For the scripts that source it.
#
# Where what scripts/servers and scripts/stores fetch is kept.
#
# What is cached differs by recipe, so that work trees of different ages share a cache without replacing each other's
# files. Count it up when the catalogue of servers changes, or what is unpacked and initialised in servers/fetch.sh.
RECIPE=1
CACHE=${BINLOGD_SERVERS:-$HOME/.cache/binlogd/servers}/recipe-$RECIPE
