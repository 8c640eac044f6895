package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stagedoor/cmd/stagedoor/cli"
)

// videoGateway plays the public API of video jobs: every job is done after two
// changes, or fails if its prompt says so.
func videoGateway(t *testing.T) (url string) {
	t.Helper()
	job := func(id, status string, progress int, fault string) string {
		return fmt.Sprintf(`{"id":%q,"object":"video","model":"video-2","status":%q,"progress":%d,"created_at":10,"completed_at":70,"expires_at":null,`+
			`"prompt":"a \u001b[2Jboat","size":"720x1280","seconds":"4","remixed_from_video_id":null,"error":%s}`, id,
			status, progress, fault)
	}
	const fault = `{"code":"moderation_blocked","message":"no\u001b[1m"}`
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/videos", func(w http.ResponseWriter, r *http.Request) {
		var in map[string]string
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("Authorization") != "Bearer sd-1" {
			t.Errorf("%v, headers %v", err, r.Header)
		}
		fmt.Fprint(w, job("video_"+in["prompt"], "queued", 0, "null"))
	})
	mux.HandleFunc("POST /v1/videos/{id}/remix",
		func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, job("video_remix", "queued", 0, "null")) })
	mux.HandleFunc("GET /v1/videos", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"object":"list","data":[%s,%s],"first_id":"video_b","last_id":"video_a","has_more":true}`,
			job("video_b", "completed", 100, "null"), job("video_a", "queued", 0, "null"))
	})
	mux.HandleFunc("GET /v1/videos/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		w.Header().Set("Content-Type", "text/event-stream")
		end := job(id, "completed", 100, "null")
		if strings.Contains(id, "bad") {
			end = job(id, "failed", 50, fault)
		}
		fmt.Fprintf(w, "event: snapshot\nid: 1\ndata: %s\n\nevent: progress\nid: 2\ndata: %s\n\nevent: terminal\nid: 3\ndata: %s\n\n", job(id, "queued", 0, "null"), job(id, "in_progress", 50, "null"), end)
	})
	mux.HandleFunc("GET /v1/videos/{id}/content",
		func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Query().Get("variant"), "-bytes") })
	mux.HandleFunc("GET /v1/receipts/{id}",
		func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"object":"receipt","charged":400000}`) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func TestVideosCommands(t *testing.T) {
	url := videoGateway(t)
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("taken.mp4", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		code int
		out  []string // parts of standard output, in order
		err  string
	}{
		{[]string{"create", "a"}, exitOK, []string{"video_a\n"}, ""},
		{[]string{"create", "a", "--watch"}, exitOK,
			[]string{"video_a  queued", "0%", "in_progress   50%", "completed    100%  1m0s", "cost $0.40"}, ""},
		{[]string{"create", "a", "--json"}, exitOK,
			[]string{`{"id":"video_a","object":"video"`, `"progress":0`, `"expires_at":null`}, ""},
		{[]string{"create", "bad", "-w"}, exitFailure, []string{"failed"},
			"video_bad failed: no?[1m (moderation_blocked)"},
		{[]string{"create", "a", "-o", "new.mp4"}, exitOK, []string{"completed", "new.mp4  6 bytes"}, ""},
		{[]string{"create", "a", "-o", "taken.mp4"}, exitFailure, nil, "taken.mp4: there is such a file already"},
		{[]string{"create", "a", "-o", "no/where.mp4"}, exitFailure, nil, "no such file or directory"},
		{[]string{"remix", "video_a", "at night", "--json", "-w"}, exitOK,
			[]string{`"status":"queued"`, `"status":"in_progress"`, `"status":"completed"`, `"cost":400000`}, ""},
		{[]string{"list"}, exitOK, []string{"ID", "PROMPT", "video_b", "completed", "100%", "a ?[2Jboat", "video_a",
			"There is more: --after video_a"}, ""},
		{[]string{"list", "--json"}, exitOK, []string{`"object": "list"`, `"has_more": true`}, ""},
		{[]string{"list", "--limit", "0"}, exitUsage, nil, "use 1 to 100"},
		{[]string{"watch"}, exitOK, []string{"video_a  queued", "completed"}, ""},
		{[]string{"watch", "video_1", "video_bad", "video_1"}, exitFailure, []string{"completed"}, "video_bad failed"},
		{[]string{"watch", "video_1", "--json"}, exitOK, []string{`"progress":50`, `"video.cost"`}, ""},
		{[]string{"download", "video_1"}, exitOK, []string{"video_1.mp4  11 bytes"}, ""},
		{[]string{"download", "video_1", "--variant", "thumbnail", "--wait", "--json"}, exitOK,
			[]string{`"completed"`, `{"object":"video.file","id":"video_1","path":"video_1.webp","bytes":15}`}, ""},
		{[]string{"download", "video_1", "-o", "taken.mp4", "--force"}, exitOK, []string{"taken.mp4"}, ""},
		{[]string{"download", "../video"}, exitOK, []string{"___video.mp4"}, ""},
		{[]string{"download", "video_1", "--variant", "smell"}, exitUsage, nil, "use video, thumbnail or spritesheet"},
		{[]string{"create"}, exitUsage, nil, "takes a prompt"},
		{[]string{"remix", "video_1"}, exitUsage, nil, "takes the id of a completed job and a prompt"},
		{[]string{"watch", "video_1", "--url", "nowhere"}, exitUsage, nil, "no address of a gateway"},
		{[]string{"watch", "video_1", "--key", ""}, exitUsage, nil, "no key"},
	} {
		var out, errOut bytes.Buffer
		env := map[string]string{"STAGEDOOR_KEY": "sd-1", "STAGEDOOR_URL": url}
		err := run(t.Context(), append([]string{"videos"}, test.args...),
			func(name string) (string, bool) { v, ok := env[name]; return v, ok }, &out, &errOut)
		name := strings.Join(test.args, " ")
		if exitCode(err) != test.code || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: %v, code %d, want %d and %q", name, err, exitCode(err), test.code, test.err)
		}
		rest := out.String()
		for _, part := range test.out {
			_, after, ok := strings.Cut(rest, part)
			if !ok {
				t.Errorf("%s prints no %q where it should:\n%s", name, part, out.String())
				break
			}
			rest = after
		}
		if strings.Contains(out.String()+errOut.String(), "\x1b") {
			t.Errorf("%s moves the cursor: %q", name, out.String())
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "new.mp4")); err != nil || string(got) != "-bytes" {
		t.Errorf("%q %v", got, err)
	}
}

func TestVideosNeedAKey(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{"videos", "list"}, func(string) (string, bool) { return "", false }, &out, &out)
	if !errors.Is(err, cli.ErrUsage) || !strings.Contains(err.Error(), "STAGEDOOR_KEY") {
		t.Error(err)
	}
}
