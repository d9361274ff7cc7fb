#!/bin/sh
# After installation; $1 is the number of versions installed. The administrator's presets decide whether a first
# installation enables the service.
systemd-sysusers zrlmpid.conf
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  # Applies all files in order, so the administrator's still override the package's. A container may not permit it.
  systemctl restart systemd-sysctl.service || :
fi
if [ "$1" -eq 1 ]; then
  systemctl --no-reload preset zrlmpid.service || :
fi
