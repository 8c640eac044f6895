#!/usr/bin/env bash
# Looks at the pages of /flow in headless Chromium, with requests that the sandbox
# answers as slowly as they ask, through a gateway that it builds and starts.
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

export STAGEDOOR_BINARY="$binary" STAGEDOOR_USERNAME=root STAGEDOOR_PASSWORD='correct horse battery' STAGEDOOR_KEY=sd-for-tests-only
serve_configuration <<YAML
keys: [{key: $STAGEDOOR_KEY, name: fixed}]
providers:
  sandbox: {shape: sandbox}
  narrow: {shape: sandbox, limits: {concurrency: 2, rpm: 600, queue_timeout: 5m}}
models:
  m1: {targets: [{provider: sandbox, model: m1}]}
  n1: {targets: [{provider: narrow, model: n1}]}
  video-2: {targets: [{provider: sandbox, model: video-2}]}
YAML
create_user "$STAGEDOOR_USERNAME" --admin

(cd "$here/js" && node --test --test-timeout=900000 "$@" ./all.js) || failed=1
keep_secret "$STAGEDOOR_KEY"
conclude
