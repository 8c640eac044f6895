package pages

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stagedoor/http/flow"
	"stagedoor/http/settings"
	"stagedoor/state"
	"stagedoor/state/money"
)

func TestDollarsHaveTwoToSixDecimals(t *testing.T) {
	for micros, want := range map[int64]string{0: "0.00", 1: "0.000001", 10: "0.00001", 12_500_000: "12.50",
		12_000_000: "12.00", 1_234_567: "1.234567",
		1_230_000: "1.23", -1: "-0.000001", -2_500_000: "-2.50", math.MaxInt64: "9223372036854.775807",
		math.MinInt64: "-9223372036854.775808"} {
		if got := Dollars(micros); got != want {
			t.Errorf("Dollars(%d) = %s, want %s", micros, got, want)
		}
	}
}

func TestEveryPageIsDrawn(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	viewer := Viewer{Username: "anna<b>", Admin: true, Token: "t", TopUp: OwnTopUp, Notice: "n<b>", Problem: "p<b>"}
	usage := monthReport(30)
	usage.Rows[0].Name, usage.Rows[0].Path, usage.Rows[0].Note = "<b>", "/x", "<b>"
	usage.Rows[0].Budget = &BudgetLine{Budget: 2, InWindow: 1, Forecast: "will run out today"}
	usage.Logged, usage.Ledger, usage.Cause, usage.CauseUser = true, 1<<40, "<b>", "<b>"
	usage.Forecast, usage.Budgets = 5, 6
	usage.Link()
	key := Key{
		ID:       "key_1",
		Prefix:   "sd-1",
		Name:     "k<b>",
		User:     "anna",
		UserPath: "/admin/users/1",
		Status:   "active",
		Scopes:   []string{"chat"},
		Models:   []string{"gpt-*"},
		RPM:      1,
		TPM:      2,
		Slots:    3,
		Budget:   4,
		Window:   "day",
		Created:  at,
		Expires:  at,
	}
	cost := int64(7)
	providerRow := ProviderRow{LastTest: &ProviderTest{at, "<b>", "failed", true}, Provider: flow.Provider{Name: "<b>",
		Answers: true, Places: 2, InFlight: 2, CostToday: &cost,
		Queues: []flow.Queue{{Owner: "<b>"}}, PausedAt: &at,
		Keys: flow.KeysState{States: []flow.KeyState{{State: "ok"}}},
		Hour: &flow.Hour{Requests: 3, Minutes: []flow.Minute{{FirstMs: 5}}}}}
	app := App{Name: "Weather", Host: "app.example.com", Scopes: []string{"profile", "balance"}}
	own := OwnApp{App: App{Name: "<b>", Host: "<b>", Logo: "/logo"}, ID: 1, ClientID: "ci_1", Created: at,
		Addresses: []string{"<b>"}, Secret: AppSecret{End: "abcd", Used: at},
		Previous: &AppSecret{End: "efgh", Until: at}, Users: 2, Devices: 3, First: at, Latest: at,
		ByScope: []ScopeUse{{ScopeTextOf("profile"), 2}}}
	typed := AppEntry{Name: "<b>", Addresses: "<b>", Description: "<b>"}
	named := []ModelRow{{Name: "<b>", Price: ModelPrice{Known: true}}}
	for name, v := range map[string]View{
		"sign in": &SignIn{Form: Form{"/a", "i", "t"}}, "sign in to an app": &SignIn{App: &app, Consents: true,
			Username: "u", Problem: "p"},
		"consent": &Consent{App: app, Username: "anna"}, "failure": &Failure{Title: "T", Message: "m", Detail: "<b>",
			Back: &Link{Name: "<b>", Path: "https://a.example/cb?error=x"}},
		"top up": &TopUp{Username: "anna", Figures: Figures{1, 2}, Notice: "n"},
		"another account": &TopUp{Viewer: &viewer,
			Username: "anna", SignedInAs: "b<b>", Problem: "p", Code: "c"},
		"sign in to the account": &SignIn{Next: "/account", Notice: "n"},
		"account":                &Account{Viewer: viewer, Usage: usage},
		"keys": &Keys{Viewer: viewer, Keys: []Key{key, {Status: "revoked"}, {Status: "disabled"}},
			Entry: KeyEntry{Name: "<b>", Scopes: []Choice{{"chat", true}}, Window: "month"}},
		"apps": &Apps{Viewer: viewer, Apps: []Allowed{{App: app, ID: 1, Devices: 2}}}, "no apps": &Apps{Viewer: viewer},
		"own app": &OneApp{Viewer: viewer, OwnApp: own, Entry: typed},
		"own apps": &Apps{Viewer: viewer, Own: []OwnApp{own, {App: app, ID: 2, Disabled: true}},
			Forbidden: true},
		"app secret":       SecretRotatedApp(viewer, "<b>", "/account/apps/1", "ci_1", "as_1", at),
		"developer tokens": &DeveloperTokens{Viewer: viewer, Tokens: []DeveloperToken{{ID: "dev_1"}, {Revoked: at}}},
		"second factor":    &SecondFactor{Username: "<b>", Problem: "<b>", Required: true},
		"code":             &SignIn{Halfway: "<b>"}, "recovery": SecretRecovery(viewer, []string{"A"}),
		"second factor on": &Security{Viewer: viewer, SecondFactor: true, Recovery: 9},
		"security":         &Security{Viewer: viewer, Sessions: []Session{{ID: "ses_1"}, {Current: true}}},
		"a key":            SecretKey(viewer, "k<b>", "sd-1", ClientSettings("", "", "")),
		"a token": SecretToken(viewer,
			"t<b>", "dt_1"),
		"invitations once": SecretInvitations(viewer, false,
			Sent{[]Labelled{{"lnk_1", "<b>", "https://a"}}, []string{"<b>"}, true}),
		"a link once": SecretLink(viewer, "b<b>", "/x", Sent{Mailed: []string{"<b>"}}),
		"codes once":  SecretCodes(viewer, []string{"A", "B"}, 1),
		"sign out":    &SignOut{viewer}, "missing": &Missing{viewer},
		"users": &Users{Viewer: viewer, Query: "<b>", Users: []User{{ID: 1, Username: "<b>", Email: "<b>",
			Active: true, Group: "<b>", Seen: at}, {Erased: true}}, Invitations: []Invitation{{For: "<b>", Group: "<b>",
			By: "<b>", Admin: true}},
			Invite: InviteEntry{People: "<b>", Mails: true, Groups: []GroupChoice{{1, "<b>", true}}},
			Pager:  Pager{1, 2, 3, "/a", "/b"}},
		"a user's key": SecretUserKey(viewer, "b<b>", "/x", "k<b>", "sd-1", nil), "a password": SecretPassword(viewer,
			"b<b>", "/x", "p"),
		"groups": &Groups{Viewer: viewer, Query: "<b>", Name: "<b>", Groups: []Group{{ID: 1, Name: "<b>", Members: 2,
			Limits: Limits{NoScopes: true, NoModels: true, Budget: 1, NoKeys: true}}, {}}},
		"one group": &OneGroup{Viewer: viewer, Group: Group{ID: 1, Name: "<b>"},
			Members: []User{{ID: 1, Username: "<b>"}},
			Entry: CeilingEntry{Rename: true, Name: "<b>", Models: "<b>", SomeScopes: true, Scopes: []Choice{{"chat",
				true}}}}, "no groups": &Groups{Viewer: viewer},
		"restricted keys": &Keys{Viewer: viewer, Forbidden: true, Limits: []Limits{{Owner: "you",
			Scopes: []string{"chat"}, Budget: 2, Window: "month"}}},
		"forbidden tokens": &DeveloperTokens{Viewer: viewer, Forbidden: true},
		"a restricted user": &OneUser{Viewer: viewer, User: User{Username: "<b>", Active: true}, Group: "<b>",
			GroupPath: "/admin/groups/1", Ceiling: CeilingEntry{Models: "<b>"}, Usage: usage},
		"one user": &OneUser{Viewer: viewer, User: User{Username: "<b>", Active: true, Admin: true}, Keys: []Key{key},
			Groups: []GroupChoice{{1, "<b>", true}}, Sessions: []Session{{Browser: "<b>", Address: "<b>"}},
			Usage: usage, WantsCode: true, MailTo: "<b>"}, "no users": &Users{Viewer: viewer},
		"first": &First{Address: "http://a", Key: "sd-1", Models: []string{"<b>"},
			Clients: ClientSettings("http://a<b>", "<b>", "<b>"), Answer: "<b>", Problem: "<b>"},
		"chat":    &Chat{Viewer: viewer, FormToken: "t", Address: "http://a<b>", Models: named},
		"connect": &Connect{Viewer: viewer, Address: "http://a<b>", Clients: ClientSettings("", "", ""), Logged: true},
		"models": &Models{Viewer: viewer, Query: ModelQuery{Text: "<b>"}, Patterns: []string{"<b>-*"},
			Models: []ModelRow{{Name: "<b>",
				Providers: []string{"<b>"}, APIs: []API{{"C", "chat", true}}, Abilities: []string{"vision"}}}},
		"search":        &Search{Viewer: viewer, Query: "<b>", Hits: []Hit{{Name: "<b>", Note: "<b>", Path: "/x"}}},
		"nothing found": &Search{Viewer: viewer, Query: "<b>"}, "no models": &Models{Viewer: viewer},
		"a model": &OneModel{Viewer: viewer, Model: ModelRow{Name: "<b>",
			Price: ModelPrice{Known: true}}},
		"first without a key": &First{Address: "http://a"},
		"all keys":            &AllKeys{Viewer: viewer, Keys: []Key{key}},
		"spend": &Spend{Viewer: viewer, Name: "Spend", Report: usage,
			Whose: "<b>", Previous: "/a", Next: "/b", Ranges: []Link{{Name: "Today", Path: "/c"}}},
		"usage": &Spend{Viewer: viewer, Name: "Usage", Own: true, Report: usage, Budgets: []BudgetLine{{Budget: 1}},
			Receipts: []money.Receipt{{Model: "<b>", Request: "<b>"}}, OlderReceipts: "/d"},
		"flow": &Flow{Viewer: viewer}, "one request": &FlowRequest{Viewer: viewer, ID: "<b>"},
		"providers": &Providers{Viewer: viewer, Tested: "<b>", Checks: []settings.Check{{Name: "<b>", Detail: "<b>"}},
			Status: &settings.Status{Place: "file", File: "<b>", Kept: 2, Undo: &settings.LastSaved{By: "<b>", At: at,
				What: []string{"<b>"}}, Models: []string{"<b>"}}, Query: ProviderQuery{Text: "<b>", Open: "<b>"},
			Rows: []ProviderRow{providerRow}, Open: &providerRow, Attention: []Attention{{Name: "<b>", Path: "/x"}}},
		"no providers": &Providers{Viewer: viewer},
		"a new provider": &NewProvider{Viewer: viewer, Shapes: []string{"chat"}, Shape: "chat", Name: "<b>", URL: "<b>",
			Recent: true}, "a new model": &ChangeEntry{Viewer: viewer, Kind: "models"},
		"a change": &ChangeEntry{Viewer: viewer, Kind: "providers", Name: "<b>", Fields: []SettingField{
			{settings.Setting{Path: []string{"<b>"}, Kind: "secret", Value: "<b>"}, "<b>"},
			{settings.Setting{Path: []string{"x"}, Kind: "flag", Words: []string{"<b>"}, Doc: "<b>"}, "<b>"}}},
		"a review": &ReviewChange{Viewer: viewer, Draft: "<b>", Recent: true, Tests: []settings.Check{{Name: "<b>"}},
			Review: settings.Review{Conflict: true, Warnings: []string{"<b>"}, Place: "store",
				Diff: []settings.Line{{Sign: "+", Text: "<b>"}}, Addresses: map[string]string{"<b>": "<b>"}}},
		"actors": &Actors{Viewer: viewer},
		"live":   &Live{Viewer: &viewer, Token: "t", Maker: Maker{named, "<b>"}}, "live by key": &Live{},
		"images": &Images{Viewer: viewer, FormToken: "t", Maker: Maker{named, "<b>"}},
		"audit": &Audit{Viewer: viewer, Query: AuditSearch{Actor: "<b>", Before: 1}, More: 9, Rows: []AuditRow{{
			state.AuditRecord{Actor: state.Actor{Name: "<b>", Request: "<b>"}, Action: "<b>.change",
				Target:  state.Target{Kind: "user", ID: "<b>", Name: "<b>"},
				Changes: []state.AuditChange{{Field: "<b>", Before: []byte(`"<b>"`), After: []byte(`{"<b>":1}`)}}}}}},
		"a led group": &Led{Viewer: viewer, Group: Group{Name: "<b>"}, Budget: &BudgetLine{Budget: 1},
			Members: []LedMember{{ID: 1, Username: "<b>", Mine: true, Use: RecentUse{Days: []int64{1, 2}}},
				{Lead: true}},
			Invitations: []Invitation{{For: "<b>", By: "<b>"}}, Invite: InviteEntry{People: "<b>"}},
		"keys of a led group": &LedKeys{Viewer: viewer, Group: "<b>", Keys: []LedKey{{Key: key, Mine: true}},
			Entry: KeyEntry{Members: []GroupChoice{{1, "<b>", true}}}, Edit: &LedKey{Key: key}},
		"no keys of a led group": &LedKeys{Viewer: viewer, Forbidden: true},
		"no changes":             &Audit{Viewer: viewer},
		"edit a key": &OneKey{Viewer: viewer, Key: key, Models: 2,
			Entry: KeyEntry{Was: "<b>", Prefix: "edit-"}},
		"new secret": SecretRotatedKey(viewer, "k<b>", "sd-1", at, nil),
		"codes": &Codes{Viewer: viewer, Codes: []Code{{Status: "open", Expires: at}, {Status: "used", Used: at,
			UsedBy: "<b>"}}},
	} {
		w := httptest.NewRecorder()
		if err := Write(w, httptest.NewRequest("GET", "/account?x=%3Cb%3E", nil), http.StatusTeapot, v); err != nil ||
			w.Code != http.StatusTeapot {
			t.Errorf("%s: status %d, %v", name, w.Code, err)
		}
		body := w.Body.String()
		if !strings.HasPrefix(body, "<!DOCTYPE html>") || !strings.Contains(body, "</html>") ||
			strings.Contains(body, "<b>") ||
			strings.Contains(body, "ZgotmplZ") {
			t.Errorf("%s:\n%s", name, body)
		}
		if strings.Contains(body, " style=") || strings.Contains(body, "<script>") || strings.Contains(body, "<style") {
			t.Errorf("%s has what its policy forbids:\n%s", name, body)
		}
		if strings.Count(body, "<h1") != 1 {
			t.Errorf("%s has not one heading", name)
		}
	}
}

