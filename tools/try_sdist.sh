#!/usr/bin/env bash
# Runs tests from the source archive, unpacked in a fresh folder without .git, with the packages of
# .venv. The arguments are pytest's; those of WORKERS stand before them. Leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$PWD/.venv
folder=$(mktemp -d "${TMPDIR:-/tmp}/tidegate-sdist-XXXXXX")
trap 'rm -rf "$folder"' EXIT
"$venv/bin/hatchling" build --target sdist --directory "$folder" >/dev/null 2>&1
tar --extract --gzip --file "$folder"/tidegate-*.tar.gz --directory "$folder"
cd "$folder"/tidegate-*/
ln -s "$venv" .venv
# .venv has the package of the tree that it was made for.
export PYTHONPATH=$PWD/src:$PWD
place=$(.venv/bin/python -c 'import tidegate; print(tidegate.__file__)')
[ "$place" = "$PWD/src/tidegate/__init__.py" ]
# shellcheck disable=SC2086
.venv/bin/python -m pytest ${WORKERS:-} "$@"
