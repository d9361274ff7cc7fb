#!/usr/bin/env bash
# Builds the programs and a snapshot of the checked-out commit twice, in clones in two folders, and compares all files.
# The second build has a different umask and time zone, and an empty build cache.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD commit=$(git rev-parse HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build() { # folder umask
  umask "$2"
  git clone --quiet --no-checkout "$root" "$1"
  git -C "$1" checkout --quiet --detach "$commit"
  GPG_KEY="" MINISIGN_KEY="" make --no-print-directory -C "$1" "GO=${GO:-go}" build release SNAPSHOT=1 >"$1.log" 2>&1 || { cat "$1.log" >&2; exit 1; }
  (cd "$1/bin" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$1.sums"
}
(build "$work/one" 022)
(mkdir "$work/another" && export TZ=Asia/Tokyo LC_ALL=C GOCACHE=$work/cache && build "$work/another/place" 077)
if ! diff "$work/one.sums" "$work/another/place.sums" >&2; then
  echo "NOT reproducible: the files above differ (commit $commit)" >&2
  exit 1
fi
cat "$work/one.sums"
echo "ok: commit $commit, built twice: $(wc -l <"$work/one.sums") files with the same bytes"
