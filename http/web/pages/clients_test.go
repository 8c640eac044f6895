package pages

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"stagedoor/docs"
	"stagedoor/http/flow"
	"stagedoor/http/settings"
)

// TestEveryDocumentedClientIsShownWithRealValues: a client that docs/clients has is on the first page, with the
// address, key and model of this gateway in place of those of the documents.
func TestEveryDocumentedClientIsShownWithRealValues(t *testing.T) {
	names, err := fs.Glob(docs.Files, "clients/*.md")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d pages, %v", len(names), err)
	}
	shown := map[string]string{}
	for _, c := range ClientSettings("https://gate.example.com", "sd-real", "real-model") {
		for _, b := range c.Blocks {
			shown[c.Name] += b.Text + "\n"
		}
	}
	for _, name := range names {
		page, err := fs.ReadFile(docs.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(page), "# "), "\n")
		switch text := shown[title]; {
		case name == "clients/README.md":
		case text == "":
			t.Errorf("%s is not shown: README.md does not list it, or its section Settings has no block", name)
		case strings.Contains(text, "You said"):
			t.Errorf("%s is shown with what the client prints:\n%s", name, text)
		case strings.Contains(text, docsAddress), strings.Contains(text, docsKey), docsWord.MatchString(text):
			t.Errorf("%s is shown with values of the documents:\n%s", name, text)
		case !strings.Contains(text, "gate.example.com") && !strings.Contains(text, "gateway.example.com"):
			t.Errorf("%s is shown without an address:\n%s", name, text)
		}
	}
}

// TestHostileValuesNeverReachTheSettings: the settings are copied into shells and files, so a value that is no name
// leaves the example of the documents in its place.
func TestHostileValuesNeverReachTheSettings(t *testing.T) {
	for _, evil := range []string{"http://a';reboot'", "http://a b", "javascript:x", "http://a\nb", `http://a"$(x)`,
		"http://[a;b]"} {
		name := strings.TrimPrefix(evil, "javascript:x") // which is a name, though not an address
		for _, c := range ClientSettings(evil, name, name) {
			for _, b := range c.Blocks {
				if strings.Contains(b.Text, evil) {
					t.Errorf("%s has %q:\n%s", c.Name, evil, b.Text)
				}
			}
		}
	}
}

// providers is the page of providers that had requests in each minute.
func providers(viewer Viewer, n int) *Providers {
	p := &Providers{Viewer: viewer, Status: &settings.Status{}, Rows: make([]ProviderRow, n)}
	for i := range p.Rows {
		p.Rows[i].Provider = flow.Provider{Name: "provider", Shape: "messages", Places: 8,
			Hour: &flow.Hour{Requests: 12345, Failed: 1, Minutes: make([]flow.Minute, 60)}}
		for n := range p.Rows[i].Hour.Minutes {
			p.Rows[i].Hour.Minutes[n].FirstMs = int64(500 + n)
		}
	}
	return p
}

// spenders are users who have spent something on each of the last days.
func spenders(n int) []User {
	all := make([]User, n)
	for i := range all {
		all[i].Use = RecentUse{Month: 5, Days: slices.Repeat([]int64{7, 5}, RecentDays/2), Requests: "/requests"}
	}
	return all
}

// TestPagesAreSmall: a page, its style sheets and its scripts are less than 60 KB when it is
// shown. Pages that move may have 150 KB.
func TestPagesAreSmall(t *testing.T) {
	viewer := Viewer{Username: "anna", Admin: true, Token: "t", TopUp: OwnTopUp}
	for name, page := range map[string]struct {
		view View
		most int
	}{
		"first": {&First{Address: "http://127.0.0.1:8080", Key: "sd-" + strings.Repeat("x", 43), Models: []string{"m"},
			Clients: ClientSettings("http://127.0.0.1:8080", "sd-x", "m")}, 60 << 10},
		"keys":     {&Keys{Viewer: viewer, Keys: make([]Key, 20)}, 60 << 10},
		"flow":     {&Flow{Viewer: viewer}, 150 << 10},
		"chat":     {&Chat{Viewer: viewer, Models: make([]ModelRow, 50)}, 60 << 10},
		"spend":    {&Spend{Viewer: viewer, Report: monthReport(100)}, 60 << 10},
		"search":   {&Search{Viewer: viewer, Hits: make([]Hit, 42)}, 60 << 10},
		"live":     {&Live{Viewer: &viewer}, 150 << 10},
		"images":   {&Images{Viewer: viewer}, 150 << 10},
		"users":    {&Users{Viewer: viewer, Users: spenders(20)}, 60 << 10},
		"led keys": {&LedKeys{Viewer: viewer, Keys: make([]LedKey, 20)}, 60 << 10},
		// Of five providers; each further one is 3 KB, which are compressed to a tenth of it.
		"providers": {providers(viewer, 5), 60 << 10},
	} {
		w := httptest.NewRecorder()
		if err := Write(w, httptest.NewRequest("GET", "/", nil), http.StatusOK, page.view); err != nil {
			t.Fatal(err)
		}
		size := w.Body.Len()
		paths, all := assets()
		for file, path := range paths {
			imports := file == "stream.js" && (name == "first" || name == "images") ||
				file == "lanes.js" && name == "flow" || file == "kept.js" && (name == "chat" || name == "images")
			wanted := !strings.HasPrefix(file, "goto.") // which pages load when the search is opened
			if strings.Contains(w.Body.String(), path) && wanted || imports {
				size += len(all[strings.TrimPrefix(path, AssetPrefix)].data)
			}
		}
		if t.Logf("%s: %d bytes", name, size); size >= page.most {
			t.Errorf("%s has %d bytes with its assets, at most %d are wanted", name, size, page.most)
		}
	}
}