func TestASignInPageAllowsTheWayBackToTheAppThatBeganIt(t *testing.T) {
	for next, want := range map[string]string{
		PathAuthorize + "?redirect_uri=https%3A%2F%2Fa.example%2Fcb":    "form-action 'self' https:;",
		PathAuthorize + "?redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcb": "form-action 'self' https: http:;",
		"/account?next=" + PathAuthorize:                                "form-action 'self';",
		PathAuthorize + "s":                                             "form-action 'self';",
	} {
		w := httptest.NewRecorder()
		page := &SignIn{Form: Form{"/signin", "", "t"}, Halfway: "sealed", Next: next}
		if err := Write(w, httptest.NewRequest("GET", "/signin", nil), http.StatusOK, page); err != nil {
			t.Fatal(err)
		}
		if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, want) {
			t.Errorf("%s: %s", next, policy)
		}
	}
}

func TestAssetsArePublishedUnderTheirContent(t *testing.T) {
	for name, media := range map[string]string{"stagedoor.css": "text/css; charset=utf-8",
		"shell.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
		"live.js": "text/javascript; charset=utf-8", "media.css": "text/css; charset=utf-8",
		"flow.js": "text/javascript; charset=utf-8", "flow.css": "text/css; charset=utf-8"} {
		path := assetPath(name)
		r := httptest.NewRequest("GET", path, nil)
		r.SetPathValue("name", strings.TrimPrefix(path, AssetPrefix))
		w := httptest.NewRecorder()
		if !Asset(w, r) || w.Header().Get("Content-Type") != media || w.Body.Len() == 0 ||
			!strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s at %s: %v", name, path, w.Header())
		}
	}
	for _, test := range []struct{ accepted, encoding string }{{"", ""}, {"gzip;q=0, br", ""},
		{"deflate, gzip", "gzip"}, {"GZIP", "gzip"}, {"xgzip", ""}} {
		path := assetPath("stagedoor.css")
		r := httptest.NewRequest("GET", path, nil)
		r.SetPathValue("name", strings.TrimPrefix(path, AssetPrefix))
		r.Header.Set("Accept-Encoding", test.accepted)
		w := httptest.NewRecorder()
		Asset(w, r)
		sent := io.Reader(w.Body)
		if test.encoding != "" {
			var err error
			if sent, err = gzip.NewReader(w.Body); err != nil {
				t.Fatal(err)
			}
		}
		data, err := io.ReadAll(sent)
		_, all := assets()
		if want := all[r.PathValue("name")].data; err != nil || !bytes.Equal(data, want) ||
			w.Header().Get("Content-Encoding") != test.encoding || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("for %q: %v, %v, %d bytes", test.accepted, err, w.Header(), len(data))
		}
	}
	for _, name := range []string{"", "stagedoor.css", "../doc.go", "x"} {
		r := httptest.NewRequest("GET", "/assets/x", nil)
		r.SetPathValue("name", name)
		if Asset(httptest.NewRecorder(), r) {
			t.Errorf("%q is served", name)
		}
	}
}

