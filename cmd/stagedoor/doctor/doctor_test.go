package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/providers/catalog"
	"stagedoor/state/journal"
)

// vendor is a provider that knows the key good, sent as its shape sends it.
func vendor(t *testing.T, header, good string, clock time.Duration) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(clock).UTC().Format(http.TimeFormat))
		switch key := r.Header.Get(header); {
		case !strings.HasSuffix(r.URL.Path, "/models") || r.Method != http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
		case key == "busy":
			w.WriteHeader(http.StatusTooManyRequests)
		case key != good:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, "wrong key %s", key)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestProvidersAreAskedWithEachOfTheirKeys(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := "http://" + dead.Addr().String()
	_ = dead.Close()
	bearer := vendor(t, "Authorization", "Bearer sesame", 0)
	for name, c := range map[string]struct {
		spec catalog.Provider
		want []Status
		says string
	}{
		"good":             {catalog.Provider{Shape: "chat", BaseURL: bearer + "/v1", APIKeys: []string{"sesame"}}, []Status{OK}, "the key is good"},
		"one of two":       {catalog.Provider{Shape: "responses", BaseURL: bearer, APIKeys: []string{"sesame", "wrong"}}, []Status{OK, Failed}, "refuses the key"},
		"without":          {catalog.Provider{Shape: "chat", BaseURL: bearer}, []Status{Warning}, "wants a key"},
		"messages":         {catalog.Provider{Shape: "messages", BaseURL: vendor(t, "X-Api-Key", "sesame", 0), APIKeys: []string{"sesame"}}, []Status{OK}, "the key is good"},
		"gemini":           {catalog.Provider{Shape: "gemini", BaseURL: vendor(t, "X-Goog-Api-Key", "busy", 0), APIKeys: []string{"busy"}}, []Status{Warning}, "at its limit"},
		"no list":          {catalog.Provider{Shape: "imagegen", BaseURL: bearer, APIKeys: []string{"sesame"}}, []Status{OK}, "not known"},
		"not listening":    {catalog.Provider{Shape: "chat", BaseURL: refusing, APIKeys: []string{"sesame"}}, []Status{Failed}, "refused"},
		"none to be asked": {catalog.Provider{Shape: catalog.Sandbox}, []Status{OK}, "simulator"},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Name = "p"
			checks, _ := providers(t.Context(), []catalog.Provider{c.spec})
			var got []Status
			var text strings.Builder
			for _, check := range checks {
				got = append(got, check.Status)
				fmt.Fprintln(&text, check)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) || !strings.Contains(text.String(), c.says) {
				t.Errorf("got %v, want %v and %q in\n%s", got, c.want, c.says, &text)
			}
			for _, secret := range []string{"sesame", "wrong"} {
				if strings.Contains(text.String(), secret) {
					t.Errorf("a key is in\n%s", &text)
				}
			}
		})
	}
}

func TestClocksAreCompared(t *testing.T) {
	for off, want := range map[time.Duration]Status{0: OK, 30 * time.Second: Warning, -30 * time.Second: Warning, time.Hour: Failed, -time.Hour: Failed} {
		spec := catalog.Provider{Name: "p", Shape: "chat", BaseURL: vendor(t, "Authorization", "", off)}
		_, dates := providers(t.Context(), []catalog.Provider{spec})
		if got := clock(dates); got.Status != want {
			t.Errorf("a clock that is %s off: %+v", off, got)
		}
	}
	if got := clock(nil); got.Status != Skipped {
		t.Errorf("without a clock: %+v", got)
	}
	now := time.Now()
	if got := clock([]date{{now.Add(time.Hour), now}, {now, now}}); got.Status != OK {
		t.Errorf("one of two agrees: %+v", got)
	}
}

func TestDataDirectories(t *testing.T) {
	worst := func(data string) Status { r := Report{Checks: directory(data, false)}; return r.judged().Status }
	dir := t.TempDir()
	private := filepath.Join(dir, "private")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "broken")
	if err := os.Mkdir(broken, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(broken, journal.FileName)
	if err := os.WriteFile(file, bytes.Repeat([]byte("x"), 1<<15), 0o600); err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]Status{private: OK, open: Warning, "memory": Warning, filepath.Join(dir, "new"): OK,
		filepath.Join(dir, "none", "new"): OK, filepath.Join(file, "new"): Failed, file: Failed, broken: Failed} {
		if got := worst(data); got != want {
			t.Errorf("%s: %s, want %s: %+v", data, got, want, directory(data, false))
		}
	}
}

