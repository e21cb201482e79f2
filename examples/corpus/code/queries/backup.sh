#!/bin/sh
# Copy a directory into a dated snapshot; unchanged files are hard links to the previous snapshot.
#
#     backup.sh SOURCE TARGET [KEEP]
#
# Snapshots are called TARGET/2024-05-31T04-00-00. KEEP (default 14) newest ones are kept.
set -eu

usage() {
    echo "usage: $(basename "$0") SOURCE TARGET [KEEP]" >&2
    exit 2
}

[ $# -ge 2 ] || usage
source=${1%/}
target=${2%/}
keep=${3:-14}

[ -d "$source" ] || { echo "$source is not a directory" >&2; exit 2; }
mkdir -p "$target"

stamp=$(date -u +%Y-%m-%dT%H-%M-%S)
partial=$target/.partial-$stamp
latest=$(find "$target" -mindepth 1 -maxdepth 1 -type d -name '20*' | sort | tail -n 1)

# A snapshot gets its name only when it is complete.
trap 'rm -rf "$partial"' EXIT
if [ -n "$latest" ]; then
    rsync -a --delete --link-dest="$latest" "$source/" "$partial/"
else
    rsync -a "$source/" "$partial/"
fi
mv "$partial" "$target/$stamp"
trap - EXIT

# Remove the oldest ones.
find "$target" -mindepth 1 -maxdepth 1 -type d -name '20*' | sort -r | tail -n "+$((keep + 1))" |
while read -r old; do
    echo "removing $old"
    rm -rf "$old"
done
