#!/usr/bin/env bash
# The browser of tests/browser, Debian's Chromium, and axe-core, which looks for what keeps people
# from using a page. Installs and fetches what is missing, and says where both are, a line each.
set -euo pipefail

version=4.14.0
digest=2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af
. "$(dirname "$0")/cache.sh"
axe=$cache/axe-core-$version/axe.min.js

browser() {
    command -v chromium || command -v chromium-browser || command -v google-chrome || true
}

found=$(browser)
if [ -z "$found" ]; then
    echo "Installing Debian's package chromium, once" >&2
    install_package chromium >&2 || true
    found=$(browser)
fi
if [ -z "$found" ]; then
    echo "Chromium: tests/browser needs a browser; got none, and apt-get gave none. Install the package" \
        "chromium, or put chromium on the PATH." >&2
    exit 2
fi

if [ ! -e "$axe" ]; then
    make_build_folder
    registry=$(npm config get registry 2>/dev/null || echo https://registry.npmjs.org/)
    echo "Fetching axe-core $version: 700 kB, once" >&2
    curl --fail --silent --show-error --location --output "$build/axe.tgz" \
        "${registry%/}/axe-core/-/axe-core-$version.tgz"
    echo "$digest  $build/axe.tgz" | sha256sum --check --quiet >&2
    tar -xzf "$build/axe.tgz" -C "$build"
    put_into_cache "$build/package" "$(dirname "$axe")"
fi
echo "$found"
echo "$axe"
