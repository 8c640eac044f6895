package portal_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/engine"
	actorsflow "stagedoor/actors/flow"
	"stagedoor/actors/throttle"
	"stagedoor/http/flow"
	"stagedoor/http/settings"
	"stagedoor/providers/catalog"
	"stagedoor/providers/upstream"
	"stagedoor/state"
	"stagedoor/state/work"
)

// fakeSettings has one provider with two keys and one model. It notes what is saved.
type fakeSettings struct {
	saved    []settings.Draft
	by       string
	conflict bool
	mistakes []string
	undone   int
}

func (f *fakeSettings) Status() (settings.Status, error) {
	return settings.Status{Version: "v1", Editable: true, Place: "file", File: "f.yaml"}, nil
}

func (f *fakeSettings) Settings(kind, name string) ([]settings.Setting, error) {
	if name != "up<b>" && name != "" {
		return nil, state.ErrNotFound
	}
	return []settings.Setting{{Path: []string{"base_url"}, Kind: settings.Text, Value: "http://host/v1"},
		{Path: []string{"limits", "rpm"}, Kind: settings.Number, Value: "5"},
		{Path: []string{"retries"}, Kind: settings.Number},
		{Path: []string{"api_keys", "0"}, Kind: settings.Secret, Value: "…abcd"},
		{Path: []string{"api_keys", "1"}, Kind: settings.Secret, Value: "${KEY}"}}, nil
}

func (f *fakeSettings) Review(d settings.Draft) (settings.Review, error) {
	return settings.Review{Version: "v2", Conflict: f.conflict, Place: "file", Mistakes: f.mistakes,
		Diff:      []settings.Line{{Sign: "+", Text: "<script>x"}},
		Addresses: map[string]string{"new": "http://host/v1"}}, nil
}

func (f *fakeSettings) Save(_ context.Context, d settings.Draft, by string) (settings.Review, error) {
	r, err := f.Review(d)
	if r.Saved = !f.conflict; r.Saved {
		f.saved, f.by = append(f.saved, d), by
	}
	return r, err
}

func (f *fakeSettings) Undo(context.Context, string) (settings.Review, error) {
	if f.undone++; f.undone > 1 {
		return settings.Review{}, settings.ErrNoUndo
	}
	return settings.Review{Saved: true}, nil
}

func (f *fakeSettings) Test(_ context.Context, name string, _ *settings.Draft) ([]settings.Check, error) {
	if name == "" {
		return []settings.Check{{Name: "provider azure", Status: "ok"}, {Name: `provider up"><b>`, Status: "failed"}}, nil
	}
	return []settings.Check{{Name: "provider " + name, Status: "ok", Detail: "answered 200"}}, nil
}

var hiddenDraft = regexp.MustCompile(`name="draft" value="([^"]+)"`)

