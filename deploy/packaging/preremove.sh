#!/bin/sh
# Before the removal of the files: stop the service. In an upgrade, postinstall restarts it.
# Called by dpkg with "remove" or "upgrade", by rpm with the number of remaining versions.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl disable --now zrlmpid.service
fi
