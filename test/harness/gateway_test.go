package harness

import (
	"encoding/json"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
)

func TestConfigIsWrittenWithEveryFieldTheGatewayReads(t *testing.T) {
	text, err := CatchAll(
		Provider{
			Shape:    "chat",
			BaseURL:  "http://127.0.0.1:9/v1",
			APIKeys:  []string{"k"},
			Timeouts: &Timeouts{Idle: "60s"},
		},
	).encode()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"listen", "data", "keys", "providers", "models"} {
		if _, ok := got[want]; !ok {
			t.Errorf("configuration lacks %q:\n%s", want, text)
		}
	}
	// Silence about retries would mean the default, and with it calls no script expects.
	if !strings.Contains(string(text), `"retries": 0`) {
		t.Errorf("retries are not written:\n%s", text)
	}
}

func TestProgramThatEndsBeforeItIsReadyIsReported(t *testing.T) {
	binary := Script(t, "broken", "#!/bin/sh\necho no such provider\nexit 78\n")
	_, err := Launch(binary, Config{})
	if err == nil || !strings.Contains(err.Error(), "no such provider") || !strings.Contains(err.Error(), "78") {
		t.Errorf("got %v, want the exit status and what the program printed", err)
	}
}

func TestKillIsNoStop(t *testing.T) {
	for name, script := range map[string]string{"running": "#!/bin/sh\nexec sleep 60\n", "ended": "#!/bin/sh\nexit 3\n"} {
		g, err := Spawn(Script(t, name, script), Config{})
		if err != nil {
			t.Fatal(err)
		}
		if name == "ended" {
			<-g.exit
		}
		if err := g.Kill(); (err == nil) != (name == "running") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestFreeAddrIsForThisProgramAlone(t *testing.T) {
	addr, err := FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	// Another test program reserves an address in this way.
	if port, err := net.ListenPacket("udp", addr); !errors.Is(err, syscall.EADDRINUSE) {
		_ = port.Close()
		t.Errorf("the address can be reserved again: %v", err)
	}
}
