package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// refusingAddress returns an address that refuses connections. It is bound, so that no other process can listen on it.
func refusingAddress(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

func TestTopPrintsOnceWhereThereIsNoTerminal(t *testing.T) {
	dir := directory(t)
	launch(t, dir, "serve", "--listen", "127.0.0.1:0", "--data", "data")
	data := filepath.Join(dir, "data")
	for line, want := range map[string]string{"top": "nothing is under way", "top --json": `"in_flight": 0`, "top --once": "engine"} {
		command(t, nil, strings.Fields(line+" --data "+data)...).check(t, exitOK, want, "")
	}
	codes := map[string]int{"expected an address such as": exitUsage, "between 1 and 500": exitUsage,
		"refused":            exitFailure,
		"no gateway runs on": exitFailure, "there is no data directory": exitStorage}
	for line, want := range map[string]string{
		"top --url localhost":                    "expected an address such as",
		"top --limit 0 --data " + data:           "between 1 and 500",
		"top --url http://" + refusingAddress(t): "refused",
		"top --data " + directory(t):             "no gateway runs on",
		"top --data " + dir + "/nowhere":         "there is no data directory",
	} {
		command(t, nil, strings.Fields(line)...).check(t, codes[want], "", want)
	}
}
