#!/usr/bin/env bash
# Checks the changes since BASE, by default since the branch diverged from main. Runs golangci-lint on the changed
# packages, the check for retired words, and the short tests of the changed packages and of their direct importers.
# Packages below internal/integration and examples are tested only if they changed themselves.
set -euo pipefail
cd "$(dirname "$0")/../.."
go=${GO:-go}
module=$($go list -m)
base=${BASE:-$(git merge-base HEAD main 2>/dev/null || echo HEAD)}

# A file belongs to the package in the nearest folder above it that contains Go files.
changed=$({ git diff --name-only "$base"; git ls-files --others --exclude-standard; } |
  while read -r file; do
    dir=$(dirname "$file")
    until compgen -G "$dir/*.go" >/dev/null || [ "$dir" = . ]; do dir=$(dirname "$dir"); done
    [ "$dir" = . ] || echo "$module/$dir"
  done | sort -u)

# Only packages of this module count, not those of nested modules.
packages=$($go list -f '{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
  awk -v changed="$changed" '
    BEGIN { n = split(changed, a, "\n"); for (i = 1; i <= n; i++) is[a[i]] = 1 }
    is[$1] { print "changed", $1 }
    is[$1] || $1 !~ "/(internal/integration|examples)(/|$)" {
      for (i = 1; i <= NF; i++) if (is[$i]) { print "test", $1; break }
    }')
lint=$(sed -n "s|^changed $module|.|p" <<<"$packages")
test=$(sed -n "s|^test $module|.|p" <<<"$packages")

for nested in lab internal/tools; do # nested modules
  if [ -f "$nested/go.mod" ] && ! git diff --quiet "$base" -- "$nested"; then $go -C "$nested" vet ./...; fi
done
$go -C internal/tools run ./words
$go -C internal/tools run ./links
if [ -n "$lint" ]; then
  # shellcheck disable=SC2086
  $go tool -modfile="$PWD/internal/tools/go.mod" golangci-lint run --new-from-rev "$base" $lint
fi
if [ -n "$test" ]; then
  # shellcheck disable=SC2086
  $go test -short -vet=off $test
fi
