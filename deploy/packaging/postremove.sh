#!/bin/sh
# After the files have gone. The group stays, as its number may own files.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
