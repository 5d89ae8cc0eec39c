#!/usr/bin/env bash
# The Prometheus server and promtool of the tests, from Debian's package. Says where the programs are.
# Only the package itself is fetched, into the user's cache: installed, it would bring 25 others and
# start a server. It needs no root.
set -euo pipefail

. "$(dirname "$0")/cache.sh"
unpacked=$cache/prometheus

if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
    dirname "$(readlink -f "$(command -v prometheus)")"
    exit
fi
if [ -d "$unpacked" ]; then
    echo "$unpacked"
    exit
fi

make_build_folder

fetch() {
    (cd "$build" && apt-get download -q prometheus)
}

echo "Fetching Debian's package prometheus: 19 MB, once" >&2
{ fetch || { as_root apt-get update -q && fetch; }; } >"$build/log" 2>&1 || true
if ! dpkg-deb -x "$build"/prometheus_*.deb "$build/root" >>"$build/log" 2>&1 || [ ! -x "$build/root/usr/bin/promtool" ]; then
    cat "$build/log" >&2
    echo "Prometheus: tests/prometheus needs prometheus and promtool; got none, and apt-get gave none." \
        "Install the package prometheus, or put both programs on the PATH." >&2
    exit 2
fi
put_into_cache "$build/root/usr/bin" "$unpacked"
echo "$unpacked"
