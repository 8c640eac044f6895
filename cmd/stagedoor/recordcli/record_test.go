package recordcli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/recordcli"
)

// run runs a command with arguments.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	a := &cli.App{Env: func(string) (string, bool) { return "", false }, Out: &out, ErrOut: &out}
	for _, c := range recordcli.Commands(a) {
		if c.Name() == args[0] {
			c.SetArgs(args[1:])
			c.SilenceErrors, c.SilenceUsage = true, true
			err := c.ExecuteContext(t.Context())
			return out.String(), err
		}
	}
	t.Fatalf("there is no command %s", args[0])
	return "", nil
}

// recorded is a request that passed through, as version 1 of the format has it.
const recorded = `{"stagedoor_recording":1,"key":"k","began":"2026-11-01T00:00:00Z"}
{"id":"r","began":"2026-11-01T00:00:00Z","ms":9,` +
	`"client":{"shape":"chat","mode":0,"path":"/v1/chat/completions","headers":{},` +
	`"body":"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"},` +
	`"attempts":[{"target":{"Provider":"p","Shape":"chat","Model":"up","MaxOutputTokens":9},"untouched":true,` +
	`"calls":[{"ms":1,"path":"/chat/completions","body":` +
	`"{\"model\":\"up\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}","status":200,"reply_ms":5,` +
	`"reply_headers":{"Content-Type":["application/json"]},` +
	`"reply_body":"{\"id\":\"x\",\"model\":\"up\",\"choices\":[]}"}]}],` +
	`"reply":{"body":"{\"id\":\"x\",\"model\":\"m\",\"choices\":[]}"}}
{"end":"time","exchanges":1,"dropped":2,"unfinished":1}
`

// TestReplayFailsIfAnythingDiffers, and says what. The recording stands for files of earlier versions.
func TestReplayFailsIfAnythingDiffers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fault.jsonl")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(recorded)
	out, err := run(t, "replay", file)
	if err != nil || !strings.HasPrefix(out, "1 the same, 0 different, 0 without an upstream\n") ||
		!strings.Contains(out, "lacks 2 requests that did not fit and 1") {
		t.Errorf("got %v %s", err, out)
	}
	write(strings.Replace(recorded, `"body":"{\"model\":\"up\"`, `"body":"{\"model\":\"before\"`, 1))
	out, err = run(t, "replay", file)
	const body = "line 2, request r: the body of call 1 of the upstream differs at byte 10"
	if err == nil || !strings.Contains(out, body) {
		t.Errorf("got %v %s", err, out)
	}
	write(recorded[:strings.Index(recorded, `{"end"`)])
	if out, err = run(t, "replay", file); err != nil || !strings.Contains(out, "was cut off") {
		t.Errorf("got %v %s", err, out)
	}
	write("{}")
	if _, err = run(t, "replay", file); err == nil {
		t.Error("a file that is no recording")
	}
}

// TestRecordNeedsAGateway, a key and a new file.
func TestRecordNeedsAGateway(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "fault.jsonl")
	if _, err := run(t, "record", "--data", dir); err == nil || !strings.Contains(err.Error(), "--key") {
		t.Errorf("got %v", err)
	}
	if _, err := run(t, "record", "--data", dir, "--key", "k", "--to", file); err == nil ||
		!strings.Contains(err.Error(), "no gateway runs") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file was made")
	}
}
