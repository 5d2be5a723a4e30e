# shellcheck shell=bash
# The licences of what is in the binary besides binlogd: of each crate its own files, of Rust's standard library, of musl.

# What a licence is called in a crate. Of zstd's two licences binlogd takes BSD, and leaves the text of the other (GPL) away.
licence_files() {
    find "$1" -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'copyright*' -o -iname 'notice*' -o -iname 'unlicense*' \) \
        ! -name '*.rs' ! -path '*/zstd/COPYING' | sort
}

# write_licences FILE: of the program for TARGET. Each text stands there once, whoever has it.
write_licences() {
    local file=$1 work name version licence folder text sum numbers standard
    local -A number_of=()
    work=$(mktemp -d)
    : >"$work/texts"
    crates_linked >"$work/crates"
    [[ -s $work/crates ]] || die "cargo tree names no crate for $TARGET"
    while IFS='|' read -r name version licence; do
        folder=$(crate_folder "$name-$version")
        numbers=
        while read -r text; do
            sum=$(tr -d '\r' <"$text" | sha256sum | cut -d' ' -f1)
            if [[ -z ${number_of[$sum]:-} ]]; then
                number_of[$sum]=$((${#number_of[@]} + 1))
                licence_text "${number_of[$sum]}" "$text" >>"$work/texts"
            fi
            numbers+=", ${number_of[$sum]}"
        done < <(licence_files "$folder")
        numbers=${numbers#, }
        printf '%s %s: %s (%s)\n' "$name" "$version" "$licence" "${numbers:+text }${numbers:-no text of its own}" >>"$work/list"
    done <"$work/crates"
    {
        printf 'binlogd %s is under Apache-2.0 (LICENSE). Its program for %s holds, besides:\n\n' "$VERSION" "$TARGET"
        cat "$work/list"
        printf "Rust's standard library: MIT OR Apache-2.0 (last text but one)\n"
        printf 'musl, the C library: MIT (last text)\n\n'
        printf 'Where there is a choice of licences, binlogd takes Apache-2.0 where it is one of them, or else MIT or BSD.\n'
        cat "$work/texts"
        standard=$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html
        [[ -f $standard ]] || die "this Rust does not bring the notices of its standard library: $standard"
        heading "Rust's standard library"
        plain_text <"$standard"
        heading 'musl'
        cat packaging/licences/musl.txt
    } >"$file"
    rm -r "$work"
}

# Lines name|version|licence.
crates_linked() {
    cargo tree --locked --package binlogd --target "$TARGET" --edges normal,no-proc-macro --prefix none --no-dedupe --format '{p}|{l}' |
        grep -v ' (/' | sed 's/^\([^ ]*\) v\([^ |]*\)[^|]*|/\1|\2|/' | sort -u
}

crate_folder() {
    local folder
    for folder in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$1"; do
        [[ ! -d $folder ]] || { printf '%s\n' "$folder"; return 0; }
    done
    die "the sources of $1 are not in cargo's registry: cargo fetch"
}

heading() { printf '\n\n======== %s\n\n' "$1"; }

licence_text() {
    heading "text $1"
    tr -d '\r' <"$2"
}

# What a page of HTML says, well enough to be read.
plain_text() {
    sed -e 's/<[^>]*>//g' -e 's/&lt;\|&#60;/</g' -e 's/&gt;\|&#62;/>/g' -e 's/&quot;\|&#34;/"/g' -e "s/&#39;/'/g" \
        -e 's/&#x2F;/\//g' -e 's/&amp;\|&#38;/\&/g' -e 's/^ *$//' | cat -s
}
