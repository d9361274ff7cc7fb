#!/usr/bin/env bash
# Runs govulncheck on the main module and on the lab module. If the vulnerability database cannot be reached, it reports
# that and succeeds.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
out=$(mktemp)
trap 'rm -f "$out"' EXIT
for module in . lab; do
  status=0
  (cd "$module" && "${GO:-go}" tool -modfile="$root/internal/tools/go.mod" govulncheck ./...) >"$out" 2>&1 || status=$?
  if [ "$status" -ne 0 ] && grep -qE 'vuln\.go\.dev|fetching vulnerabilities' "$out" && ! grep -q '^Vulnerability #' "$out"; then
    echo "NOT CHECKED for known vulnerabilities: the database cannot be reached from here:" >&2
    tail -n 2 "$out" >&2
    exit 0
  fi
  cat "$out"
  [ "$status" -eq 0 ] || exit "$status"
done
