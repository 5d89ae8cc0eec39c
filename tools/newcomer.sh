#!/usr/bin/env bash
# Does what the README tells a newcomer to do, as one: a fresh clone of the commit, an empty home,
# no virtual environment, `make demo`. Called by `make newcomer`; leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d "${TMPDIR:-/tmp}/tidegate-newcomer-XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/home"
clone=$folder/tidegate

# The checkout may belong to another user, which git has to be told to accept, at both ends of a
# clone and thus by a file; or it may be an exported tree without a repository.
printf '[safe]\n\tdirectory = *\n' >"$folder/gitconfig"
export GIT_CONFIG_GLOBAL=$folder/gitconfig
if [ -e .git ] && commit=$(git rev-parse --verify --quiet --short HEAD); then
    git clone --quiet --no-local . "$clone"
    echo "newcomer: a clone of $commit"
else
    echo "newcomer: no git repository here; a copy of the files instead"
    mkdir "$clone"
    tar --create --exclude=./.git --exclude=./.venv --exclude=./site --exclude=./build \
        --exclude=./dist --exclude='.*_cache' --exclude=.hypothesis --exclude=__pycache__ . |
        tar --extract --directory "$clone"
fi

# What a machine gives everyone stays; what belongs to this shell and its user goes. Downloads of
# pip are taken from its cache: requirements.lock has the hash of each.
kept=(HOME="$folder/home" PIP_CACHE_DIR="${PIP_CACHE_DIR:-$HOME/.cache/pip}" PIP_NO_INPUT=1)
for name in LANG LC_ALL TMPDIR TZ JAVA_HOME "${!PIP_@}" SSL_CERT_FILE SSL_CERT_DIR \
    REQUESTS_CA_BUNDLE http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [ -z "${!name:-}" ] || kept+=("$name=${!name}")
done
path=:$PATH:
[ -z "${VIRTUAL_ENV:-}" ] || path=${path//":$VIRTUAL_ENV/bin:"/:}
path=${path#:} path=${path%:}

said=$folder/said.txt
if ! (cd "$clone" && env -i PATH="$path" "${kept[@]}" make demo) >"$said" 2>&1 </dev/null; then
    tail -n 40 "$said" >&2
    echo "newcomer: \`make demo\` must succeed in a fresh clone; got the failure above." \
        "Is everything it needs committed?" >&2
    exit 1
fi
for expected in "finished: 600,000 rows in" "What to try next:"; do
    if ! grep --quiet --fixed-strings "$expected" "$said"; then
        tail -n 40 "$said" >&2
        echo "newcomer: \`make demo\` must print \"$expected\"; got the lines above." >&2
        exit 1
    fi
done
echo "newcomer: make demo works from a fresh clone, after $SECONDS s"
