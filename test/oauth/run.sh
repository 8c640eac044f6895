#!/usr/bin/env bash
# Runs strict OAuth clients (go/, js/) and headless Chromium against a gateway that it
# builds and starts, with a user and an app made by command.
#
#   ./run.sh                 every suite; the browser's only where Chromium is installed
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
failed=0

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

# suite NAME COMMAND...: runs one suite and prints its counts, its output if it failed.
suite() {
  local name=$1 log="$work/suite.log" status=0
  shift
  "$@" >"$log" 2>&1 || status=$?
  printf '%-24s passed %3d  failed %3d\n' "$name" \
    "$(grep -cE '^ *--- PASS|^ok [0-9]+ ' "$log" || true)" "$(grep -cE '^ *--- FAIL|^not ok [0-9]+ ' "$log" || true)"
  if [ "$status" -ne 0 ]; then
    failed=1
    tail -n "${STAGEDOOR_OAUTH_LINES:-200}" "$log"
  fi
}

# field NAME: of the JSON on standard input.
field() { node -e 'console.log(JSON.parse(require("fs").readFileSync(0, "utf8"))[process.argv[1]])' "$1"; }

js() { (cd "$here/js" && node --test --test-timeout=120000 --test-reporter=tap "$@"); }

# Install scripts are not needed by any client here.
(cd "$here/js" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)

binary=${STAGEDOOR_BINARY:-$work/stagedoor}
[ -n "${STAGEDOOR_BINARY:-}" ] || (cd "$root" && go build -o "$binary" ./cmd/stagedoor)

export STAGEDOOR_USERNAME=anna STAGEDOOR_OPERATOR=root STAGEDOOR_PASSWORD='correct horse battery'
STAGEDOOR_URL="http://127.0.0.1:$(free_port)"
STAGEDOOR_REDIRECT_URI="http://127.0.0.1:$(free_port)/cb"
export STAGEDOOR_URL STAGEDOOR_REDIRECT_URI

# What is used must have a price to be seen. With a key of its own the gateway makes
# none, which it would print.
cat >"$work/stagedoor.yaml" <<'YAML'
keys: [{key: for-tests-only, name: fixed}]
providers:
  sandbox: {shape: sandbox}
models:
  small: {targets: [{provider: sandbox, model: small}], price: {input: 30, output: 60}}
  large: {targets: [{provider: sandbox, model: large}], price: {input: 300, output: 600}}
YAML

"$binary" serve --config "$work/stagedoor.yaml" --listen "${STAGEDOOR_URL#http://}" --data "$work/data" >"$work/gateway.log" 2>&1 &
gateway=$!
for _ in $(seq 200); do
  if curl -fsS -o "$work/ready" "$STAGEDOOR_URL/readyz" 2>/dev/null; then break; fi
  sleep 0.1
done

printf '%s\n' "$STAGEDOOR_PASSWORD" | "$binary" users create "$STAGEDOOR_USERNAME" --email anna@example.com --password-stdin --data "$work/data"
printf '%s\n' "$STAGEDOOR_PASSWORD" | "$binary" users create "$STAGEDOOR_OPERATOR" --admin --password-stdin --data "$work/data"
app=$("$binary" apps create 'Weather Watch' --owner "$STAGEDOOR_USERNAME" --redirect-uri "$STAGEDOOR_REDIRECT_URI" --json --data "$work/data" \
  --description 'Forecasts for the places you care about, paid from your balance.')
STAGEDOOR_CLIENT_ID=$(field client_id <<<"$app")
STAGEDOOR_CLIENT_SECRET=$(field client_secret <<<"$app")
export STAGEDOOR_CLIENT_ID STAGEDOOR_CLIENT_SECRET

suite 'golang.org/x/oauth2' bash -c "cd '$here/go' && go test -count=1 -v ./..."
suite oauth4webapi js oauth4webapi.test.js
suite openid-client js openid-client.test.js
suite simple-oauth2 js simple-oauth2.test.js
if STAGEDOOR_CHROMIUM=${STAGEDOOR_CHROMIUM:-$(command -v chromium)}; then
  export STAGEDOOR_CHROMIUM
  suite 'chromium, apps' js browser.test.js
  suite 'chromium, accounts' js account.test.js
else
  echo 'chromium                 not installed'
fi

# What was issued is nowhere in the log.
if grep -qE '(ac|at|rt|as|se|dt)_[A-Za-z0-9_-]{20}|sd-[A-Za-z0-9]{20}' "$work/gateway.log"; then
  echo 'a secret is in the log of the gateway'
  failed=1
fi
exit "$failed"
