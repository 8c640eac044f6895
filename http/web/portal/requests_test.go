package portal_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/http/web/portal"
	"stagedoor/state"
	"stagedoor/state/money"
	"stagedoor/state/requestlog"
)

// requestLog is a log in memory, newest first, which knows owners, places and numbers.
type requestLog struct {
	all   []requestlog.Record
	spent []requestlog.Spent
	err   error
	off   bool
	asked requestlog.Query // the last one
	// unbounded is set if a record was asked for without an end of the time.
	unbounded bool
	// counts are those of each minute, by owner. Without them each owner has 7 requests.
	counts map[string]map[int64]int64
}

var _ portal.RequestLog = (*requestLog)(nil)

func (l *requestLog) Store() (requestlog.Reader, error) {
	if l.off {
		return nil, state.ErrNotFound
	}
	return l, nil
}
func (l *requestLog) Limits() requestlog.Limits {
	return requestlog.Limits{Keep: 30 * 24 * time.Hour}
}
func (l *requestLog) Append(context.Context, []requestlog.Record) error { return nil }
func (l *requestLog) Prune(context.Context) (bool, error)               { return false, nil }
func (l *requestLog) Close() error                                      { return nil }

func (l *requestLog) Count(_ context.Context, owner string, from, to time.Time, width time.Duration) ([]requestlog.Bar,
	error) {
	if l.counts != nil {
		bars, first, end, minutes := requestlog.Bars(from, to, width)
		for minute, n := range l.counts[owner] {
			if first <= minute && minute < end {
				bars[(minute-first)/minutes].All += n
			}
		}
		return bars, nil
	}
	return []requestlog.Bar{{From: time.Now(), Counts: requestlog.Counts{All: 7, Failed: 2}}}, nil
}

func (l *requestLog) Get(ctx context.Context, at int64, owner string) (requestlog.Record, error) {
	_, bounded := ctx.Deadline()
	l.unbounded = l.unbounded || !bounded
	for _, r := range l.all {
		if r.At == at && (owner == "" || owner == r.Owner) {
			return r, nil
		}
	}
	return requestlog.Record{}, state.ErrNotFound
}

func (l *requestLog) Find(_ context.Context, q *requestlog.Query, each func(*requestlog.Record) bool) error {
	found := 0
	l.asked = *q
	for _, r := range l.all {
		wanted := (q.Owner == "" || q.Owner == r.Owner) && (q.Before == 0 || r.At < q.Before)
		for _, t := range q.Terms {
			wanted = wanted && (t.Operator == "" || t.Holds(r.Number(t.Field))) &&
				(t.Field != "id" || strings.HasPrefix(r.ID, strings.TrimSuffix(t.Text, "*")))
		}
		if found == q.Limit || wanted && !each(&r) {
			break
		} else if wanted {
			found++
		}
	}
	return l.err
}

func (l *requestLog) Spent(_ context.Context, q *requestlog.SpentQuery, each func(*requestlog.Spent) error) error {
	for _, s := range l.spent {
		if q.Owner != "" && q.Owner != s.Owner || s.Step < 0 != q.To.Before(time.Now()) {
			continue
		}
		if s.Step < 0 {
			s.Step = 0 // of the time before
		}
		if err := each(&s); err != nil {
			return err
		}
	}
	return l.err
}

// logOf returns a log of n requests, of anna and bob turn by turn.
func logOf(n int) *requestLog {
	l := new(requestLog)
	for at := int64(n); at > 0; at-- {
		user := []string{"anna", "bob"}[at%2]
		l.all = append(l.all, requestlog.Record{At: at, Began: time.Now(), ID: fmt.Sprintf("req_%d", at),
			Owner: "user:" + user,
			User:  user, Key: "key_1", KeyName: "<b>laptop", Model: "=m1", Provider: "openai", Shape: "chat",
			Status: 200,
			Took:   time.Second, First: 300 * time.Millisecond, Input: at, Cost: at, Attempts: 1,
			Losses: "seed, logprobs",
			Tries:  []requestlog.Try{{Provider: "openai"}},
			Steps:  []requestlog.Step{{Phase: "waiting", Attempt: 1}, {Phase: "replying", Attempt: 1, AtUs: 300_000}}})
	}
	return l
}

