#!/bin/sh
# After the installation of the files: create the group of the sockets, and reload systemd.
# The service is not enabled or started: its first configuration is only for tests, and the
# administrator decides which ranks the machine runs.
# Called by dpkg with "configure", by rpm with the number of installed versions.
set -e
case "$1" in
configure | 1 | 2) ;;
*) exit 0 ;;
esac
if ! getent group zrlmpi >/dev/null; then
  if command -v systemd-sysusers >/dev/null; then
    systemd-sysusers zrlmpid.conf
  else
    groupadd --system zrlmpi
  fi
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  # All files in their order, so that one of the administrator's still wins. In a
  # container the kernel's limits may be out of reach.
  systemctl restart systemd-sysctl.service || true
  # An upgrade starts the new version if the old one was running.
  systemctl try-restart zrlmpid.service
fi
