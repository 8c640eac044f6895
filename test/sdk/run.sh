#!/usr/bin/env bash
# Runs the vendors' own clients (go/, js/) against a gateway and prints counts.
#
#   STAGEDOOR_URL=http://127.0.0.1:8080 STAGEDOOR_KEY=sd-... ./run.sh
#       against a running gateway, which must serve the models `any`, `limited-*`,
#       `gen-image-1`, `legacy-image-*` and `video-2` from the sandbox and no model
#       `no-such-model`
#   ./run.sh [UPSTREAM ...]
#       builds and starts gateways whose upstream is the sandbox in each shape over
#       HTTP; upstreams: sandbox (embedded) chat messages responses gemini; all if
#       none is named; STAGEDOOR_BINARY names a ready program instead. Pictures and
#       videos are embedded with sandbox, else of the images and videos shapes.
#   STAGEDOOR_SDK_RUN=Video ./run.sh [UPSTREAM ...]
#       only the tests of that name (go test -run), and only of go/
#
# Exit status: 0 if every test passed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
pids=()
failed=0
limited=(limited-{go,js}-{chat,responses,messages,generate}-{whole,streamed})

finish() {
  local pid
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT

free_port() {
  node -e 'const s = require("net").createServer(); s.listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'
}

# await_ready URL LOG: until the program answers there.
await_ready() {
  local _
  for _ in $(seq 200); do
    if curl -fsS -o "$work/ready" "$1" 2>/dev/null; then return; fi
    sleep 0.1
  done
  echo "not ready: $1" >&2
  tail -n 20 "$2" >&2
  exit 1
}

# suite NAME COMMAND...: runs one suite and prints its counts, its output if it failed.
suite() {
  local name=$1 log="$work/suite.${1//[: ]/-}.log" status=0 passed broken
  shift
  "$@" >"$log" 2>&1 || status=$?
  # go test -v prints --- PASS; the tap reporter prints ok, indented within a suite.
  passed=$(grep -cE '^ *--- PASS|^    ok [0-9]+ ' "$log" || true)
  broken=$(grep -cE '^ *--- FAIL|^    not ok [0-9]+ ' "$log" || true)
  printf '%-24s passed %3d  failed %3d\n' "$name" "$passed" "$broken"
  if [ "$status" -ne 0 ]; then
    failed=1
    grep -vE '^ *(--- PASS|=== |ok [0-9]+ )' "$log" | tail -n "${STAGEDOOR_SDK_LINES:-200}"
  fi
}

go_suite() { (cd "$here/go" && go test -count=1 -v -run "${STAGEDOOR_SDK_RUN:-.}" ./...); }
js_suite() { (cd "$here/js" && node --test --test-timeout=300000 --test-reporter=tap); }

# suites LABEL: both, against STAGEDOOR_URL. Its status is 0 if every test passed.
suites() {
  suite "$1: go" go_suite
  [ -n "${STAGEDOOR_SDK_RUN:-}" ] || suite "$1: js" js_suite
  return "$failed"
}

# start_gateway LABEL PROVIDER EASEL STUDIO: one that serves `any`, pictures and videos
# from providers, given as YAML.
# A provider that answers 429 is left alone for a while, and everybody waits: so each
# test that provokes it has a provider of its own.
start_gateway() {
  local port name
  port=$(free_port)
  cat >"$work/$1.yaml" <<YAML
listen: ["127.0.0.1:$port"]
data: memory
keys:
  - {key: "sd-sdk", name: sdk}
providers:
  upstream: $2
  easel: $3
  studio: $4
$(for name in "${limited[@]}"; do echo "  $name: $2"; done)
models:
  any: {targets: [{provider: upstream, model: "*"}]}
  gen-image-*: {targets: [{provider: easel, model: "*"}]}
  video-*: {targets: [{provider: studio, model: "*"}]}
  legacy-image-*: {targets: [{provider: easel, model: "*"}]}
$(for name in "${limited[@]}"; do echo "  $name: {targets: [{provider: $name, model: \"*\"}]}"; done)
YAML
  "$work/stagedoor" serve --config "$work/$1.yaml" >"$work/$1.log" 2>&1 &
  pids+=($!)
  export STAGEDOOR_URL="http://127.0.0.1:$port" STAGEDOOR_KEY=sd-sdk
  await_ready "$STAGEDOOR_URL/readyz" "$work/$1.log"
}

# Install scripts are not needed by any client here.
[ -n "${STAGEDOOR_SDK_RUN:-}" ] || (cd "$here/js" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)

if [ -n "${STAGEDOOR_URL:-}" ]; then
  : "${STAGEDOOR_KEY:?set STAGEDOOR_KEY too}"
  export STAGEDOOR_URL STAGEDOOR_KEY
  suites given
  exit
fi

if [ -n "${STAGEDOOR_BINARY:-}" ]; then
  cp "$STAGEDOOR_BINARY" "$work/stagedoor"
else
  (cd "$root" && go build -o "$work/stagedoor" ./cmd/stagedoor)
fi
sandbox="127.0.0.1:$(free_port)"
"$work/stagedoor" sandbox --listen "$sandbox" >"$work/upstream.log" 2>&1 &
pids+=($!)
for _ in $(seq 100); do
  if (exec 3<>"/dev/tcp/${sandbox/://}") 2>/dev/null; then break; fi
  sleep 0.1
done

[ $# -gt 0 ] || set -- sandbox chat messages responses gemini
running=()
for upstream in "$@"; do
  easel="{shape: images, base_url: \"http://$sandbox/v1\", api_keys: [sk-up], retries: 0}"
  studio="{shape: videos, base_url: \"http://$sandbox\", api_keys: [sk-up], retries: 0}"
  case $upstream in
    sandbox) provider='{shape: sandbox}' easel=$provider studio=$provider ;;
    chat | responses) provider="{shape: $upstream, base_url: \"http://$sandbox/v1\", api_keys: [sk-up], retries: 0}" ;;
    messages | gemini) provider="{shape: $upstream, base_url: \"http://$sandbox\", api_keys: [sk-up], retries: 0}" ;;
    *) echo "unknown upstream $upstream" >&2; exit 2 ;;
  esac
  start_gateway "$upstream" "$provider" "$easel" "$studio"
  # Side by side: clients mostly wait, for streams to be paced and videos to be made.
  suites "$upstream" &
  running+=($!)
done
for pid in "${running[@]}"; do
  wait "$pid" || failed=1
done
exit "$failed"
