#!/usr/bin/env bash
# Converts Markdown on standard input to a manual page: manual.sh NAME SECTION VERSION. SOURCE_DATE_EPOCH is the date
# shown on the page.
set -euo pipefail
date=$(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%b %Y')
{ printf '%% "%s" "%s" "%s" "zrlmpid %s" "zrlmpid manual"\n' "${1^^}" "$2" "$date" "$3"; cat; } | "${GO:-go}" tool go-md2man
