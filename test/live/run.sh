#!/usr/bin/env bash
# Looks at the pages /, /chat, /images and /live in headless Chromium and at `stagedoor videos` on a terminal,
# with a gateway that it builds and starts. Its videos are the sandbox's.
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

need_chromium
install_clients "$here/../oauth/js"
build_program

export STAGEDOOR_BINARY="$binary" STAGEDOOR_USERNAME=anna STAGEDOOR_PASSWORD='correct horse battery' STAGEDOOR_KEY=sd-for-tests-only
serve_configuration <<YAML
keys: [{key: $STAGEDOOR_KEY, name: fixed, user: $STAGEDOOR_USERNAME}]
providers:
  sandbox: {shape: sandbox}
models:
  small: {targets: [{provider: sandbox, model: small}], price: {input: 30, output: 60}}
  large: {targets: [{provider: sandbox, model: large}], price: {input: 300, output: 600}}
  gen-image-1: {targets: [{provider: sandbox, model: gen-image-1}], price: {per_image: 0.04}}
  video-2: {targets: [{provider: sandbox, model: sora-2}], price: {per_second: 0.10}}
YAML
create_user "$STAGEDOOR_USERNAME" --email anna@example.com
"$binary" credits add "$STAGEDOOR_USERNAME" 20 --data "$work/data"

# The page at / is that of a gateway which has no file and no user.
STAGEDOOR_FIRST_URL="http://$(free_address)"
export STAGEDOOR_FIRST_URL
start "$work/first.log" serve --listen "${STAGEDOOR_FIRST_URL#http://}" --data "$work/first"
await_ready "$STAGEDOOR_FIRST_URL" "$work/first.log"

(cd "$here/js" && node --test --test-timeout=900000 "$@" ./all.js) || failed=1
keep_secret "$STAGEDOOR_KEY"
conclude
