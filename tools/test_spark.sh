#!/usr/bin/env bash
# Runs tests against another version of PySpark, in a virtual environment of its own.
# Called by `make test-spark VERSION=4.0.5`; all other packages are those of requirements.lock.
# What is given after the version goes to pytest, in place of the tests that touch Spark. Those are
# left out that set answers beside Spark's own: they are written for the locked version.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?"Give a version of PySpark, as make test-spark VERSION=4.0.5"}
shift
venv=$(tools/spark_venv.sh "$version")
"$venv/bin/python" -c 'import pyspark; print("PySpark", pyspark.__version__)'
[ $# -gt 0 ] || set -- tests/spark tests/cluster/test_cluster.py \
    --ignore-glob '*beside_spark*' --ignore-glob '*expression*' --ignore-glob '*lazy*'
exec "$venv/bin/python" -m pytest "$@"
