#!/usr/bin/env bash
# Looks at every page, with data in it, in headless Chromium: axe, both themes, forced colours, a phone, the keyboard,
# scripting off and weights, through a gateway that it builds and starts.
#
#   ./run.sh                 the main page of each area in one medium, and on three sizes of screens; the main way of two
#                            pages by the keyboard alone
#   STAGEDOOR_LOOKS=all      each page in all of them, and the main way of each (js/keyboard.js)
#   STAGEDOOR_LOOKS=paint    a table of the bytes of each page and of the time until its first paint, which are judged
#   STAGEDOOR_ROUNDS=5       how often each page is painted for that, without a cache and with one
#   STAGEDOOR_BINARY=...     a ready program instead of building one
#   STAGEDOOR_CHROMIUM=...   the browser (default: chromium-headless-shell or chromium of the PATH)
#   STAGEDOOR_SCREENSHOTS=.. a directory for pictures of the pages
#   STAGEDOOR_ONLY=...       only pages whose name in js/pages.js matches this pattern
#
# Exit status: 0 if every test passed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/gateway.sh
source "$here/../gateway.sh"

need_chromium
install_clients "$here/../oauth/js"
build_program

# Names are as long as a gateway allows, or have nowhere to break a line.
long=$(printf 'a%.0s' {1..60})
export STAGEDOOR_USERNAME=anna STAGEDOOR_PASSWORD='correct horse battery' STAGEDOOR_KEY=sd-for-tests-only
export STAGEDOOR_OPERATOR=root STAGEDOOR_LEAD=lena STAGEDOOR_REDIRECT_URI='http://127.0.0.1:9/cb'
serve_configuration <<YAML
keys: [{key: $STAGEDOOR_KEY, name: fixed, user: $STAGEDOOR_USERNAME}]
providers:
  sandbox: {shape: sandbox}
  narrow: {shape: sandbox, limits: {concurrency: 2, rpm: 600, queue_timeout: 5m}}
  $long: {shape: sandbox}
models:
  small: {targets: [{provider: sandbox, model: small}], price: {input: 30, output: 60}}
  n1: {targets: [{provider: narrow, model: n1}]}
  $long: {targets: [{provider: $long, model: m1}], price: {input: 30, output: 60}}
  gen-image-1: {targets: [{provider: sandbox, model: gen-image-1}], price: {per_image: 0.04}}
  video-2: {targets: [{provider: sandbox, model: sora-2}], price: {per_second: 0.10}}
YAML
data=(--data "$work/data")
create_user "$STAGEDOOR_USERNAME" --email anna@example.com
create_user "$STAGEDOOR_OPERATOR" --admin
create_user "$STAGEDOOR_LEAD"
create_user "u$long" --email "$long@example.com"
{
  "$binary" groups create Design --model '*' --budget 400 --budget-window month "${data[@]}"
  "$binary" groups add Design "$STAGEDOOR_USERNAME" "${data[@]}"
  "$binary" groups add Design "$STAGEDOOR_LEAD" "${data[@]}"
  "$binary" groups lead Design "$STAGEDOOR_LEAD" "${data[@]}"
  "$binary" users invite dora@example.com --group Design "${data[@]}"
  "$binary" users developer-token "$STAGEDOOR_USERNAME" --name laptop "${data[@]}"
  "$binary" credits add "$STAGEDOOR_USERNAME" 20 "${data[@]}"
  "$binary" codes mint 5 --count 3 --expires-in 90d "${data[@]}"
  "$binary" keys create --user "$STAGEDOOR_USERNAME" --name ci --scope chat,models --model 'gpt-*,claude-*' --rpm 60 \
    --budget 20 --budget-window month --allow-ip 192.0.2.0/24,2001:db8::/32 --expires-in 30d "${data[@]}"
  "$binary" keys create --user "$STAGEDOOR_USERNAME" --name "$long" "${data[@]}"
  "$binary" keys create --user "$STAGEDOOR_USERNAME" --name recorded --json "${data[@]}" | tee "$work/recorded"
} >"$work/made"
recorded() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$work/recorded"; }
STAGEDOOR_RECORDED_KEY=$(recorded key)
export STAGEDOOR_RECORDED_KEY
"$binary" keys update "$(recorded id)" --record-for 24h "${data[@]}" >>"$work/made"
STAGEDOOR_CLIENT_ID=$("$binary" apps create 'Weather Watch' --owner "$STAGEDOOR_USERNAME" --json "${data[@]}" \
  --redirect-uri "$STAGEDOOR_REDIRECT_URI" --description 'Forecasts for the places you care about.' |
  sed -n 's/.*"client_id": *"\([^"]*\)".*/\1/p')
export STAGEDOOR_CLIENT_ID STAGEDOOR_CLIENT_SECRET=unused

# The page at / is that of a gateway which has no file and no user.
STAGEDOOR_FIRST_URL="http://$(free_address)"
export STAGEDOOR_FIRST_URL
start "$work/first.log" serve --listen "${STAGEDOOR_FIRST_URL#http://}" --data "$work/first"
await_ready "$STAGEDOOR_FIRST_URL" "$work/first.log"

tests=(pages.test.js)
[ "${STAGEDOOR_LOOKS:-}" != paint ] || tests=(paint.js)
(cd "$here/js" && node --test --test-timeout=3600000 "$@" "${tests[@]}") || failed=1
keep_secret "$STAGEDOOR_KEY"
conclude
