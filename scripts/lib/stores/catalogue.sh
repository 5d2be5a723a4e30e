# shellcheck shell=bash
#
# What there is, and where it comes from: in place of the servers' table.

# Name, kind, source, description and programs, of which the first is what the name means. A source is deb, as in
# servers/catalogue.sh, or one of
#   go MODULE VERSION SUM PACKAGE    a module with its checksum; its go.sum has those of all that it needs
#   npm FOLDER                       what the package-lock.json in that folder beside this file pins, with checksums
catalogue() {
    cat <<'TABLE'
versitygw|tool|go github.com/versity/versitygw v1.8.0 h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc= ./cmd/versitygw|versitygw 1.8.0, which speaks S3 and keeps objects as files (Go)|versitygw
azurite|tool|npm azurite|Azurite 3.37.0, which speaks as Azure's blob storage does (npm)|azurite
age|tool|deb bookworm age|age 1.1, the reference implementation (Debian bookworm)|age age-keygen
awscli|tool|deb bookworm awscli|the command line of AWS, 2.9 (Debian bookworm)|aws
rclone|tool|deb bookworm rclone|rclone 1.60 (Debian bookworm)|rclone
haproxy|tool|deb bookworm haproxy|HAProxy 2.6, which stands before two servers (Debian bookworm)|haproxy
zstd|tool|deb bookworm zstd|zstd 1.5, where the host has none (Debian bookworm)|zstd
helm|tool|go helm.sh/helm/v3 v3.18.6 h1:S/2CqcYnNfLckkHLI0VgQbxgcDaU3N4A/46E3n9wSNY= ./cmd/helm|Helm 3.18.6, which reads the chart of a release (Go)|helm
go-1.26|compiler|deb sid +golang-1.26-go +golang-1.26-src|Go 1.26, where the host has none of that age (Debian sid)|go
TABLE
}

# Where a name's files are kept. Another version is another folder.
home_of() {
    local name=$1 source files=()
    source=$(column "$name" 3)
    [[ $source != npm* ]] || files=("$SCRIPTS/lib/stores/${source#npm }"/*)
    printf '%s/%s-%s\n' "$CACHE" "$name" "$(cat - "${files[@]}" <<<"$source" | cksum | cut -d' ' -f1)"
}

# The name in whose folder PROGRAM is.
name_of_program() {
    local name
    name=$(catalogue | awk -F'|' -v program="$1" '{ n = split($5, of, " "); for (i = 1; i <= n; i++) if (of[i] == program) print $1 }')
    # The name of what it is part of will do.
    [[ -n $name ]] || name=$(catalogue | awk -F'|' -v name="$1" '$1 == name { print $1 }')
    [[ -n $name ]] || die "nothing is called $1 (scripts/stores list shows what there is)"
    printf '%s\n' "$name"
}
