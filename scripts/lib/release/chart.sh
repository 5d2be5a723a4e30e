# shellcheck shell=bash
# The chart for Helm is packaging/kubernetes/binlogd.yaml with names in place of what each site changes, so that there is one text.

# write_chart FOLDER: writes binlogd-chart-VERSION.tgz there.
write_chart() {
    local chart=$WORK/binlogd
    mkdir -p "$chart/templates"
    cp packaging/helm/values.yaml "$chart/"
    cp packaging/kubernetes/binlogd.yaml "$chart/templates/"
    printf 'apiVersion: v2\nname: binlogd\nversion: %s\nappVersion: %s\ndescription: Virtual replica that keeps binary logs of MySQL and MariaDB\n' \
        "$VERSION" "$VERSION" >"$chart/Chart.yaml"
    named "image: binlogd:$VERSION" 'image: {{ .Values.image | default (printf "binlogd:%s" .Chart.AppVersion) }}'
    named 'storage: 200Gi' 'storage: {{ .Values.storage }}'
    named 'name = "orders"' 'name = {{ toJson .Values.source.name }}'
    named 'hosts = ["db1.example:3306"]' 'hosts = {{ toJson .Values.source.hosts }}'
    named 'user = "repl"' 'user = {{ toJson .Values.source.user }}'
    named 'secretName: binlogd-source' 'secretName: {{ .Values.source.secret }}'
    named '.binlogd-pods:3307"]' '.binlogd-pods:3307"]{{ with .Values.more }}{{ . | nindent 4 }}{{ end }}'
    tar --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w --mtime="@$SOURCE_DATE_EPOCH" -C "$WORK" -cf - binlogd |
        gzip --no-name -9 >"$1/binlogd-chart-$VERSION.tgz"
}

# named TEXT TEMPLATE: for each TEXT in the example.
named() {
    local file=$WORK/binlogd/templates/binlogd.yaml text
    text=$(<"$file")
    [[ $text == *"$1"* ]] || die "packaging/kubernetes/binlogd.yaml has no '$1'"
    printf '%s\n' "${text//"$1"/"$2"}" >"$file"
}