func TestUsersSeeTheirOwnRequestsAndAdministratorsAll(t *testing.T) {
	h := newFixture(t)
	*h.requests = *logOf(10)
	anna, root := h.signedIn("anna"), h.signedIn("root")
	anna.expect(anna.get("/requests"), http.StatusOK, "req_2")
	if strings.Contains(anna.page, "bob") || strings.Contains(anna.page, "req_1\"") {
		t.Errorf("anna sees bob's requests:\n%s", anna.page)
	}
	anna.expect(anna.get("/requests/2"), http.StatusOK, "Lost in translation")
	for _, path := range []string{"/requests/1", "/requests/99", "/requests/x", "/requests/2/x"} {
		anna.expect(anna.get(path), http.StatusNotFound, "")
	}
	if res := anna.get("/requests.csv"); res.StatusCode != http.StatusOK || strings.Contains(anna.page, "bob") {
		t.Errorf("anna exports %d:\n%s", res.StatusCode, anna.page)
	}
	root.expect(root.get("/requests"), http.StatusOK, "bob")
	root.expect(root.get("/requests/1"), http.StatusOK, "=m1</bdi> for <bdi>bob")
	if h.requests.unbounded {
		t.Error("a page waits for a log that does not answer for as long as its client does")
	}
	root.expect(root.get("/requests/2"), http.StatusOK, `/admin/keys?q=key_1"><bdi>&lt;b&gt;laptop`)
	if strings.Contains(root.page, "<b>laptop") {
		t.Error("a name is no text")
	}
	stranger := h.visitor()
	stranger.sentTo(stranger.get("/requests.jsonl"), "/signin?next=%2Frequests.jsonl")
}

func TestTheListOfRequestsIsFilteredAndHasPages(t *testing.T) {
	h := newFixture(t)
	*h.requests = *logOf(120)
	root := h.signedIn("root")
	root.expect(root.get("/requests"), http.StatusOK, "before=71")
	root.expect(root.get("/requests?before=71"), http.StatusOK, "before=21")
	root.expect(root.get("/requests?before=21&q=in:%3E5&range=7d"), http.StatusOK, `value="in:&gt;5"`)
	if n := strings.Count(root.page, "<tr><th scope=\"row\">"); n != 15 || strings.Contains(root.page, "rel=\"next\"") {
		t.Errorf("%d rows on the last page", n)
	}
	root.expect(root.get("/requests?q=is:green"), http.StatusBadRequest, "is: must be one of")
	root.expect(root.get("/requests?q=in:%3E1000"), http.StatusOK, "No requests found")
	root.expect(root.get("/requests?from=1&to=5&only=failed"), http.StatusOK, "Chosen time")
	h.requests.err = context.DeadlineExceeded
	root.expect(root.get("/requests"), http.StatusServiceUnavailable, "Try again")
	h.requests.off = true
	root.expect(root.get("/requests"), http.StatusOK, "No log is kept")
}

