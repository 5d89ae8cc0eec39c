#!/usr/bin/env bash
# Installs the wheel of dist/ into a fresh environment, as someone new would, and runs the command in
# an empty folder. Called by `make try-wheel`, with PYTHON; leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/.."

wheel=$(ls "$PWD"/dist/tidegate-*.whl)
folder=$(mktemp -d "${TMPDIR:-/tmp}/tidegate-wheel-XXXXXX")
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" --disable-pip-version-check install --quiet "$wheel"
cd "$folder"
export PATH=$folder/venv/bin:$PATH

tidegate --version
tidegate generate taxi --rows 12000 --out rides.parquet
cat >routes.sql <<'SQL'
CREATE STREAM rides FROM 'rides.parquet' TIME dropoff_time;
SELECT route, AVG(fare) AS fare, COUNT(*) AS n
FROM rides [RANGE 15 MINUTES SLIDE 5 MINUTES]
GROUP BY route ORDER BY n DESC LIMIT 10;
SQL
tidegate run routes.sql --master none --format csv --out one
tidegate run routes.sql --master none --format csv --out many --instances 5 --batch-rows 1000
rows() { tail -q -n +2 "$1"/batch=*/*.csv; }
[ "$(rows one | wc -l)" -gt 20 ] && cmp <(rows one) <(rows many)
tidegate demo >demo.txt 2>&1 || { tail -n 40 demo.txt >&2; exit 1; }
grep --quiet "What to try next:" demo.txt
echo "wheel: $(basename "$wheel") works with $(python --version), after $SECONDS s"
