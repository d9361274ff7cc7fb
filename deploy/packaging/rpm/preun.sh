#!/bin/sh
# Before removal; $1 is the number of versions that remain.
if [ "$1" -eq 0 ]; then
  systemctl --no-reload disable --now zrlmpid.service || :
fi
