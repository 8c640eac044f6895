# shellcheck shell=bash
# What the suites of real clients have in common: a folder of their own, the program,
# programs that run until the suite ends, clients, counts. A suite's run.sh sources
# this after `set -euo pipefail`; nothing is built or started by that alone.
#
#   root     the module
#   work     a folder that goes when the suite ends
#   binary   the program: $STAGEDOOR_BINARY, or what build_program built
#   failed   1 once something has failed

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
binary=${STAGEDOOR_BINARY:-$work/stagedoor}
failed=0
programs=()

# finish ends what the suite has started.
finish() {
  local pid
  for pid in ${programs[@]+"${programs[@]}"}; do kill "$pid" 2>/dev/null || true; done
  for pid in ${programs[@]+"${programs[@]}"}; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT

# build_program builds the program, unless a ready one is named.
build_program() {
  [ -n "${STAGEDOOR_BINARY:-}" ] || (cd "$root" && go build -o "$binary" ./cmd/stagedoor)
}

# install_clients DIR: the npm packages of its lock file, unless they are there. Install
# scripts are not needed by any client here.
install_clients() {
  [ "$1/node_modules/.package-lock.json" -nt "$1/package-lock.json" ] ||
    (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
}

# need_chromium names the browser in STAGEDOOR_CHROMIUM. The headless shell draws the same pages for half of the processor
# time of the whole browser.
need_chromium() {
  if ! STAGEDOOR_CHROMIUM=${STAGEDOOR_CHROMIUM:-$(command -v chromium-headless-shell || command -v chromium)}; then
    echo 'chromium is not installed' >&2
    exit 1
  fi
  export STAGEDOOR_CHROMIUM
}

# free_address prints one on the loopback interface without a listener. It lies below
# the ports that systems give to outgoing connections and that test/harness gives to
# gateways, so that none of another suite takes it before the program listens.
free_address() {
  local port
  while true; do
    port=$((10000 + (RANDOM * 32768 + RANDOM) % 4000))
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "127.0.0.1:$port"
      return
    fi
  done
}

# start LOG ARGUMENT...: the program, until the suite ends.
start() {
  local log=$1
  shift
  "$binary" "$@" >"$log" 2>&1 &
  programs+=($!)
}

# await_ready URL LOG: until a gateway is ready there.
await_ready() {
  for _ in $(seq 1200); do
    if curl -fsS -o "$work/ready" "$1/readyz" 2>/dev/null; then return; fi
    sleep 0.1
  done
  echo "not ready: $1" >&2
  tail -n 20 "$2" >&2
  exit 1
}

# serve_configuration: a gateway at STAGEDOOR_URL with the configuration on standard
# input, its data in $work/data.
serve_configuration() {
  STAGEDOOR_URL="http://$(free_address)"
  export STAGEDOOR_URL
  cat >"$work/stagedoor.yaml"
  start "$work/gateway.log" serve --config "$work/stagedoor.yaml" --listen "${STAGEDOOR_URL#http://}" --data "$work/data"
  await_ready "$STAGEDOOR_URL" "$work/gateway.log"
}

# create_user NAME [FLAG...]: one with the password STAGEDOOR_PASSWORD.
create_user() {
  printf '%s\n' "$STAGEDOOR_PASSWORD" | "$binary" users create "$@" --password-stdin --data "$work/data"
}

# counted GO TAP LOG prints how many tests ended so, by go test -v or by node's reporter tap.
counted() { awk -v go="^ *--- $1" -v tap="^# $2 " '$0 ~ go { n++ } $0 ~ tap { n += $3 } END { print n + 0 }' "$3"; }

# suite NAME COMMAND...: runs one suite and prints its counts, its output if it failed.
suite() {
  local name=$1 log="$work/suite.${1//[^A-Za-z0-9]/-}.log" status=0
  shift
  "$@" >"$log" 2>&1 || status=$?
  printf '%-24s passed %3d  failed %3d\n' "$name" "$(counted PASS pass "$log")" "$(counted FAIL fail "$log")"
  if [ "$status" -ne 0 ]; then
    failed=1
    grep -vE '^ *(--- PASS|=== |ok [0-9]+ |# Subtest|duration_ms:|type:|---$|\.\.\.$|[0-9]+\.\.[0-9]+$)' "$log" | tail -n "${STAGEDOOR_SUITE_LINES:-200}"
  fi
}

# keep_secret PATTERN: a failure if the gateway's log has it.
keep_secret() {
  if grep -qE "$1" "$work/gateway.log"; then
    echo 'a secret is in the log of the gateway'
    failed=1
  fi
}

# conclude ends the suite, with the gateway's log if it has failed.
conclude() {
  if [ "$failed" -ne 0 ]; then tail -n 30 "$work/gateway.log"; fi
  exit "$failed"
}
