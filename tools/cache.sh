# What scripts share that fetch or build something once, into the user's cache; they source this file.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/tidegate

# Makes the folder $build in the cache, which goes when the script ends.
make_build_folder() {
    mkdir -p "$cache"
    build=$(mktemp -d "$cache/build.XXXXXX")
    trap 'chmod -R u+w "$build" && rm -rf "$build"' EXIT # Go's folders are read-only
}

# Moves what was built to its place. Another process may have been quicker; then its files are as good.
put_into_cache() {
    mv -T "$1" "$2" 2>/dev/null || [ -e "$2" ]
}

# Runs a command as root: as it is, or by sudo, which must not ask.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Installs a package of Debian, also where the lists of packages are missing or old.
install_package() {
    command -v apt-get >/dev/null || return 1
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$1" ||
        { as_root apt-get update -q && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$1"; }
}
