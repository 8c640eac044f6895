package main

import (
	"testing"
)

func TestHealthcheckAsksTheGateway(t *testing.T) {
	p := launch(t, t.TempDir(), "serve", "--listen", "127.0.0.1:0", "--data", "memory")
	address := p.URL[len("http://"):]
	command(t, nil, "healthcheck", "--listen", address).check(t, exitOK, `{"status":"ok"}`, "")
	command(t, nil, "healthcheck", "--ready", "--listen", address).check(t, exitOK, `{"status":"ready"}`, "")
	command(t, map[string]string{"STAGEDOOR_LISTEN": address}, "healthcheck").check(t, exitOK, "ok", "")
	p.stop()
	command(t, nil, "healthcheck", "--listen", address).check(t, exitFailure, "", "does not answer")
}
