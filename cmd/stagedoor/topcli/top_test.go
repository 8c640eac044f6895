package topcli

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stagedoor/cmd/stagedoor/cli"
	httpflow "stagedoor/http/flow"
)

// top runs the command with arguments and returns what it prints.
func top(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := Command(&cli.App{Out: &out, Env: func(string) (string, bool) { return "", false }})
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(arguments)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

// gatewayBelow is a gateway that a proxy serves below /below. It notes the requests that carry the token.
func gatewayBelow(t *testing.T) (base string, calls *[]string) {
	t.Helper()
	calls = new([]string)
	all := snapshotOf("req_1")
	replies := map[string]any{"/flow": all.Flow, "/actors": all.Actors,
		"/providers": map[string]any{"data": all.Providers}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, below := strings.CutPrefix(r.URL.Path, "/below/admin/v1")
		if r.Header.Get("Authorization") != "Bearer right" || !below {
			w.WriteHeader(http.StatusUnauthorized)
			json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": "the token is wrong"}})
			return
		}
		*calls = append(*calls, r.Method+" "+path+"?"+r.URL.RawQuery)
		json.NewEncoder(w).Encode(replies[path])
	}))
	t.Cleanup(s.Close)
	return s.URL + "/below", calls
}

func TestTopPrintsAGatewayThatAnAddressNames(t *testing.T) {
	base, calls := gatewayBelow(t)
	printed, err := top(t, "--url", base, "--token", "right", "--limit", "7")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 under way", "req_1", "m?[2J", "paused", "all of kind request"} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is missing in\n%s", want, printed)
		}
	}
	if want := "GET /flow?limit=7&sort=" + httpflow.SortAge; (*calls)[0] != want {
		t.Errorf("the first call was %s, want %s", (*calls)[0], want)
	}
	printed, err = top(t, "--url", base, "--token", "right", "--json")
	var read snapshot
	if err = errors.Join(err, json.Unmarshal([]byte(printed), &read)); err != nil || len(read.Providers) != 2 {
		t.Errorf("%d providers, %v in\n%s", len(read.Providers), err, printed)
	}
	_, err = top(t, "--url", base, "--token", "wrong")
	if err == nil || !strings.Contains(err.Error(), "the token is wrong") {
		t.Errorf("a wrong token: %v", err)
	}
}

func TestTopRefusesWhatItCannotReach(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, c := range []struct {
		arguments []string
		usage     bool
		want      string
	}{
		{[]string{"--limit", "0", "--url", "http://127.0.0.1:1"}, true, "--limit must be between 1 and 500"},
		{[]string{"--limit", "501", "--url", "http://127.0.0.1:1"}, true, "--limit must be between 1 and 500"},
		{[]string{"--url", "gateway.example.com"}, true, "expected an address"},
		{[]string{"--url", "ftp://gateway.example.com"}, true, "expected an address"},
		{[]string{"--data", missing}, false, "there is no data directory " + missing},
		{[]string{"--data", t.TempDir()}, false, "no gateway runs on "},
	} {
		_, err := top(t, c.arguments...)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, cli.ErrUsage) != c.usage {
			t.Errorf("%q: %v", c.arguments, err)
		}
	}
}

func TestConditionNamesTheReasonThatMattersMost(t *testing.T) {
	all := []string{
		condition(&httpflow.Provider{Paused: true, Breaker: "open"}),
		condition(&httpflow.Provider{Answers: true, Paused: true, Breaker: "open"}),
		condition(&httpflow.Provider{Answers: true, Breaker: "open", ReopensMs: 2000, CoolMs: 9000}),
		condition(&httpflow.Provider{Answers: true, Breaker: "half_open", CoolMs: 9000}),
		condition(&httpflow.Provider{Answers: true, Breaker: "closed", CoolMs: 9000}),
		condition(&httpflow.Provider{Answers: true, Breaker: "closed"}),
	}
	want := []string{"restarting", "paused", "breaker open, probe in 2s", "breaker half open", "rests 9s", "serving"}
	if !slices.Equal(all, want) {
		t.Errorf("%q, want %q", all, want)
	}
}
