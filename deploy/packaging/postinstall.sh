#!/bin/sh
# After the files are there: the group of the sockets, and what systemd has to know.
# The service is not enabled or started: its first configuration only serves to try
# things out, and which ranks a machine is to run, only its administrator knows.
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
  # An upgrade goes on with the new version if the old one was running.
  systemctl try-restart zrlmpid.service
fi