func TestLimitsOfTheSystem(t *testing.T) {
	const mib = 1 << 20
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	somaxconn := filepath.Join(t.TempDir(), "somaxconn")
	if err := os.WriteFile(somaxconn, []byte("128\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		check Check
		want  Status
	}{
		"few files":       {judgeFiles(256, 10), Failed},
		"not enough":      {judgeFiles(4096, 20000), Warning},
		"enough":          {judgeFiles(65536, 20000), OK},
		"little memory":   {memory(128*mib, 20*mib), Warning},
		"large bodies":    {memory(600*mib, 512*mib), Warning},
		"memory":          {memory(2048*mib, 512*mib), OK},
		"short backlog":   {backlog(somaxconn), Warning},
		"unknown backlog": {backlog(somaxconn + "x"), Skipped},
		"expired":         {judgeCertificate(now.Add(-9*day), now.Add(-day), now), Failed},
		"to be renewed":   {judgeCertificate(now.Add(-9*day), now.Add(day), now), Warning},
		"not yet":         {judgeCertificate(now.Add(day), now.Add(90*day), now), Failed},
		"valid":           {judgeCertificate(now.Add(-day), now.Add(90*day), now), OK},
		"no certificate":  {certificate("nowhere", "nowhere"), Failed},
	} {
		if c.check.Status != c.want {
			t.Errorf("%s: %+v, want %s", name, c.check, c.want)
		}
	}
}

func TestAddressesInUseAreTold(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := []string{l.Addr().String()}
	if got := addresses(t.Context(), taken, false); got[0].Status != Warning {
		t.Errorf("in use: %+v", got)
	}
	if got := addresses(t.Context(), taken, true); got[0].Status != OK {
		t.Errorf("in use by the gateway: %+v", got)
	}
	if got := addresses(t.Context(), []string{"192.0.2.1:80"}, false); got[0].Status != Failed {
		t.Errorf("not of this machine: %+v", got)
	}
}

// The report of a whole configuration is a table or JSON, and has no secret.
func TestTheReportHasNoSecret(t *testing.T) {
	c := config.Default()
	c.Listen = config.Strings{"127.0.0.1:0"}
	c.Providers = config.Map[config.Provider]{
		{
			Name: "p",
			Value: config.Provider{
				Shape:   "chat",
				BaseURL: vendor(t, "Authorization", "", 0),
				APIKeys: []config.Secret{"sesame"},
			},
		},
	}
	report := Examine(context.Background(), Options{Config: c})
	var table bytes.Buffer
	if err := report.Print(&table); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if report.Status != Failed || strings.Contains(table.String()+string(text), "sesame") ||
		!strings.Contains(table.String(), "refuses the key") {
		t.Errorf("%s\n%s", &table, text)
	}
	offline := Examine(context.Background(), Options{Config: c, Offline: true})
	if offline.Status == Failed {
		t.Errorf("offline: %+v", offline)
	}
}

// TestATestOfAProviderAsksWithABoundedNumberOfKeys because the address and the keys may come from a page.
func TestATestOfAProviderAsksWithABoundedNumberOfKeys(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer s.Close()
	spec := catalog.Provider{Name: "p", Shape: "chat", BaseURL: s.URL, APIKeys: make([]string, mostKeys+24)}
	for i := range spec.APIKeys {
		spec.APIKeys[i] = fmt.Sprint("key-", i)
	}
	checks := Provider(t.Context(), &spec)
	last := checks[len(checks)-1]
	if len(checks) != mostKeys+1 || asked.Load() != mostKeys || last.Status != Skipped ||
		!strings.HasPrefix(last.Detail, "24 more keys") || !strings.HasSuffix(checks[9].Name, ", key 10") {
		t.Errorf("%d requests, %d checks: %v", asked.Load(), len(checks), checks)
	}
}
