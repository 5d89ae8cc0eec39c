#!/usr/bin/env bash
# Makes the virtual environment in .venv from requirements.lock and finds or installs Java.
# Called by `make setup`, which skips it while neither the lock nor pyproject.toml has changed.
# Where PYTHON is given and .venv holds another version, .venv is made anew.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
stamp=$venv/.setup-done
locked=${LOCKED:-yes}
versions="Python 3.11, 3.12 or 3.13" # as requires-python in pyproject.toml

supported() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null
}

version() {
    "$1" --version 2>/dev/null || echo none
}

find_python() {
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if supported "$name"; then
            echo "$name"
            return
        fi
    done
    echo "Python: Tidegate needs $versions; got $(version "${PYTHON:-python3}"). Install one, or run" \
        "\`make setup PYTHON=/path/to/python3.13\`. For newer versions datasketches has no wheels yet." >&2
    return 2
}

if [ -n "${PYTHON:-}" ]; then
    python=$(find_python)
    if [ -x "$venv/bin/python" ] && [ "$(version "$venv/bin/python")" != "$(version "$python")" ]; then
        echo "$venv holds $(version "$venv/bin/python") and is made anew"
        rm -rf "$venv"
    elif [ -z "${LOCKED:-}" ] && [ "$stamp" -nt requirements.lock ] &&
        [ "$stamp" -nt pyproject.toml ] && [ "$stamp" -nt tools/setup.sh ]; then
        exit 0
    fi
fi
if [ -x "$venv/bin/python" ] && ! supported "$venv/bin/python"; then
    echo "Python: $venv must hold $versions; got $(version "$venv/bin/python")." \
        "Remove it with \`make clean-venv\` and run \`make setup\` again." >&2
    exit 2
fi
if [ ! -x "$venv/bin/python" ]; then
    python=$(find_python)
    echo "Making $venv with $("$python" --version)"
    if ! "$python" -m venv "$venv"; then
        rm -rf "$venv"
        echo "Python: the module venv must work; got a failure. On Debian and Ubuntu:" \
            "apt-get install python3-venv." >&2
        exit 2
    fi
fi

pip=("$venv/bin/python" -m pip --disable-pip-version-check --no-input)

# uv is quicker than pip, but knows nothing of an index or a proxy that pip was told of.
install_with_uv() {
    ! "${pip[@]}" config list | grep -qE 'index|proxy|trusted-host|client-cert' &&
        "${pip[@]}" install --quiet --require-hashes \
            -r <(sed -n '/^uv==/,/[^\\]$/p' requirements.lock) &&
        "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --require-hashes \
            -r requirements.lock
}

# PySpark comes as source, of which a wheel is made: its jars are packed already.
export DIST_EXTRA_CONFIG=$PWD/tools/stored_wheel.cfg
if [ "$locked" = yes ]; then
    echo "Installing the versions of requirements.lock"
    if ! install_with_uv &&
        ! "${pip[@]}" install --quiet --require-hashes -r requirements.lock; then
        echo "pip: the versions of requirements.lock must install; got the failure above." \
            "For other versions within the ranges of pyproject.toml: \`make setup LOCKED=no\`." >&2
        exit 1
    fi
    "${pip[@]}" install --quiet --no-deps --no-build-isolation --editable .
else
    echo "Installing the newest versions that pyproject.toml allows"
    "${pip[@]}" install --quiet --upgrade --editable '.[dev]'
fi

"$venv/bin/python" -m tidegate.execute.java --install
touch "$stamp"
