#!/usr/bin/env bash
# The Postgres server of the tests, from Debian's package.
#   tools/postgres.sh                   installs it where it is missing, and says where its programs are
#   tools/postgres.sh serve FOLDER PORT makes a database in an empty folder, and serves it on loopback
#   tools/postgres.sh until-ctrl-c      the same in a folder of its own, which goes with it (PORT=...)
# The server refuses to run as root; then it runs as the user postgres.
set -euo pipefail
. "$(dirname "$0")/cache.sh"

programs() {
    local found
    found=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
    if [ -z "$found" ] && command -v initdb >/dev/null && command -v postgres >/dev/null; then
        found=$(dirname "$(readlink -f "$(command -v postgres)")")
    fi
    echo "$found"
}

install() {
    # A cluster of its own, which the package would start, is of no use here.
    as_root mkdir -p /etc/postgresql-common &&
        { [ -e /etc/postgresql-common/createcluster.conf ] ||
            echo "create_main_cluster = false" | as_root tee /etc/postgresql-common/createcluster.conf; } &&
        install_package postgresql
}

found=$(programs)
if [ -z "$found" ]; then
    echo "Installing Debian's package postgresql, once" >&2
    install >&2 || true
    found=$(programs)
fi
if [ -z "$found" ]; then
    echo "Postgres: tests/postgres needs the programs of a Postgres server; got none, and apt-get gave" \
        "none. Install the package postgresql, or put initdb and postgres on the PATH." >&2
    exit 2
fi

# Runs a program as a user that the server accepts; it ends with who has started it.
aside=(setpriv)
own() { :; }
if [ "$(id -u)" = 0 ]; then
    user=postgres
    id -u "$user" >/dev/null 2>&1 || user=nobody
    aside=(setpriv --reuid="$user" --regid="$(id -gn "$user")" --clear-groups)
    own() { chown "$user" "$1"; }
fi

serve() {
    local folder=$1 port=$2
    own "$folder"
    cd "$folder"
    "${aside[@]}" --pdeathsig INT "$found/initdb" --pgdata="$folder/data" --username=tidegate --auth=trust \
        --encoding=UTF8 --locale=C --no-sync >"$folder.log" 2>&1 ||
        { cat "$folder.log" >&2; exit 1; }
    # One user needs a password, for tests of credentials.
    "${aside[@]}" --pdeathsig INT sed -i '1i host all guarded 127.0.0.1/32 scram-sha-256' "$folder/data/pg_hba.conf"
    exec "${aside[@]}" --pdeathsig INT "$found/postgres" -D "$folder/data" \
        -c listen_addresses=127.0.0.1 -c port="$port" -c unix_socket_directories= \
        -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=32MB \
        -c max_connections=40 -c autovacuum=off -c timezone=UTC
}

case ${1:-} in
"") echo "$found" ;;
serve) serve "$2" "$3" ;;
until-ctrl-c)
    folder=$(mktemp -d /tmp/tidegate-postgres.XXXXXX)
    port=${PORT:-5433}
    trap 'rm -rf "$folder" "$folder.log"' EXIT
    # Ctrl-C comes to the server too, which ends by it; a second signal does no harm.
    trap 'kill -INT "$server" 2>/dev/null || true' INT TERM
    "$0" serve "$folder" "$port" &
    server=$!
    echo "postgresql://tidegate@127.0.0.1:$port/postgres?table=NAME until Ctrl-C"
    while kill -0 "$server" 2>/dev/null; do
        wait "$server" || true
    done
    ;;
*)
    echo "tools/postgres.sh: must be told serve or until-ctrl-c, or nothing; got $1." >&2
    exit 2
    ;;
esac
