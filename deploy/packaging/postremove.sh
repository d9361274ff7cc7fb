#!/bin/sh
# After the removal of the files. The group is kept because files may belong to it.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
