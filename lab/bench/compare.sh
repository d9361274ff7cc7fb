#!/usr/bin/env bash
# Compares the Go benchmarks of the work tree with another revision. The runs alternate,
# so that other load on the machine affects both alike. `make bench-compare` runs it.
#
#   BASE       revision to compare with
#   COUNT      number of runs of each benchmark
#   BENCH      benchmarks to run: a pattern of `go test -bench`
#   BENCHTIME  duration of each benchmark
#   PACKAGES   packages to test; packages missing in the base are skipped
#   THRESHOLD  fail if a median is worse by more than this percentage, and the
#              difference is significant; if empty, never fail
set -euo pipefail
cd "$(dirname "$0")/../.."
GO=${GO:-go}
COUNT=${COUNT:-6} BENCH=${BENCH:-.} BENCHTIME=${BENCHTIME:-0.2s} THRESHOLD=${THRESHOLD:-}
if [ -z "${BASE:-}" ] || ! git rev-parse --quiet --verify "$BASE^{commit}" >/dev/null; then
  echo "BASE=${BASE:-} is no revision: name one, as in make bench-compare BASE=HEAD" >&2
  exit 2
fi
if [[ -n $THRESHOLD && ! $THRESHOLD =~ ^[0-9]+([.][0-9]+)?$ ]]; then
  echo "THRESHOLD=$THRESHOLD is no number of percent" >&2
  exit 2
fi
work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null || true; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/base" "$BASE"
declare -A tree=([base]=$work/base [new]=$PWD)
packages=()
for pkg in $PACKAGES; do
  if ! ls "$work/base/$pkg"/*_test.go >/dev/null 2>&1; then
    echo "$pkg: not in $BASE, and so not compared" >&2
    continue
  fi
  packages+=("$pkg")
  for side in base new; do
    (cd "${tree[$side]}" && $GO test -c -o "$work/$side.${pkg//\//-}.test" "$pkg")
  done
done
for ((i = 1; i <= COUNT; i++)); do
  # Alternate the order.
  sides=(base new)
  ((i % 2)) || sides=(new base)
  for pkg in "${packages[@]}"; do
    for side in "${sides[@]}"; do
      echo "[$i/$COUNT] $pkg, $side" >&2
      (cd "${tree[$side]}/$pkg" && "$work/$side.${pkg//\//-}.test" -test.run '^$' -test.bench "$BENCH" \
        -test.benchtime "$BENCHTIME" -test.benchmem -test.timeout 10m) >>"$work/$side.txt"
    done
  done
done
benchstat() { $GO tool -modfile="$PWD/internal/tools/go.mod" benchstat "$@" "base=$work/base.txt" "new=$work/new.txt"; }
benchstat
if [ -n "$THRESHOLD" ]; then
  benchstat -format csv 2>/dev/null | awk -v threshold="$THRESHOLD" -f lab/bench/worse.awk
fi
