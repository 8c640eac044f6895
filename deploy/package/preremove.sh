#!/bin/sh
# Before the package is removed: dpkg says "remove" then, and rpm 0. An upgrade leaves the service as it is. The state
# in /var/lib/stagedoor stays until it is deleted by hand, because it has accounts and money.
set -e
[ -d /run/systemd/system ] || exit 0
case $1 in
  remove | 0) systemctl disable --now stagedoor.service stagedoor.socket ;;
esac
