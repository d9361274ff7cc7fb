#!/usr/bin/env bash
# Prints the version of the checked-out commit. CHANGELOG.md names the version to be released next, here 1.2.0-rc.1:
#
#   v1.2.0-rc.1                     the commit with that tag, if no file has changed
#   v1.2.0-rc.1~COMMITS.gCOMMIT     a snapshot before the release; COMMITS is the number of commits up to this one
#   v1.2.0-rc.1+COMMITS.gCOMMIT     a snapshot after it
#   v1.2.0~snapshot.COMMITS.gCOMMIT a snapshot before a version without a suffix, but after its release candidates
#
# dpkg and rpm sort them in this order, and snapshots by their number.
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
next=v$(sed -nE 's/^## \[([0-9][^]]*)\].*/\1/p' CHANGELOG.md | head -n 1)
if ! commit=$(git rev-parse --short=12 HEAD 2>/dev/null); then
  echo "$next~0" # an archive of the sources
  exit
fi
changed=$(git status --porcelain --untracked-files=no)
released=$(git tag --list "$next")
if [ -n "$released" ] && [ -z "$changed" ] && [ "$(git rev-parse "$next^{commit}")" = "$(git rev-parse HEAD)" ]; then
  echo "$next"
  exit
fi
separator="~"
[[ $next == *-* ]] || separator="~snapshot."
if [ -n "$released" ] && git merge-base --is-ancestor "$next" HEAD; then separator=+; fi
echo "$next$separator$(git rev-list --count HEAD).g$commit${changed:+.modified}"