func TestAssetsAreServedWithoutWhatTheirReadersNeed(t *testing.T) {
	style := "/* All\n pages. */\n\n.a, .b > i:not(.c) { margin: 0 1px; /* none */ color: red; }\n\n" +
		"@media print {\n  .d\n  .e {\n    top: 0;\n  }\n}\n"
	const shortStyle = ".a,.b > i:not(.c){margin:0 1px;color:red}@media print{.d\n.e{top:0}}"
	if got := string(shortenStyle([]byte(style))); got != shortStyle {
		t.Errorf("style sheet %q, want %q", got, shortStyle)
	}
	script := "// All pages.\nimport { a } from './a.js'\n\n" +
		"\t// b is late.\n\tconst b = await import('./b.js') // 'soon'\n"
	const shortScript = "import { a } from '/assets/a-1.js'\n\nconst b = await import('/assets/b-1.js') // 'soon'\n"
	paths := map[string]string{"a.js": "/assets/a-1.js", "b.js": "/assets/b-1.js"}
	if got := string(shortenScript([]byte(script), paths)); got != shortScript {
		t.Errorf("script %q, want %q", got, shortScript)
	}
}

func TestMoneyIsShownInCentsAndBelowACentByFourDecimals(t *testing.T) {
	for micros, want := range map[int64]string{0: "$0.00", 18_423_817: "$18.42", 12_500_000: "$12.50", 15_000: "$0.02",
		8_412: "$0.0084", 5_000: "$0.005", 46: "<$0.0001", 60: "$0.0001", -2_500_000: "−$2.50"} {
		if got := formatMoney(micros); got != want {
			t.Errorf("formatMoney(%d) = %s, want %s", micros, got, want)
		}
	}
}

func TestBudgetMeterSaysHowMuchIsSpent(t *testing.T) {
	for _, test := range []struct {
		key     Key
		percent int64
		level   string
	}{{Key{}, 0, ""}, {Key{Budget: 5_000_000, InWindow: 4_400_000}, 88, ""}, {Key{Budget: 10, InWindow: 1}, 1, ""},
		{Key{Budget: 5_000_000, InWindow: 4_610_000}, 92, "warm"}, {Key{Budget: 100, InWindow: 900}, 100, "bad"},
		{Key{Budget: math.MaxInt64, InWindow: math.MaxInt64}, 100, "bad"}} {
		if p, l := test.key.Percent(), test.key.Level(); p != test.percent || l != test.level {
			t.Errorf("%d of %d: %d%% %q", test.key.InWindow, test.key.Budget, p, l)
		}
	}
}

func TestResultsOfAttemptsAreInWords(t *testing.T) {
	got := (&ProviderRow{}).Counters([]flow.Count{{Name: "transient", Count: 6}, {Name: "rate_limited", Count: 1}})
	if got != "temporary failure 6, rate limited 1" {
		t.Errorf("got %q", got)
	}
}
