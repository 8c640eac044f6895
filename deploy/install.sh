#!/bin/sh
# Installs the newest stagedoor from a folder of releases on the web, after it has compared the checksum:
#
#   curl -fsSL https://HOST/install.sh | STAGEDOOR_DOWNLOADS=https://HOST sh
#
#   STAGEDOOR_DOWNLOADS   the folder that make release wrote, where it is on the web
#   STAGEDOOR_BIN         where the program goes: /usr/local/bin for root, else ~/.local/bin
#
# The checksums come from the same folder. They find a broken download, and not a folder that was taken over.
set -eu
downloads=${STAGEDOOR_DOWNLOADS:-}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

fetch() {
  if command -v curl >/dev/null; then
    curl -fsSL -o "$2" "$1" || fail "cannot download $1"
  elif command -v wget >/dev/null; then
    wget -q -O "$2" "$1" || fail "cannot download $1"
  else
    fail 'needs curl or wget'
  fi
}

checksum() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$1"
  elif command -v shasum >/dev/null; then
    shasum -a 256 "$1"
  else
    fail 'needs sha256sum or shasum'
  fi | cut -d ' ' -f 1
}

main() {
  [ -n "$downloads" ] || fail 'STAGEDOOR_DOWNLOADS is not set'
  os=$(uname -s | tr '[:upper:]' '[:lower:]')
  case $(uname -m) in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "there is no release for $(uname -m)" ;;
  esac
  bin=${STAGEDOOR_BIN:-}
  if [ -z "$bin" ]; then
    bin=$HOME/.local/bin
    [ "$(id -u)" -ne 0 ] || bin=/usr/local/bin
  fi

  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  fetch "$downloads/SHA256SUMS" "$work/SHA256SUMS"
  line=$(grep -E "^[0-9a-f]{64}  stagedoor_[A-Za-z0-9.+-]+_${os}_${arch}\.tar\.gz\$" "$work/SHA256SUMS") ||
    fail "there is no release for $os/$arch"
  [ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || fail "SHA256SUMS names several releases for $os/$arch"
  name=${line#*  }
  fetch "$downloads/$name" "$work/$name"
  [ "$(checksum "$work/$name")" = "${line%% *}" ] || fail "$name is damaged: its checksum is not the one in SHA256SUMS"

  tar -C "$work" -xzf "$work/$name" "${name%.tar.gz}/stagedoor"
  mkdir -p "$bin"
  cp "$work/${name%.tar.gz}/stagedoor" "$bin/.stagedoor.new"
  chmod 755 "$bin/.stagedoor.new"
  mv "$bin/.stagedoor.new" "$bin/stagedoor" # at once, also while an older one runs
  echo "installed $("$bin/stagedoor" --version) in $bin"
  case ":$PATH:" in
    *":$bin:"*) ;;
    *) echo "add $bin to your PATH" ;;
  esac
}

# The shell reads to here before anything is done, so that half a download does nothing.
main
