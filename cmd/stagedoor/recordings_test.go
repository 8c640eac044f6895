package main

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mediaRequests has requests for media and embeddings by their paths, with replies of a provider that repeat its
// credentials.
var mediaRequests = map[string]struct{ request, reply string }{
	"/v1/embeddings": {`{"model":"m","input":"prompt of a vector"}`, `{"object":"list","model":"%s","data":[` +
		`{"object":"embedding","index":0,"embedding":[0.25]}],"usage":{"prompt_tokens":1,"total_tokens":1}}`},
	"/v1/images/generations": {`{"model":"m","prompt":"prompt of a picture"}`,
		`{"created":1,"note":"%s","data":[{"b64_json":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk` +
			`YPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="}]}`},
	"/v1/videos/video_up": {"", `{"id":"video_up","object":"video","status":"completed","model":"%s","progress":100,` +
		`"created_at":1,"seconds":"4","size":"720x1280"}`},
	"/v1/videos": {`{"model":"m","prompt":"prompt of a video"}`, `{"id":"video_up","object":"video",` +
		`"status":"queued","model":"%s","progress":0,"created_at":1,"seconds":"4","size":"720x1280"}`},
}

// TestWhatARecordedKeySendsIsOnThePageOfItsRequest: only while an administrator has the key recorded, without
// credentials, after a restart as well, for the owner and for administrators, and in no backup. A request goes on where
// nothing can be kept. Retention and the end of the key remove what is kept.
func TestWhatARecordedKeySendsIsOnThePageOfItsRequest(t *testing.T) {
	t.Parallel()
	const vendorKey, teamKey, memberKey = "sk-vendor-secret-1234567890", "team-secret-13579", "mcp-secret-0987654321"
	const password = "a long password"
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if reply := mediaRequests[r.URL.Path].reply; reply != "" {
			fmt.Fprintf(w, reply, r.Header.Get("Authorization")+r.Header.Get("X-Team"))
			return
		}
		fmt.Fprintf(w, `{"id":"x","object":"chat.completion","model":"up","choices":[{"index":0,`+
			`"finish_reason":"stop","message":{"role":"assistant","content":"the answer to %s"}}]}`,
			r.Header.Get("Authorization")+r.Header.Get("X-Team"))
	}))
	defer upstream.Close()
	dir := directory(t)
	data, kept := filepath.Join(dir, "data"), filepath.Join(dir, "data", recordingsDir)
	text := fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\nadmin: {user: root, password: %s}\n"+
		"providers: {vendor: {shape: chat, also: [embeddings, images, videos], base_url: %s/v1, api_keys: [%s],\n"+
		"    headers: {X-Team: %s}}}\n"+
		"models: {m: {targets: [{provider: vendor, model: up}]}}\n", data, password, upstream.URL, vendorKey,
		teamKey)
	file := write(t, filepath.Join(dir, "f.yaml"), text)
	p := launch(t, dir, "serve", "--config", file)
	do := func(out string, args ...string) string {
		t.Helper()
		r := command(t, nil, append(args, "--data", data)...)
		r.check(t, exitOK, out, "")
		return strings.TrimSpace(r.out)
	}
	passwords := map[string]string{"root": password, "anna": do("", "users", "create", "anna"),
		"bob": do("", "users", "create", "bob")}
	browsers := map[string]func(string) string{} // of signed-in users
	read := func(user, path string) string {
		t.Helper()
		if browsers[user] == nil {
			browsers[user] = p.browse(user, passwords[user])
		}
		return browsers[user](path)
	}
	shows := func(user, path, text string) bool {
		t.Helper()
		return strings.Contains(read(user, path), text)
	}
	key := createKey(t, data, "--user", "anna", "--name", "laptop")
	// send sends a request and returns the address of its page, and ask does so with a prompt.
	newest := regexp.MustCompile(`<th scope="row"><a href="(/requests/\d+)"`)
	send := func(to, body, want string) (path string) {
		t.Helper()
		pages := func() int { return len(newest.FindAllString(read("root", "/requests?range=7d"), -1)) }
		before := pages()
		res := p.post(to, key.Key, body)
		if answer, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK ||
			!strings.Contains(string(answer), want) {
			t.Fatalf("%d %s %v", res.StatusCode, answer, err)
		}
		p.await("the request in the log", func() bool { return pages() > before })
		return newest.FindStringSubmatch(read("root", "/requests?range=7d"))[1]
	}
	ask := func(prompt string) (path string) {
		t.Helper()
		return send("/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"`+prompt+
			`"}],"metadata":{"api_key":"`+memberKey+`"}}`, "the answer")
	}

	before := ask("prompt before")
	if shows("root", before, "prompt before") || !shows("root", before, "Record the key") {
		t.Error("a key is recorded without being switched on")
	}
	if _, err := os.Stat(kept); err == nil {
		t.Error("there is a directory although no key is recorded")
	}
	do("recorded     until", "keys", "update", key.ID, "--record-for", "24h")
	if !shows("anna", "/account/keys", "administrators can read what it sends") {
		t.Error("the owner does not see that the key is recorded")
	}
	first := ask("prompt one")
	p.await("the recording", func() bool { return shows("root", first, "prompt one") })
	if page := read("root", first); !strings.Contains(page, "the answer to Bearer [redacted][redacted]") ||
		!strings.Contains(page, "Attempt 1, vendor, up") {
		t.Errorf("the page of the request is\n%s", page)
	}
	if !shows("anna", first, "prompt one") || shows("anna", first, "Attempt 1, vendor, up") {
		t.Error("the owner does not see the own side of the exchange alone")
	}
	for to, m := range mediaRequests {
		if m.request == "" {
			continue
		}
		page := send(to, m.request, "")
		p.await("the recording of "+to, func() bool { return shows("root", page, "prompt of a") })
		for _, text := range []string{"Attempt 1, vendor, up", "Sent to the provider", "[redacted][redacted]"} {
			if !shows("root", page, text) {
				t.Errorf("the page of %s lacks %q:\n%s", to, text, read("root", page))
			}
		}
		if shows("anna", page, "Attempt 1, vendor, up") {
			t.Errorf("the owner sees the provider's side of %s", to)
		}
	}
	for _, path := range []string{first, first + "/recording.json"} {
		if page := read("bob", path); strings.Contains(page, "prompt one") ||
			!strings.Contains(page, "Not found") {
			t.Errorf("another user gets %s:\n%s", path, page)
		}
	}
	p.stop()

	p = launch(t, dir, "serve", "--config", file)
	clear(browsers)
	second := ask("prompt two")
	p.await("the recording after a restart", func() bool { return shows("root", second, "prompt two") })
	if !shows("root", first, "prompt one") {
		t.Error("a restart has lost a recording")
	}
	files := 0
	err := filepath.WalkDir(kept, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
		content, err := os.ReadFile(path)
		for _, secret := range []string{vendorKey, teamKey, memberKey, key.Key} {
			if strings.Contains(string(content), secret) {
				t.Errorf("%q is in a recording", secret)
			}
		}
		return err
	})
	if err != nil || files != 1+len(mediaRequests) {
		t.Errorf("%d files, %v", files, err)
	}
	copied := filepath.Join(dir, "copy.db")
	do("backed up", "state", "backup", copied)
	if content, err := os.ReadFile(copied); err != nil || strings.Contains(string(content), "prompt one") {
		t.Errorf("a backup has a recording, or is missing: %v", err)
	}
	do("recording.read", "audit", "list")
	do("recorded_until", "audit", "list", "--json")

	// Where the directory was, there is a file, so that nothing can be kept.
	aside := kept + ".aside"
	write(t, filepath.Join(dir, "x"), "")
	if err := os.Rename(kept, aside); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "x"), kept); err != nil {
		t.Fatal(err)
	}
	third := ask("prompt three")
	p.logged("were not kept")
	if shows("root", third, "prompt three") {
		t.Error("something is shown that is not kept")
	}
	if err := os.Rename(aside, kept); err == nil {
		t.Fatal("the file was replaced")
	}
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, kept); err != nil {
		t.Fatal(err)
	}

	do("recorded     no", "keys", "update", key.ID, "--record-for", "0")
	fourth := ask("prompt four")
	if shows("root", fourth, "prompt four") || !shows("root", second, "prompt two") {
		t.Error("a key is recorded after that was switched off, or what was kept has gone")
	}
	gone := func() bool {
		_, err := os.Stat(kept)
		return os.IsNotExist(err)
	}
	do("revoked", "keys", "revoke", key.ID)
	p.await("the end of the key's recordings", gone)

	key = createKey(t, data, "--name", "other")
	do("recorded     until", "keys", "update", key.ID, "--record-for", "1h")
	fifth := ask("prompt five")
	p.await("the recording of another key", func() bool { return shows("root", fifth, "prompt five") })
	write(t, file, text+"recordings: {keep: 0s}\n")
	p.logged("configuration read again")
	p.await("the end of all recordings", gone)
	if ask("prompt six"); !gone() {
		t.Error("something is kept without a retention")
	}
	p.stop()
}
