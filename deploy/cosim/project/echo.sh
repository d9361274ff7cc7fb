#!/bin/sh
# Runs zrlmpid with cluster.yaml, sends the role messages of several lengths, compares the
# echoes, and stops zrlmpid.
set -eu
dir=$(mktemp -d)
export ZRLMPID_CONTROL_SOCKET="$dir/control.sock" ZRLMPID_HTTP_LISTEN=
pid=
cleanup() {
  if [ -n "$pid" ]; then
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  fi
  rm -rf "$dir"
}
trap cleanup EXIT
rm -f zrlmpid.log # an old log would contain "ready"
zrlmpid --config cluster.yaml >zrlmpid.log 2>&1 &
pid=$!
until grep -qs '^ready' zrlmpid.log; do
  if ! kill -0 "$pid" 2>/dev/null; then
    cat zrlmpid.log >&2
    exit 1
  fi
  sleep 0.1
done
if ! zrlctl ping 1 --words 1,2,3,346,347,1000,5001 --count 3; then
  zrlctl why || true
  cat zrlmpid.log >&2
  exit 1
fi
