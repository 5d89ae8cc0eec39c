#!/usr/bin/env bash
# The browser of tests/browser, Debian's Chromium, and axe-core, which looks for what keeps people
# from using a page. Installs and fetches what is missing, and says where both are, a line each.
set -euo pipefail

version=4.14.0
digest=2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tidegate
axe=$cache/axe-core-$version/axe.min.js

browser() {
    command -v chromium || command -v chromium-browser || command -v google-chrome || true
}

install() {
    local sudo=
    [ "$(id -u)" = 0 ] || sudo="sudo -n"
    command -v apt-get >/dev/null || return 1
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q chromium ||
        { $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q chromium; }
}

found=$(browser)
if [ -z "$found" ]; then
    echo "Installing Debian's package chromium, once" >&2
    install >&2 || true
    found=$(browser)
fi
if [ -z "$found" ]; then
    echo "Chromium: tests/browser needs a browser; got none, and apt-get gave none. Install the package" \
        "chromium, or put chromium on the PATH." >&2
    exit 2
fi

if [ ! -e "$axe" ]; then
    mkdir -p "$cache"
    build=$(mktemp -d "$cache/build.XXXXXX")
    trap 'rm -rf "$build"' EXIT
    registry=$(npm config get registry 2>/dev/null || echo https://registry.npmjs.org/)
    echo "Fetching axe-core $version: 700 kB, once" >&2
    curl --fail --silent --show-error --location --output "$build/axe.tgz" \
        "${registry%/}/axe-core/-/axe-core-$version.tgz"
    echo "$digest  $build/axe.tgz" | sha256sum --check --quiet >&2
    tar -xzf "$build/axe.tgz" -C "$build"
    # Another process may have been quicker; then its files are as good.
    mv -T "$build/package" "$(dirname "$axe")" 2>/dev/null || [ -e "$axe" ]
fi
echo "$found"
echo "$axe"
