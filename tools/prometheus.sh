#!/usr/bin/env bash
# The Prometheus server and promtool of the tests, from Debian's package. Says where the programs are.
# Only the package itself is fetched, into the user's cache: installed, it would bring 25 others and
# start a server. It needs no root.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/tidegate
unpacked=$cache/prometheus

if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
    dirname "$(readlink -f "$(command -v prometheus)")"
    exit
fi
if [ -d "$unpacked" ]; then
    echo "$unpacked"
    exit
fi

mkdir -p "$cache"
build=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$build"' EXIT

fetch() {
    (cd "$build" && apt-get download -q prometheus)
}

refresh() {
    local sudo=
    [ "$(id -u)" = 0 ] || sudo="sudo -n"
    $sudo apt-get update -q
}

echo "Fetching Debian's package prometheus: 19 MB, once" >&2
{ fetch || { refresh && fetch; }; } >"$build/log" 2>&1 || true
if ! dpkg-deb -x "$build"/prometheus_*.deb "$build/root" >>"$build/log" 2>&1 || [ ! -x "$build/root/usr/bin/promtool" ]; then
    cat "$build/log" >&2
    echo "Prometheus: tests/prometheus needs prometheus and promtool; got none, and apt-get gave none." \
        "Install the package prometheus, or put both programs on the PATH." >&2
    exit 2
fi
# Another process may have been quicker; then its programs are as good.
mv -T "$build/root/usr/bin" "$unpacked" 2>/dev/null || [ -d "$unpacked" ]
echo "$unpacked"
