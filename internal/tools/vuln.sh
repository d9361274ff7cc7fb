#!/usr/bin/env bash
# Runs govulncheck on the whole module. A machine that cannot reach the
# vulnerability database learns nothing from it: that is said, and is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT
if "${GO:-go}" tool -modfile="$PWD/internal/tools/go.mod" govulncheck ./... >"$out" 2>&1; then
  cat "$out"
  exit 0
fi
status=$?
if grep -qE 'vuln\.go\.dev|fetching vulnerabilities' "$out" && ! grep -q '^Vulnerability #' "$out"; then
  echo "NOT CHECKED for known vulnerabilities: the database cannot be reached from here:" >&2
  tail -n 2 "$out" >&2
  exit 0
fi
cat "$out"
exit "$status"
