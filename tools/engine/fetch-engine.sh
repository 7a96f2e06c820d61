#!/bin/sh
# Fetches libchdb, the embedded ClickHouse, into the user's cache. Does nothing when it is there already.
#
# It comes as a package of npm, whose lock file would also name platforms that a registry may not serve, so it is fetched
# by name, version and checksum.
set -eu

package="@chdb/lib-linux-x64-gnu"
version="26.5.3"
# The registry's own checksum of this version's package.
integrity="sha512-fPrLmRt5Moor9yGz4mazbrNje4t7X9KB2mTGkXFWRxRBs2iKy8yh6jx11xsa0Qr3iDFMU/yHqd+bVdYJXu3QaQ=="

home="${HOME:?set HOME: the library goes to HOME/.cache/sightline}"
target="$home/.cache/sightline/$version/libchdb.so"

say() { printf '%s\n' "$*" >&2; }
fail() { say "fetch-engine: $*"; exit 1; }

if [ -f "$target" ]; then
    say "libchdb $version is there: $target"
    exit 0
fi

case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) ;;
    *) fail "there is no library for $(uname -s) on $(uname -m); set \`clickhouse.url\` for a server of your own" ;;
esac
for tool in npm:npm tar:tar openssl:openssl base64:coreutils; do
    command -v "${tool%%:*}" >/dev/null 2>&1 ||
        fail "\`${tool%%:*}\` is missing; install it with: sudo apt-get install ${tool##*:}"
done

folder=$(dirname "$target")
mkdir -p "$folder"
# In the same folder as the target, so that the last step is a rename and never leaves half a library.
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

say "1/3 fetching $package $version (166 MB) ..."
npm pack "$package@$version" --pack-destination "$work" >/dev/null ||
    fail "npm cannot fetch $package@$version; \`npm ping\` tells whether the registry answers"
archive=$(find "$work" -name '*.tgz' | head -n 1)
[ -n "$archive" ] || fail "npm fetched nothing"

say "2/3 checking ..."
found="sha512-$(openssl dgst -sha512 -binary "$archive" | base64 | tr -d '\n')"
[ "$found" = "$integrity" ] || fail "the package is not the expected one: checksum $found, expected $integrity"

say "3/3 unpacking ..."
tar -xzf "$archive" -C "$work" package/libchdb.so
mv "$work/package/libchdb.so" "$target"
say "libchdb $version is ready: $target"
