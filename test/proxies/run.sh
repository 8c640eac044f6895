#!/usr/bin/env bash
# Runs nginx and Caddy with the configurations of docs/proxy.md, without certificates, in front of the program, and
# checks what the page promises.
#
#   STAGEDOOR_BINARY=...   a ready program instead of building one
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/gateway.sh
source "$here/../gateway.sh"
build_program

serve_configuration <<YAML
trusted_proxies: ["127.0.0.1"]
keys:
  - {key: sd-for-tests-of-proxies, name: fixed}
  - {key: sd-for-tests-of-addresses, name: bound, allow_ips: ["127.0.0.2"]}
providers: {sandbox: {shape: sandbox}}
models: {sandbox: {targets: [{provider: sandbox, model: sandbox}]}}
YAML

# block LANGUAGE: the configuration of docs/proxy.md in that language, for this gateway.
block() {
  sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$root/docs/proxy.md" | sed "/^\`\`\`/d; s|127.0.0.1:8080|${STAGEDOOR_URL#http://}|"
}

# expect WHAT GOT WANTED
expect() {
  if [ "$2" = "$3" ]; then
    echo "ok    $proxy: $1"
  else
    echo "wrong $proxy: $1: got $2, want $3"
    failed=1
  fi
}

# request CURL-ARGUMENT...: a request through the proxy. The body is on standard input.
request() { curl -sS --max-time 60 -H 'Content-Type: application/json' --data-binary @- "$@"; }

chat() { printf '{"model": "sandbox", "stream": %s, "messages": [{"role": "user", "content": "Hello! [sandbox: %s]"}]}' "$1" "$2"; }

code() { grep -o '"code":"[^"]*"' | head -n 1 | cut -d '"' -f 4; }

check() {
  local url=$1 key='Authorization: Bearer sd-for-tests-of-proxies' bound='x-api-key: sd-for-tests-of-addresses'
  expect 'an answer' "$(chat false tokens=3 | request -H "$key" -o "$work/reply" -w '%{http_code}' "$url/v1/chat/completions")" 200

  # The provider falls silent after two tokens, so only a proxy that does not buffer passes them on.
  expect 'the first event' "$(chat true stall=2 | request -N -H "$key" -H 'X-Request-Id: stalled' --max-time 20 \
    "$url/v1/chat/completions" 2>/dev/null | head -n 1 | cut -c 1-7)" 'data: {'
  for _ in $(seq 100); do
    if grep -qE 'stalled.*status=499' "$work/gateway.log"; then break; fi
    sleep 0.1
  done
  expect 'a client that leaves' "$(grep -cE 'stalled.*status=499' "$work/gateway.log")" 1
  : >"$work/gateway.log"

  expect 'a body of 3 MiB' "$( (chat false tokens=3; head -c 3145728 /dev/zero | tr '\0' ' ') |
    request -H "$key" -o "$work/reply" -w '%{http_code}' "$url/v1/chat/completions")" 200
  expect 'a body that is too large' "$( (chat false tokens=3; head -c 34603008 /dev/zero | tr '\0' ' ') |
    request -H "$key" "$url/v1/chat/completions" 2>/dev/null | code)" request_too_large

  expect 'a WebSocket' "$(curl -sS --http1.1 --max-time 3 -o "$work/reply" -w '%{http_code}' -H "$key" \
    -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' \
    -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' "$url/v1/responses" 2>/dev/null)" 101

  expect 'the address of a client' "$(curl -sS --interface 127.0.0.2 -o "$work/reply" -w '%{http_code}' -H "$bound" \
    "$url/v1/models")" 200
  expect 'a client that lies' "$(curl -sS --interface 127.0.0.3 -H "$bound" -H 'X-Forwarded-For: 127.0.0.2' \
    "$url/v1/models" | code)" permission_denied
  expect 'a client of the proxy that lies twice' "$(curl -sS --interface 127.0.0.3 -H "$bound" \
    -H 'X-Forwarded-For: 127.0.0.2, 127.0.0.1' -H 'X-Forwarded-For: 127.0.0.2' "$url/v1/models" | code)" permission_denied
}

proxy='no proxy'
expect 'a stranger who lies' "$(curl -sS --interface 127.0.0.3 -H 'x-api-key: sd-for-tests-of-addresses' \
  -H 'X-Forwarded-For: 127.0.0.2' "$STAGEDOOR_URL/v1/models" | code)" permission_denied

# await URL: until a proxy listens there.
await() {
  for _ in $(seq 100); do
    if curl -s -o "$work/ready" "$1/healthz"; then return; fi
    sleep 0.1
  done
  echo "no proxy at $1"
  cat "$work"/*.proxy.log
  exit 1
}

proxy=nginx address=$(free_address)
mkdir "$work/nginx"
{
  printf 'daemon off; master_process off; pid %s/pid; error_log stderr; events {}\nhttp {\naccess_log off;\n' "$work/nginx"
  for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $work/nginx/$kind;"; done
  block nginx | sed "/ssl_certificate/d; s/listen 443 ssl/listen $address/"
  echo '}'
} >"$work/nginx.conf"
nginx -e stderr -c "$work/nginx.conf" >"$work/nginx.proxy.log" 2>&1 &
programs+=($!)
await "http://$address"
check "http://$address"

proxy=caddy address=$(free_address)
{
  printf '{\n  admin off\n  auto_https off\n}\n'
  block caddy | sed "s|^ai.example.com|http://$address|"
} >"$work/Caddyfile"
XDG_CONFIG_HOME=$work XDG_DATA_HOME=$work caddy run --adapter caddyfile --config "$work/Caddyfile" >"$work/caddy.proxy.log" 2>&1 &
programs+=($!)
await "http://$address"
check "http://$address"

conclude
