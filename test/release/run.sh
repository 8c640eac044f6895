#!/usr/bin/env bash
# Installs what deploy/release wrote for Linux on this machine, into folders of its own, and tries what it has installed.
#
#   test/release/run.sh DIRECTORY
set -euo pipefail
directory=$(cd "$1" && pwd)
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT
failed=0
ok() { echo "ok    $1"; }
wrong() {
  echo "wrong $1"
  failed=1
}
# holds WHAT COMMAND...: whether the command succeeds.
holds() {
  local what=$1
  shift
  if "$@" >"$work/output" 2>&1; then ok "$what"; else
    wrong "$what"
    tail -n 5 "$work/output"
  fi
}

# complete FOLDER: whether the files that a package brings are there and work.
complete() {
  local usr=$1/usr
  "$usr/bin/stagedoor" --version &&
    "$usr/bin/stagedoor" config check "$1/etc/stagedoor/stagedoor.yaml" &&
    bash -n "$usr/share/bash-completion/completions/stagedoor" &&
    test -s "$(find "$usr/share/zsh" -name _stagedoor)" &&
    test -s "$usr/share/fish/vendor_completions.d/stagedoor.fish" &&
    zcat "$usr/share/man/man1/stagedoor.1.gz" | grep -q '^.SH "STAGEDOOR USERS CREATE"' &&
    test -s "$usr/share/doc/stagedoor/docs/grafana.json" && test -s "$usr/share/doc/stagedoor/docs/alerts.yaml" &&
    test -s "$usr/share/doc/stagedoor/stagedoor.example.yaml" &&
    grep -q '^ExecStart=/usr/bin/stagedoor' "$usr/lib/systemd/system/stagedoor.service" &&
    test -d "$1/var/lib/stagedoor"
}

case $(uname -m) in x86_64) arch=amd64 ;; *) arch=arm64 ;; esac
archive=$(echo "$directory"/stagedoor_*_linux_$arch.tar.gz)
name=$(basename "$archive" .tar.gz)

mkdir "$work/deb" "$work/rpm" "$work/control"
holds 'the Debian package unpacks' dpkg-deb -x "$directory/$name.deb" "$work/deb"
holds 'the Debian package is complete' complete "$work/deb"
dpkg-deb -e "$directory/$name.deb" "$work/control"
for script in preinst postinst prerm; do holds "its script $script is a shell script" sh -n "$work/control/$script"; done
holds 'the configuration is not overwritten' grep -qx /etc/stagedoor/stagedoor.yaml "$work/control/conffiles"
holds 'the state belongs to the service' grep -qE '^drwx------ stagedoor/stagedoor .* ./var/lib/stagedoor/$' \
  <(dpkg-deb -c "$directory/$name.deb")
if command -v rpm2cpio >/dev/null && command -v cpio >/dev/null; then
  holds 'the RPM package unpacks' sh -c "rpm2cpio '$directory/$name.rpm' | (cd '$work/rpm' && cpio -idm --quiet --no-absolute-filenames)"
  holds 'the RPM package is complete' complete "$work/rpm"
fi
holds 'RPM keeps the configuration' grep -qx /etc/stagedoor/stagedoor.yaml <(rpm -qp --configfiles "$directory/$name.rpm")

# install.sh from a server of files, with good and bad checksums.
cp -r "$directory" "$work/web"
port=$((20000 + RANDOM % 10000))
(cd "$work/web" && exec python3 -m http.server --bind 127.0.0.1 "$port") >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 100); do curl -s -o /dev/null "http://127.0.0.1:$port/" && break || sleep 0.1; done
install() {
  curl -fsSL "http://127.0.0.1:$port/install.sh" |
    STAGEDOOR_DOWNLOADS=${1:-http://127.0.0.1:$port} STAGEDOOR_BIN=$work/bin HOME=$work sh
}
refused() { ! install "$@" && [ ! -e "$work/bin/stagedoor" ]; }

sed "s/^[0-9a-f]\{8\}/00000000/" "$directory/SHA256SUMS" >"$work/web/SHA256SUMS"
holds 'a wrong checksum is refused' refused
grep -v tar.gz "$directory/SHA256SUMS" >"$work/web/SHA256SUMS"
holds 'a missing release is refused' refused
cp "$directory/SHA256SUMS" "$work/web/SHA256SUMS"
head -c 1000000 "$archive" >"$work/web/$name.tar.gz"
holds 'half an archive is refused' refused
holds 'a missing folder is refused' refused "http://127.0.0.1:$port/none"
cp "$archive" "$work/web/"
holds 'the right checksum is installed' install
holds 'what is installed runs' "$work/bin/stagedoor" --version
printf '#!/bin/sh\n' >"$work/bin/stagedoor"
holds 'an older one is replaced' install
holds 'the new one runs' grep -q v <("$work/bin/stagedoor" --version)
head -c 1500 "$directory/install.sh" >"$work/half.sh"
rm "$work/bin/stagedoor"
STAGEDOOR_DOWNLOADS=http://127.0.0.1:$port STAGEDOOR_BIN=$work/bin sh "$work/half.sh" >"$work/output" 2>&1 || true
holds 'half a script installs nothing' test ! -e "$work/bin/stagedoor"
exit "$failed"
