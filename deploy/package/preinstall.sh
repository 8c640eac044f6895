#!/bin/sh
# Before the files of the package are unpacked, because some belong to the user.
set -e
getent group stagedoor >/dev/null || groupadd --system stagedoor
getent passwd stagedoor >/dev/null ||
  useradd --system --gid stagedoor --home-dir /var/lib/stagedoor --no-create-home --shell /usr/sbin/nologin stagedoor