func edits(t *testing.T, d *settings.Draft) string {
	t.Helper()
	text, err := json.Marshal(d.Edits)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestANewProviderIsReviewedTestedAndSaved with the key on no page.
func TestANewProviderIsReviewedTestedAndSaved(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("root")
	v.expect(v.get("/flow/providers/new?shape=chat"), 200, "Test and review")
	res := v.post("/flow/providers/review", "shape", "chat", "new", "new", "url", "http://host", "key", "typed-key",
		"rpm", "60", "serves", "one, two-*", "version", "v1")
	v.expect(res, 200, "answered 200")
	if strings.Contains(v.page, "typed-key") || strings.Contains(v.page, "<script>x") {
		t.Errorf("the review has the key or markup of the file:\n%s", v.page)
	}
	v.expect(v.post("/flow/providers/review", "draft", find(hiddenDraft, v.page), "provider", "new", "better",
		"http://host/v1"), 200, "Save and put in force")
	v.sentTo(v.post("/flow/providers/save", "draft", find(hiddenDraft, v.page)),
		"/flow/providers?done=configuration_saved")
	want := `[{"path":["providers","new","shape"],"value":"chat"},{"path":["providers","new","base_url"],` +
		`"value":"http://host"},{"path":["providers","new","api_keys"],"value":["typed-key"]},` +
		`{"path":["providers","new","limits"],"value":{"rpm":60}},` +
		`{"path":["models","one"],"value":{"targets":[{"model":"one","provider":"new"}]}},` +
		`{"path":["models","two-*"],"value":{"targets":[{"model":"*","provider":"new"}]}},` +
		`{"path":["providers","new","base_url"],"value":"http://host/v1"}]`
	if len(h.settings.saved) != 1 || edits(t, &h.settings.saved[0]) != want || h.settings.by != "root" ||
		h.settings.saved[0].Version != "v2" {
		t.Errorf("saved by %s: %+v", h.settings.by, h.settings.saved)
	}
	if log := h.log.String(); strings.Contains(log, "typed-key") {
		t.Errorf("the log has the key: %s", log)
	}
}

// TestAFormChangesOnlyWhatDiffers and removes the elements of lists from the last to the first.
func TestAFormChangesOnlyWhatDiffers(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("root")
	v.expect(v.get("/flow/providers/change?kind=providers&name=up%3Cb%3E"), 200, "…abcd")
	form := []string{"kind", "providers", "name", "up<b>", "version", "v1", `set:["base_url"]`, "http://host/v1",
		`set:["limits","rpm"]`, "", `set:["retries"]`, "3", `set:["api_keys","0"]`, "fresh", "key", "third"}
	for _, c := range []struct {
		more []string
		want string
	}{
		{nil, `[{"path":["providers","up\u003cb\u003e","retries"],"value":3},` +
			`{"path":["providers","up\u003cb\u003e","api_keys","0"],"value":"fresh"},` +
			`{"path":["providers","up\u003cb\u003e","api_keys","2"],"value":"third"},` +
			`{"path":["providers","up\u003cb\u003e","limits","rpm"]}]`},
		{[]string{`set:["retries"]`, "", `set:["limits","rpm"]`, "5", "key", "", `set:["api_keys","0"]`, "",
			`remove:set:["api_keys","0"]`, "yes", `remove:set:["api_keys","1"]`, "yes"},
			`[{"path":["providers","up\u003cb\u003e","api_keys","1"]},` +
				`{"path":["providers","up\u003cb\u003e","api_keys","0"]}]`},
		{[]string{"remove", "yes"}, `[{"path":["providers","up\u003cb\u003e"]}]`},
	} {
		v.get("/flow/providers/change?kind=providers&name=up%3Cb%3E")
		v.expect(v.post("/flow/providers/review", append(form, c.more...)...), 200, "Save and put in force")
		v.post("/flow/providers/save", "draft", find(hiddenDraft, v.page))
		if last := h.settings.saved[len(h.settings.saved)-1]; edits(t, &last) != c.want {
			t.Errorf("saved %s, want %s", edits(t, &last), c.want)
		}
	}
}

// TestAChangeWithMistakesOrAConflictIsShownAndNotSaved also if the conflict comes after the review.
func TestAChangeWithMistakesOrAConflictIsShownAndNotSaved(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("root")
	v.get("/flow/providers/new?shape=chat")
	h.settings.mistakes = []string{"f.yaml: <b> is wrong"}
	v.expect(v.post("/flow/providers/review", "shape", "chat", "new", "x"), 200, "&lt;b&gt; is wrong")
	if strings.Contains(v.page, "Save and put in force") {
		t.Error("a change with mistakes can be saved")
	}
	h.settings.mistakes = nil
	v.get("/flow/providers/new?shape=chat")
	v.post("/flow/providers/review", "shape", "chat", "new", "x")
	h.settings.conflict = true
	v.expect(v.post("/flow/providers/save", "draft", find(hiddenDraft, v.page)), 409, "was changed since")
	if len(h.settings.saved) != 0 {
		t.Errorf("saved %+v", h.settings.saved)
	}
	v.sentTo(v.post("/flow/providers/undo"), "/flow/providers?done=configuration_undone")
	v.expect(v.post("/flow/providers/undo"), 409, "There is no change")
}

// TestOnlyAdministratorsWithTheirOwnFormsChangeProviders and drafts of other sessions are refused.
func TestOnlyAdministratorsWithTheirOwnFormsChangeProviders(t *testing.T) {
	h := newFixture(t)
	anna, root := h.signedIn("anna"), h.signedIn("root")
	for _, path := range []string{"/flow/providers/new", "/flow/providers/change?kind=models"} {
		if res := anna.get(path); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s is answered %d", path, res.StatusCode)
		}
	}
	root.get("/flow/providers/new?shape=chat")
	root.post("/flow/providers/review", "shape", "chat", "new", "x")
	draft := find(hiddenDraft, root.page)
	for _, action := range []string{"review", "save", "undo", "up/test"} {
		anna.get("/account")
		if res := anna.post("/flow/providers/"+action, "draft", draft); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s by a user is answered %d", action, res.StatusCode)
		}
		res := root.send("/flow/providers/"+action, url.Values{"draft": {draft}, "token": {"forged"}}, nil)
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s with a forged token is answered %d", action, res.StatusCode)
		}
	}
	other := h.signedIn("root")
	if res := other.post("/flow/providers/save", "draft", draft); res.StatusCode != http.StatusForbidden {
		t.Errorf("the draft of another session is answered %d", res.StatusCode)
	}
	if len(h.settings.saved) != 0 {
		t.Errorf("saved %+v", h.settings.saved)
	}
}

