#!/bin/sh
# Before the files go: the service stops. An upgrade leaves it to postinstall.
# Called by dpkg with "remove" or "upgrade", by rpm with how many versions remain.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl disable --now zrlmpid.service
fi