func TestExportsAreWholeAndSafe(t *testing.T) {
	h := newFixture(t)
	*h.requests = *logOf(1203)
	root := h.signedIn("root")
	root.get("/requests.csv?q=in:%3E3")
	rows, err := csv.NewReader(strings.NewReader(root.page)).ReadAll()
	if err != nil || len(rows) != 1201 || rows[0][0] != "began" || rows[1][1] != "req_1203" ||
		rows[1200][1] != "req_4" {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if rows[1][5] != "'=m1" || rows[1][19] != "0.001203" {
		t.Errorf("row %q", rows[1])
	}
	root.get("/requests.jsonl")
	if n := bytes.Count([]byte(root.page), []byte(`"duration_ms":1000`)); n != 1203 {
		t.Errorf("%d lines", n)
	}
	for _, n := range []int{500, 1000} { // the last page is full
		*h.requests = *logOf(n)
		root.get("/requests.jsonl")
		if lines := strings.Count(root.page, "\n"); lines != n {
			t.Errorf("%d of %d lines", lines, n)
		}
	}
	*h.requests = *logOf(1)
	h.requests.all[0].Model = "\n=m1"
	if root.get("/requests.csv"); !strings.Contains(root.page, "'\n=m1") {
		t.Errorf("a spreadsheet would run a model: %q", root.page)
	}
	h.requests.off = true
	root.expect(root.get("/requests.csv"), http.StatusNotFound, "")
	h.requests.off, h.requests.all = false, nil
	if root.get("/requests.csv"); !strings.HasPrefix(root.page, "began,") {
		t.Errorf("an empty export: %q", root.page)
	}
}

func TestATimeIsChosenInTheFieldsOfThePage(t *testing.T) {
	h := newFixture(t)
	*h.requests = *logOf(3)
	root := h.signedIn("root")
	root.expect(root.get("/requests?q=m1&from=2026-01-02T10:00&to=2026-01-02T11:30"), http.StatusOK, "Chosen time")
	for _, want := range []string{`data-from="1767348000" data-to="1767353400"`, `value="2026-01-02T10:00"`,
		"/requests.csv?from=1767348000&amp;q=m1&amp;to=1767353400", `<input type="hidden" name="q" value="m1">`} {
		if !strings.Contains(root.page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, wrong := range []string{"from=2026-01-02T11:00&to=2026-01-02T10:00", "from=x&to=y",
		"from=2026-01-02T10:00"} {
		if root.expect(root.get("/requests?"+wrong), http.StatusOK, ""); strings.Contains(root.page, "Chosen time") {
			t.Errorf("%s is a time", wrong)
		}
	}
}

func TestAChosenTimeHasWholeMinutesAndAtLeastOne(t *testing.T) {
	h := newFixture(t)
	root := h.signedIn("root")
	for asked, want := range map[string]string{
		"from=1767348000&to=1767348000":                   `data-from="1767348000" data-to="1767348060"`,
		"from=1767348001&to=1767348001":                   `data-from="1767348000" data-to="1767348060"`,
		"from=2026-01-02T10:00:59&to=2026-01-02T10:01:45": `data-from="1767348000" data-to="1767348120"`,
		"from=2026-01-02T10:00&to=2026-01-02T10:02":       `data-from="1767348000" data-to="1767348120"`,
	} {
		if root.expect(root.get("/requests?"+asked), http.StatusOK, ""); !strings.Contains(root.page, want) {
			t.Errorf("the page of %s has no %s", asked, want)
		}
	}
}

// TestTheOverviewListsTheLatestRequestsOfItsUserOnly: those of others are not there.
func TestTheOverviewListsTheLatestRequestsOfItsUserOnly(t *testing.T) {
	h := newFixture(t)
	for at, owner := range []string{"anna", "root"} {
		h.requests.all = append(h.requests.all, requestlog.Record{At: int64(at + 1), Began: time.Now(),
			Owner: string(state.OwnerOf("", owner)), Model: "model-of-" + owner, Status: 429})
	}
	v := h.signedIn("anna")
	v.expect(v.get("/account"), http.StatusOK, "model-of-anna")
	if strings.Contains(v.page, "model-of-root") {
		t.Error("the page has a request of another user")
	}
	h.requests.err = context.DeadlineExceeded
	v.expect(v.get("/account"), http.StatusOK, "Left to spend")
}

// TestARequestLeadsToWhatItNames: an administrator gets to the user, others only to what they may open, and the receipt
// says who has paid.
func TestARequestLeadsToWhatItNames(t *testing.T) {
	h := newLedGroups(t)
	began := time.Now()
	h.requests.all = []requestlog.Record{{At: 1, Began: began, Took: time.Second, ID: "req_paid", User: "mia",
		Owner: string(state.OwnerOf("", "mia")), Key: h.miaKey.ID, KeyName: "mias-laptop", Group: "staff", Model: "m1",
		Provider: "openai", Status: 200, Cost: 5}}
	_, results, err := money.CommitPostings(t.Context(), h.state, "mia", []money.Posting{
		{Kind: money.Credit, Amount: 100}, {Kind: money.Settle, Amount: 5, Receipt: &money.Receipt{Request: "req_paid",
			Key: h.miaKey.ID, Model: "m1", Charged: 5, Began: began, Ended: began.Add(time.Second)}}})
	if err != nil || len(results) != 2 {
		t.Fatal(results, err)
	}
	mias, users := `"/account/keys/`+h.miaKey.ID+`"`, "/admin/users/"
	for name, want := range map[string]string{"root": "Paid by <bdi>mia, as a member of staff",
		"lea": "Paid by <bdi>mia", "mia": "Paid by <bdi>you, as a member of staff"} {
		v := h.signedIn(name)
		v.expect(v.get("/requests/1"), http.StatusOK, want)
		if strings.Contains(v.page, users) != (name == "root") || strings.Contains(v.page, mias) != (name == "mia") {
			t.Errorf("what %s may open:\n%s", name, v.page)
		}
	}
}
