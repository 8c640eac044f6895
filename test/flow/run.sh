#!/usr/bin/env bash
# Looks at the pages of /flow in headless Chromium, with requests that the sandbox
# answers as slowly as they ask, through a gateway that it builds and starts.
#
#   ./run.sh
#   STAGEDOOR_BINARY=...     a ready program instead of building one
#   STAGEDOOR_CHROMIUM=...   the browser (default: chromium of the PATH)
#   STAGEDOOR_SCREENSHOTS=.. a directory for pictures of the pages
#
# Exit status: 0 if every test passed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
gateway=

finish() {
  if [ -n "$gateway" ]; then
    kill "$gateway" 2>/dev/null || true
    wait "$gateway" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap finish EXIT

free_port() {
  node -e 'const s = require("net").createServer(); s.listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'
}

if ! STAGEDOOR_CHROMIUM=${STAGEDOOR_CHROMIUM:-$(command -v chromium)}; then
  echo 'chromium is not installed' >&2
  exit 1
fi
export STAGEDOOR_CHROMIUM
(cd "$root/test/oauth/js" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)

binary=${STAGEDOOR_BINARY:-$work/stagedoor}
[ -n "${STAGEDOOR_BINARY:-}" ] || (cd "$root" && go build -o "$binary" ./cmd/stagedoor)

export STAGEDOOR_BINARY="$binary" STAGEDOOR_USERNAME=root STAGEDOOR_PASSWORD='correct horse battery' STAGEDOOR_KEY=sd-for-tests-only
STAGEDOOR_URL="http://127.0.0.1:$(free_port)"
export STAGEDOOR_URL

cat >"$work/stagedoor.yaml" <<YAML
keys: [{key: $STAGEDOOR_KEY, name: fixed}]
providers:
  sandbox: {shape: sandbox}
  narrow: {shape: sandbox, limits: {concurrency: 2, rpm: 600, queue_timeout: 5m}}
models:
  m1: {targets: [{provider: sandbox, model: m1}]}
  n1: {targets: [{provider: narrow, model: n1}]}
YAML

"$binary" serve --config "$work/stagedoor.yaml" --listen "${STAGEDOOR_URL#http://}" --data "$work/data" >"$work/gateway.log" 2>&1 &
gateway=$!
for _ in $(seq 200); do
  if curl -fsS -o "$work/ready" "$STAGEDOOR_URL/readyz" 2>/dev/null; then break; fi
  sleep 0.1
done
printf '%s\n' "$STAGEDOOR_PASSWORD" | "$binary" users create "$STAGEDOOR_USERNAME" --admin --password-stdin --data "$work/data"

status=0
(cd "$here/js" && node --test --test-timeout=300000 "$@" ./*.test.js) || status=$?
if grep -q "$STAGEDOOR_KEY" "$work/gateway.log"; then
  echo 'the key is in the log of the gateway'
  status=1
fi
if [ "$status" -ne 0 ]; then tail -n 30 "$work/gateway.log"; fi
exit "$status"
