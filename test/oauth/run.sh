#!/usr/bin/env bash
# Runs strict OAuth clients (go/, js/) and headless Chromium against a gateway that it
# builds and starts, with a user and an app made by command.
#
#   ./run.sh                 the main ways of users, which CI sees
#   STAGEDOOR_LONG=1 ./run.sh   all tests
#   STAGEDOOR_BINARY=...     a ready program instead of building one
#   STAGEDOOR_CHROMIUM=...   the browser (default: chromium-headless-shell or chromium of the PATH)
#   STAGEDOOR_SCREENSHOTS=.. a directory for pictures of the pages
#
# Exit status: 0 if every test passed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/gateway.sh
source "$here/../gateway.sh"

# field NAME: of the JSON on standard input.
field() { node -e 'console.log(JSON.parse(require("fs").readFileSync(0, "utf8"))[process.argv[1]])' "$1"; }

need_chromium
install_clients "$here/js"
build_program

export STAGEDOOR_USERNAME=anna STAGEDOOR_OPERATOR=root STAGEDOOR_PASSWORD='correct horse battery'
STAGEDOOR_REDIRECT_URI="http://$(free_address)/cb"
export STAGEDOOR_REDIRECT_URI

# What is used must have a price to be seen. With a key of its own the gateway makes
# none, which it would print.
serve_configuration <<'YAML'
keys: [{key: for-tests-only, name: fixed}]
providers:
  sandbox: {shape: sandbox}
models:
  small: {targets: [{provider: sandbox, model: small}], price: {input: 30, output: 60}}
  large: {targets: [{provider: sandbox, model: large}], price: {input: 300, output: 600}}
YAML
create_user "$STAGEDOOR_USERNAME" --email anna@example.com
create_user "$STAGEDOOR_OPERATOR" --admin
app=$("$binary" apps create 'Weather Watch' --owner "$STAGEDOOR_USERNAME" --redirect-uri "$STAGEDOOR_REDIRECT_URI" --json --data "$work/data" \
  --description 'Forecasts for the places you care about, paid from your balance.')
STAGEDOOR_CLIENT_ID=$(field client_id <<<"$app")
STAGEDOOR_CLIENT_SECRET=$(field client_secret <<<"$app")
export STAGEDOOR_CLIENT_ID STAGEDOOR_CLIENT_SECRET

suite 'golang.org/x/oauth2' bash -c "cd '$here/go' && go test -vet=off -count=1 -v ./..."
STAGEDOOR_BINARY=$binary suite 'clients and browsers' \
  bash -c "cd '$here/js' && node --test --test-timeout=900000 --test-reporter=tap ./all.js"

# What was issued is nowhere in the log.
keep_secret '(ac|at|rt|as|se|dt)_[A-Za-z0-9_-]{20}|sd-[A-Za-z0-9]{20}'
conclude
