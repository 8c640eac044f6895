package accesslog_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/http/accesslog"
)

// serve runs handler for one request and returns the line.
func serve(level slog.Level, r *http.Request, handler http.HandlerFunc) gjson.Result {
	var out bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level}))
	a := accesslog.Begin(logger, httptest.NewRecorder(), r)
	handler(a, r)
	a.End("req_1")
	return gjson.ParseBytes(out.Bytes())
}

// outer wraps another writer.
type outer struct{ http.ResponseWriter }

func (o outer) Unwrap() http.ResponseWriter { return o.ResponseWriter }

func TestTheLineReportsTheOutcomeOfTheRequest(t *testing.T) {
	get := httptest.NewRequest("GET", "/v1/models?key=sd-secret", nil)
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		status  int64
	}{
		{"as written", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); w.WriteHeader(200) }, 404},
		{"without a status", func(w http.ResponseWriter, _ *http.Request) { w.Write(nil) }, 200},
		{"after an interim one", func(w http.ResponseWriter,
			_ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(201)
		}, 201},
		{"as its handler says", func(w http.ResponseWriter,
			_ *http.Request) {
			w.WriteHeader(200)
			accesslog.Outcome(outer{w}, 499)
		}, 499},
		{"never", func(http.ResponseWriter, *http.Request) {}, 0},
	} {
		line := serve(slog.LevelInfo, get, c.handler)
		if line.Get("status").Int() != c.status || line.Get("request_id").String() != "req_1" ||
			line.Get("method").String() != "GET" ||
			line.Get("path").String() != "/v1/models" {
			t.Errorf("%s: %s", c.name, line.Raw)
		}
		if strings.Contains(line.Raw, "sd-secret") {
			t.Errorf("%s: the query is logged: %s", c.name, line.Raw)
		}
	}
}

func TestHandlersAddAttributes(t *testing.T) {
	get := httptest.NewRequest("GET", "/", nil)
	line := serve(slog.LevelInfo, get, func(w http.ResponseWriter, _ *http.Request) {
		if !accesslog.Wanted(w) {
			t.Error("not wanted")
		}
		accesslog.Note(outer{w}, slog.String("model", "a\nb\x1b"))
	})
	if line.Get("model").String() != "a\nb\x1b" || strings.Contains(line.Raw, "\n\n") {
		t.Errorf("%s", line.Raw)
	}
	// Without a Reply, every function does nothing.
	w := httptest.NewRecorder()
	accesslog.Note(w, slog.Int("x", 1))
	accesslog.Outcome(w, 500)
	accesslog.Quiet(w)
	if accesslog.Wanted(w) {
		t.Error("wanted without a line")
	}
}

func TestQuietLinesNeedDebug(t *testing.T) {
	get := httptest.NewRequest("GET", "/healthz", nil)
	quiet := func(w http.ResponseWriter, _ *http.Request) { accesslog.Quiet(w); w.WriteHeader(200) }
	if line := serve(slog.LevelInfo, get, quiet); line.Exists() {
		t.Errorf("%s", line.Raw)
	}
	if line := serve(slog.LevelDebug, get, quiet); line.Get("status").Int() != 200 {
		t.Errorf("%s", line.Raw)
	}
}

func TestLinesStayShort(t *testing.T) {
	r := httptest.NewRequest("GET", "/"+strings.Repeat("x", 100_000), nil)
	r.Method = strings.Repeat("Y", 100_000)
	if line := serve(slog.LevelInfo, r, func(http.ResponseWriter, *http.Request) {}); len(line.Raw) > 1000 {
		t.Errorf("%d bytes", len(line.Raw))
	}
}
