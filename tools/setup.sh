#!/usr/bin/env bash
# Makes the virtual environment in .venv from requirements.lock and finds or installs Java.
# Called by `make setup`, which skips it while neither the lock nor pyproject.toml has changed.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
locked=${LOCKED:-yes}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if new_enough "$name"; then
            echo "$name"
            return
        fi
    done
    local got
    got=$(${PYTHON:-python3} --version 2>/dev/null || echo none)
    echo "Python: Tidegate needs Python 3.11 or newer; got $got. Install one, or run" \
        "\`make setup PYTHON=/path/to/python3.11\`." >&2
    return 2
}

if [ -x "$venv/bin/python" ] && ! new_enough "$venv/bin/python"; then
    echo "Python: $venv must hold Python 3.11 or newer; got an older or broken one." \
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
if [ "$locked" = yes ]; then
    echo "Installing the versions of requirements.lock"
    if ! "${pip[@]}" install --quiet --require-hashes -r requirements.lock; then
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
touch "$venv/.setup-done"
