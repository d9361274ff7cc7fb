#!/usr/bin/env bash
# Writes a manual page from Markdown on standard input: manual.sh NAME SECTION VERSION. The page bears the date of
# SOURCE_DATE_EPOCH.
set -euo pipefail
date=$(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%b %Y')
{ printf '%% "%s" "%s" "%s" "zrlmpid %s" "zrlmpid manual"\n' "${1^^}" "$2" "$date" "$3"; cat; } | "${GO:-go}" tool go-md2man