// TestKeysWantARecentSignIn shows that a session that is left open is not enough to change keys and addresses.
func TestKeysWantARecentSignIn(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("root")
	h.later = 31 * time.Minute
	v.expect(v.get("/flow/providers/new?shape=chat"), 200, "Sign in again")
	if strings.Contains(v.page, `name="key"`) {
		t.Error("a key may be typed")
	}
	v.expect(v.post("/flow/providers/review", "shape", "chat", "new", "x", "url", "http://host", "key", "k"), 200,
		"Sign in again")
	v.expect(v.post("/flow/providers/save", "draft", find(hiddenDraft, v.page)), 403, "Sign in again")
	if len(h.settings.saved) != 0 {
		t.Errorf("saved %+v", h.settings.saved)
	}
	v.get("/flow/providers/change?kind=providers&name=up%3Cb%3E")
	v.post("/flow/providers/review", "kind", "providers", "name", "up<b>", `set:["retries"]`, "3")
	v.sentTo(v.post("/flow/providers/save", "draft", find(hiddenDraft, v.page)),
		"/flow/providers?done=configuration_saved")
}

// TestAChangeOfManyModelsIsSavedOrRefusedPlainly before it is reviewed, and never as a forged form.
func TestAChangeOfManyModelsIsSavedOrRefusedPlainly(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("root")
	add := func(models int) *http.Response {
		v.get("/flow/providers/new?shape=chat")
		return v.post("/flow/providers/review", "shape", "chat", "new", "new", "url", "http://host", "version", "v1",
			"serves", strings.Repeat("a-model-with-a-long-name,", models))
	}
	v.expect(add(200), 200, "Save and put in force")
	v.sentTo(v.post("/flow/providers/save", "draft", find(hiddenDraft, v.page)),
		"/flow/providers?done=configuration_saved")
	v.expect(add(1500), 409, "too long for this page")
}

// newOverview has two providers, with an attempt at one of them that took two seconds. Their limiters do not run.
func newOverview(t *testing.T) *flow.Overview {
	now := time.Now().Add(-10 * time.Second)
	registry := actorsflow.New(func() time.Time { return now })
	hostile := &catalog.Provider{Name: `up"><b>`, Shape: "chat", APIKeys: []string{"secret-of-up"}}
	q := registry.Begin(t.Context(), actorsflow.About{ID: "r"}, nil)
	q.Attempt(&catalog.Candidate{Provider: hostile})
	q.Sent(1, now)
	now = now.Add(2 * time.Second)
	q.Progress(1)
	q.End(actorsflow.Result{})
	q.Record()
	client, err := upstream.New(upstream.Options{BaseURL: "http://127.0.0.1:9", APIKeys: []string{"secret-of-up"}})
	if err != nil {
		t.Fatal(err)
	}
	client.Keys().RecordFailure("secret-of-up", "m", &upstream.Failure{Class: upstream.Credential}, now)
	served := []*engine.Provider{
		{Spec: hostile, Limiter: throttle.NewClient(nil, throttle.Config{}), Client: client},
		{Spec: &catalog.Provider{Name: "azure", Shape: "responses"},
			Limiter: throttle.NewClient(nil, throttle.Config{})}}
	return &flow.Overview{Flow: registry, Now: func() time.Time { return now },
		Serving: func() []*engine.Provider { return served }}
}

