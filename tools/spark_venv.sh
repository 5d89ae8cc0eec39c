#!/usr/bin/env bash
# Makes a virtual environment with another version of PySpark, once, and says where it is.
# All other packages are those of requirements.lock.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?"Give a version of PySpark, as tools/spark_venv.sh 4.0.5"}
venv=.venv-spark-$version
stamp=$venv/.setup-done
uv=.venv/bin/uv

if [ ! "$stamp" -nt requirements.lock ]; then
    echo "Making $venv with PySpark $version" >&2
    chosen=$(mktemp)
    trap 'rm -f "$chosen"' EXIT
    echo "pyspark==$version" >"$chosen"
    "$uv" venv --quiet --allow-existing --python .venv/bin/python "$venv"
    "$uv" pip install --quiet --python "$venv/bin/python" --override "$chosen" -r requirements.lock
    "$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
    touch "$stamp"
fi
echo "$venv"
