#!/usr/bin/env bash
# One host rank and three stand-in FPGAs on 127.0.0.1-4, port 2718, in one
# daemon. Pings each stand-in with messages of several lengths, checks every
# byte that comes back, and prints the time of each phase of the handshake.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
export ZRLMPID_CONTROL_SOCKET=$dir/control.sock
export ZRLMPID_HTTP_LISTEN= # another daemon may have the default address
daemon=
cleanup() {
  if [ -n "$daemon" ]; then kill "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true; fi
  rm -rf "$dir"
}
trap cleanup EXIT
echo "\$ zrlmpid --config deploy/demo.yaml"
./bin/zrlmpid --config deploy/demo.yaml &
daemon=$!
./bin/zrlctl status --wait 10s >"$dir/status" || { echo "the daemon did not come up" >&2; exit 1; }
echo "\$ zrlctl ping all --words 1,2,3,346,347,1000,262160 --count 3"
./bin/zrlctl ping all --words 1,2,3,346,347,1000,262160 --count 3
