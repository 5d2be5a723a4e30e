# shellcheck shell=bash
# The proof: what the clients were told against what the copy holds. It trusts nothing of binlogd: the copy is read with
# the server's own mysqlbinlog, and its files are compared with the source's.

# Leaves in $DEMO/lists: committed (ids that clients were told), copied (ids of complete transactions of the copy),
# lost (in the first, not in the second), untold (the other way round). Fails unless nothing is lost. Sets COMMITTED,
# FOUND and SEALED_FILES.
compare() {
    local lists=$DEMO/lists
    compare_ids "$DEMO/copy" "$lists"
    [[ -s $lists/committed ]] || die "the clients' ledger is empty: this demo proves nothing"
    [[ ! -s $lists/repeated ]] ||
        die "$(count "$(wc -l <"$lists/repeated")") transactions are in the copy more than once; their ids: $lists/repeated"
    [[ ! -s $lists/lost ]] ||
        die "$(count "$(wc -l <"$lists/lost")") of $(count "$(wc -l <"$lists/committed")") committed transactions are NOT in" \
            "the copy, the first with id $(head -1 "$lists/lost"); all their ids: $lists/lost"
    COMMITTED=$(wc -l <"$lists/committed")
    FOUND=$(LC_ALL=C comm -12 "$lists/committed" "$lists/copied" | wc -l)
    [[ $FOUND -eq $COMMITTED ]] || die "$FOUND found of $COMMITTED, but none lost: the comparison itself is wrong"
    compare_files
}

# compare_ids COPY LISTS: compares the ledgers with the data folder COPY.
compare_ids() {
    local copy=$1 lists=$2
    local -x LC_ALL=C
    mkdir -p "$lists"
    find "$DEMO/ledger" -type f -exec cat {} + | sort -u >"$lists/committed"
    transactions_of "$copy" >"$lists/transactions"
    cut -d' ' -f1 "$lists/transactions" | sort >"$lists/all"
    sort -u "$lists/all" >"$lists/copied"
    uniq -d "$lists/all" >"$lists/repeated"
    comm -23 "$lists/committed" "$lists/copied" >"$lists/lost"
    comm -13 "$lists/committed" "$lists/copied" >"$lists/untold"
    rm "$lists/all"
}

# The binlog files in the data folder COPY, in order. Torn tails that were set aside have longer names.
# What stands beside the files has their names.
files_of() { find "$1/" -name search-index -prune -o -type f -name 'mysql-bin.[0-9]*' ! -name '*.*.*' -print | sort; }

# Lines "id position file" of the rows of demo.ledger in COPY: only those of transactions that end with COMMIT, whose
# event stands at that position.
transactions_of() {
    local copy=$1 file said
    while read -r file; do
        said=$("$DEMO/source/mysqlbinlog" --base64-output=decode-rows --verbose "$file" 2>&1 >"$DEMO/lists/decoded") ||
            die "mysqlbinlog cannot read $file: $said"
        committed_rows "$file" <"$DEMO/lists/decoded"
        rm "$DEMO/lists/decoded"
    done < <(files_of "$copy")
}

# mysqlbinlog ends each transaction that the file leaves open with a ROLLBACK of its own.
committed_rows() {
    awk -v file="$1" '
        /^# at [0-9]+$/ { at = $3; next }
        /^(BEGIN|START TRANSACTION|ROLLBACK)/ { rows = 0; next }
        /^### INSERT INTO `demo`.`ledger`$/ { in_ledger = 1; next }
        in_ledger && /^###   @1=/ { id[++rows] = substr($0, 10); in_ledger = 0; next }
        /^COMMIT/ { for (row = 1; row <= rows; row++) print id[row], at, file; rows = 0 }'
}

# Finished files equal the source's byte for byte. The file that was being written is the beginning of the source's,
# which marks its live file as in use (a flag at offset 21) and may hold a few events more.
compare_files() {
    local file original last
    SEALED_FILES=0
    last=$(files_of "$DEMO/copy" | tail -1)
    while read -r file; do
        original=$DEMO/source/data/${file##*/}
        if [[ $file != "$last" ]]; then
            cmp -s "$file" "$original" || die "$file differs from the source's $original"
            SEALED_FILES=$((SEALED_FILES + 1))
        elif ! cmp -s -n 21 "$file" "$original" || ! cmp -s -i 22 -n $(($(stat -c %s "$file") - 22)) "$file" "$original"; then
            die "$file is not the beginning of the source's $original"
        fi
    done < <(files_of "$DEMO/copy")
}

# --- can it fail? ----------------------------------------------------------------------------------------------------

# Takes the last three promised transactions away from a copy of the copy: of the first its COMMIT only, the others
# whole. A comparison that does not miss exactly these three is worth nothing.
check_the_comparison() {
    local damaged=$DEMO/damaged lists=$DEMO/damaged-lists id position file later
    step "self-check: cutting the last 3 promised transactions off a copy of the copy"
    awk 'NR == FNR { promised[$1]; next } $1 in promised' "$DEMO/lists/committed" "$DEMO/lists/transactions" |
        tail -3 >"$DEMO/lists/cut"
    read -r id position file <"$DEMO/lists/cut"
    cp -a "$DEMO/copy" "$damaged"
    file=$damaged${file#"$DEMO/copy"}
    truncate -s "$position" "$file"
    files_of "$damaged" | awk -v file="$file" '$0 > file' | while read -r later; do rm "$later"; done
    compare_ids "$damaged" "$lists"
    cut -d' ' -f1 "$DEMO/lists/cut" | LC_ALL=C sort | cmp -s - "$lists/lost" ||
        die "SELF-CHECK: transactions $(cut -d' ' -f1 "$DEMO/lists/cut" | paste -sd,) were cut off, the comparison misses: $(paste -sd, "$lists/lost")"
    step "self-check passed: the comparison reports $(paste -sd, "$lists/lost" | sed 's/,/, /g') as lost, and nothing else"
    rm -rf "$damaged" "$lists"
    check_refusals
}

# What the program does with it: an empty ledger and a promise that the copy does not keep each end with exit code 1.
check_refusals() {
    local other
    other=$(mktemp -d "$DEMO/other.XXXXXX")
    mkdir "$other/ledger"
    ln -s "$DEMO/source" "$DEMO/copy" "$other/"
    must_refuse "$other" 'ledger is empty'
    cp "$DEMO"/ledger/* "$other/ledger/"
    printf '1\n' >>"$other/ledger/thread-0"
    must_refuse "$other" '1 of .* committed transactions are NOT in the copy, the first with id 1;'
    rm -rf "$other"
    step "self-check passed: an empty ledger, and a promise that was not kept, each end with exit code 1"
}

must_refuse() {
    local dir=$1 reason=$2 code=0
    "$SCRIPTS/demo" --compare "$dir" >"$DEMO/log/refusal.log" 2>&1 || code=$?
    if [[ $code -ne 1 ]] || ! grep -q "$reason" "$DEMO/log/refusal.log"; then
        die_showing "$DEMO/log/refusal.log" "SELF-CHECK: exit code $code; it should be 1, because: $reason"
    fi
}
