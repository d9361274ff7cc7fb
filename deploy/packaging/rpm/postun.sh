#!/bin/sh
# After removal; $1 is the number of versions that remain. An upgrade restarts the service if it runs. The group is
# kept, because files may belong to it.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  if [ "$1" -ge 1 ]; then
    systemctl try-restart zrlmpid.service || :
  fi
fi