// TestTheSideBarCountsWhatIsInProgress: users see the number of their own videos, administrators that of all requests.
func TestTheSideBarCountsWhatIsInProgress(t *testing.T) {
	h := newFixture(t)
	h.overview.Flow.Begin(t.Context(), actorsflow.About{ID: "r2"}, nil)
	_, err := state.Do(t.Context(), h.state, func(tx *state.Tx) (work.Video, error) {
		return work.PutVideo(tx, work.Video{ID: "video_1", Owner: state.OwnerOf("", "anna"), Operation: "create",
			Model: "film", Phase: work.VideoAccepted, Created: time.Now(), Deadline: time.Now().Add(time.Hour)})
	})
	if err != nil {
		t.Fatal(err)
	}
	const video, request = `1<span class="hidden"> in progress`, `1<span class="hidden"> in flight`
	anna, root := h.signedIn("anna"), h.signedIn("root")
	anna.expect(anna.get("/account/keys"), 200, video)
	root.expect(root.get("/account/keys"), 200, request)
	if strings.Contains(anna.page, request) || strings.Contains(root.page, video) {
		t.Error("a user sees a count of others")
	}
}

func TestEachProviderIsOneRow(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("root")
	v.expect(v.get("/flow/providers"), 200, "2 providers, 2 need attention")
	for _, want := range []string{`<tr data-key="up&#34;&gt;&lt;b&gt;">`, "2.00 s", `aria-label="1 key: refused"`,
		`aria-label="Remove azure"`, `aria-label="Test azure"`, `aria-label="Change azure"`, `aria-label="Pause azure"`,
		`<path d="M`, "no data", `1 requests to up`} {
		if !strings.Contains(v.page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if strings.Contains(v.page, "secret-of-up") {
		t.Error("the page has a key")
	}
	if a, b := strings.Index(v.page, `data-key="azure"`), strings.Index(v.page, `data-key="up`); a > b {
		t.Error("the rows are not sorted by name")
	}
	v.expect(v.get("/flow/providers?sort=requests"), 200, `aria-sort="descending"`)
	if a, b := strings.Index(v.page, `data-key="azure"`), strings.Index(v.page, `data-key="up`); a < b {
		t.Error("the rows are not sorted by requests")
	}
	v.expect(v.get("/flow/providers?q=RESPONSES&sort=none"), 200, `data-key="azure"`)
	if strings.Contains(v.page, `data-key="up`) {
		t.Error("the filter selects all")
	}
	v.expect(v.get("/flow/providers?q=none"), 200, "No provider matches")
	v.expect(v.get("/flow/providers?open=azure"), 200, "Requests left this minute")
	v.expect(v.post("/flow/providers/review", "kind", "providers", "name", "up<b>", "remove", "yes"), 200, "Save and")
	v.expect(v.get("/flow/providers"), 200, `action="/flow/providers/test"`)
	v.expect(v.post("/flow/providers/test"), 200, "Test of <bdi>all providers</bdi>")
	for _, want := range []string{"provider azure</bdi>", "provider up&#34;&gt;&lt;b&gt;</bdi>"} {
		if !strings.Contains(v.page, want) {
			t.Errorf("the test of all lacks %s", want)
		}
	}
	anna := h.signedIn("anna")
	anna.expect(anna.get("/flow/providers"), 404, "")
	anna.expect(anna.post("/flow/providers/test"), 404, "")
}

func TestTheLastTestOfAProviderIsKept(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		h := newFixture(t)
		v := h.signedIn("root")
		v.get("/account") // has a token, and reads no test
		if !restarted {
			v.expect(v.get("/flow/providers"), 200, "2 providers")
		}
		v.expect(v.post("/flow/providers/test"), 200, "Test of <bdi>all providers</bdi>")
		v.get("/flow/providers")
		for _, want := range []string{`test <span>ok</span>`, `test <span class="bad">failed</span>`,
			", <bdi>root</bdi></span>"} {
			if !strings.Contains(v.page, want) {
				t.Errorf("restarted %v: the rows lack %s", restarted, want)
			}
		}
		v.expect(v.get("/admin/audit?action=provider.test"), 200, "azure")
	}
}
