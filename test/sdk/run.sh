#!/usr/bin/env bash
# Runs the vendors' own clients (go/, js/) against a gateway and prints counts.
#
#   STAGEDOOR_URL=http://127.0.0.1:8080 STAGEDOOR_KEY=sd-... ./run.sh
#       against a running gateway, which must serve the models `any`, `limited-*`, `vectors`,
#       `gen-image-1`, `legacy-image-*` and `video-2` from the sandbox and no model
#       `no-such-model`
#   ./run.sh [UPSTREAM ...]
#       builds and starts gateways whose upstream is the sandbox in each shape over
#       HTTP; upstreams: sandbox (embedded) chat messages responses gemini; if none is
#       named sandbox, chat and messages, and all with STAGEDOOR_LONG=1; STAGEDOOR_BINARY names a ready program instead. Pictures and
#       videos are embedded with sandbox, else of the images and videos shapes, and embeddings
#       of the gemini shape with gemini and else of their own.
#   STAGEDOOR_SDK=js ./run.sh [UPSTREAM ...]
#       only the clients of js/; STAGEDOOR_SDK=go only those of go/
#   STAGEDOOR_SDK_RUN=Video ./run.sh [UPSTREAM ...]
#       only the tests of that name (go test -run), and only of go/
#
# Exit status: 0 if every test passed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/gateway.sh
source "$here/../gateway.sh"
clients=${STAGEDOOR_SDK:-go js}
[ -z "${STAGEDOOR_SDK_RUN:-}" ] || clients=go
limited=(limited-{go,js}-{chat,responses,messages,generate}-{whole,streamed})

go_suite() { (cd "$here/go" && "$work/sdk.test" -test.v -test.run "${STAGEDOOR_SDK_RUN:-.}"); }
js_suite() { (cd "$here/js" && node --test --test-timeout=900000 --test-reporter=tap ./all.js); }

# suites LABEL: those of $clients, against STAGEDOOR_URL. Its status is 0 if every test passed.
suites() {
  local client
  for client in $clients; do suite "$1: $client" "${client}_suite"; done
  return "$failed"
}

# start_gateway LABEL PROVIDER EASEL STUDIO VECTORS: one that serves `any`, pictures, videos
# and embeddings from providers, given as YAML.
# A provider that answers 429 is left alone for a while, and all tests wait, so each
# test that provokes it has a provider of its own.
start_gateway() {
  local address name
  address=$(free_address)
  cat >"$work/$1.yaml" <<YAML
listen: ["$address"]
data: memory
keys:
  - {key: "sd-sdk", name: sdk}
providers:
  upstream: $2
  easel: $3
  studio: $4
  embedder: $5
$(for name in "${limited[@]}"; do echo "  $name: $2"; done)
models:
  any: {targets: [{provider: upstream, model: "*"}]}
  vectors: {targets: [{provider: embedder, model: "*"}]}
  gen-image-*: {targets: [{provider: easel, model: "*"}]}
  video-*: {targets: [{provider: studio, model: "*"}]}
  legacy-image-*: {targets: [{provider: easel, model: "*"}]}
$(for name in "${limited[@]}"; do echo "  $name: {targets: [{provider: $name, model: \"*\"}]}"; done)
YAML
  start "$work/$1.log" serve --config "$work/$1.yaml"
  export STAGEDOOR_URL="http://$address" STAGEDOOR_KEY=sd-sdk
  await_ready "$STAGEDOOR_URL" "$work/$1.log"
}

[[ $clients != *js* ]] || install_clients "$here/js"
# The vendors' packages are large. Without optimization they compile in two thirds of the time,
# and in two thirds of that if the compiler collects garbage rarely.
quick=(-gcflags=github.com/{openai,anthropics}/...='-N -l' -gcflags=google.golang.org/genai/...='-N -l')
[[ $clients != *go* ]] || (cd "$here/go" && GOGC=400 GOMEMLIMIT=2GiB go test -vet=off "${quick[@]}" -c -o "$work/sdk.test" .)

if [ -n "${STAGEDOOR_URL:-}" ]; then
  : "${STAGEDOOR_KEY:?set STAGEDOOR_KEY too}"
  export STAGEDOOR_URL STAGEDOOR_KEY
  suites given
  exit
fi

build_program
sandbox=$(free_address)
start "$work/upstream.log" sandbox --listen "$sandbox"
for _ in $(seq 100); do
  if (exec 3<>"/dev/tcp/${sandbox/://}") 2>/dev/null; then break; fi
  sleep 0.1
done

[ $# -gt 0 ] || set -- sandbox chat messages ${STAGEDOOR_LONG:+responses gemini}
running=()
for upstream in "$@"; do
  easel="{shape: images, base_url: \"http://$sandbox/v1\", api_keys: [sk-up], retries: 0}"
  studio="{shape: videos, base_url: \"http://$sandbox\", api_keys: [sk-up], retries: 0}"
  vectors="{shape: embeddings, base_url: \"http://$sandbox/v1\", api_keys: [sk-up]}"
  case $upstream in
    sandbox) provider='{shape: sandbox}' easel=$provider studio=$provider vectors=$provider ;;
    chat | responses) provider="{shape: $upstream, base_url: \"http://$sandbox/v1\", api_keys: [sk-up], retries: 0}" ;;
    messages | gemini) provider="{shape: $upstream, base_url: \"http://$sandbox\", api_keys: [sk-up], retries: 0}" ;;
    *) echo "unknown upstream $upstream" >&2; exit 2 ;;
  esac
  [ "$upstream" != gemini ] || vectors=$provider
  start_gateway "$upstream" "$provider" "$easel" "$studio" "$vectors"
  # Side by side: clients mostly wait, for streams to be paced and videos to be made.
  suites "$upstream" &
  running+=($!)
done
for pid in "${running[@]}"; do
  wait "$pid" || failed=1
done
exit "$failed"
