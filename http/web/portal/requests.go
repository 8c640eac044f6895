package portal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/http/web/pages"
	"stagedoor/providers/turns"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/money"
	"stagedoor/state/requestlog"
)

// pathRequestLog is the address of the log of requests. Users see their own requests, administrators all.
const pathRequestLog = "/requests"

// RequestLog opens the log of requests. Its implementation is in actors/requests.
type RequestLog interface {
	Store() (requestlog.Reader, error)
	Limits() requestlog.Limits
}

const (
	// searchTime bounds one search.
	searchTime = 5 * time.Second
	// searchesAtOnce is the number of searches under way. The log has as many connections for them.
	searchesAtOnce = 2
	// exportPage is the number of records of an export that are in memory at a time.
	exportPage = 500
	strip      = 60 // bars
)

// requestRoutes adds the pages of the log of requests, if there is a log.
func (p *Portal) requestRoutes(handle func(pattern string, h http.HandlerFunc)) {
	if p.options.RequestLog == nil {
		return
	}
	handle("GET "+pathRequestLog, p.member((*requestContext).requestLog))
	handle("GET "+pathRequestLog+".csv", p.member(func(rc *requestContext) {
		rc.exportRequests(mediaCSV, "requests.csv", csvWriter(rc.options.State.Several()))
	}))
	handle("GET "+pathRequestLog+".jsonl", p.member(func(rc *requestContext) {
		rc.exportRequests("application/jsonl", "requests.jsonl", writeLines)
	}))
	handle("GET "+pathRequestLog+"/{at}", p.member((*requestContext).loggedRequest))
	handle("GET "+pathRequestLog+"/{at}/recording.json", p.member((*requestContext).exportRecording))
}

// searchedLog returns the log of requests for the user, who takes turns with other users at searching it. One search
// may take all of searchTime, and a user can send any number of them.
func (rc *requestContext) searchedLog() (requestlog.Reader, error) {
	log, err := rc.options.RequestLog.Store()
	if err != nil {
		return nil, err
	}
	return &turnReader{log, rc.searches, strconv.FormatInt(rc.user.ID, 10)}, nil
}

// turnReader is a Reader whose calls wait for the turn of their user.
type turnReader struct {
	log   requestlog.Reader
	turns *turns.Queue
	user  string
}

// inTurn runs a search once it is the user's turn. A search that ctx does not let wait so long fails with the cause.
func (t *turnReader) inTurn(ctx context.Context, search func() error) error {
	if err := t.turns.Acquire(ctx, t.user); err != nil {
		return err
	}
	defer t.turns.Release(t.user)
	return search()
}

// Find implements requestlog.Reader.
func (t *turnReader) Find(ctx context.Context, q *requestlog.Query, each func(*requestlog.Record) bool) error {
	return t.inTurn(ctx, func() error { return t.log.Find(ctx, q, each) })
}

// Get implements requestlog.Reader.
func (t *turnReader) Get(ctx context.Context, at int64, owner string) (r requestlog.Record, err error) {
	err = t.inTurn(ctx, func() (err error) {
		r, err = t.log.Get(ctx, at, owner)
		return err
	})
	return r, err
}

// Count implements requestlog.Reader.
func (t *turnReader) Count(ctx context.Context, owner string, from, to time.Time,
	width time.Duration) (bars []requestlog.Bar, err error) {
	err = t.inTurn(ctx, func() (err error) {
		bars, err = t.log.Count(ctx, owner, from, to, width)
		return err
	})
	return bars, err
}

// Spent implements requestlog.Reader.
func (t *turnReader) Spent(ctx context.Context, q *requestlog.SpentQuery, each func(*requestlog.Spent) error) error {
	return t.inTurn(ctx, func() error { return t.log.Spent(ctx, q, each) })
}

// logOwner returns whose requests the user sees: "" for all.
func (rc *requestContext) logOwner() string {
	if rc.user.Admin {
		return ""
	}
	return string(state.OwnerOf("", rc.user.Username))
}

// asked returns the search that the address asks for. It ignores parameters that make no sense, so that an address that
// was edited by hand still shows a page. If the address does not have both ends of a time, the time is that of its
// range, which ends with the present minute.
func (rc *requestContext) asked() pages.Asked {
	now := rc.options.Now()
	a := pages.Asked{Text: strings.TrimSpace(rc.query("q")), Group: rc.query("of") == "group" && rc.user.Leads}
	if only := rc.query("only"); only == "failed" || only == "slow" || only == "lossy" {
		a.Only = only
	}
	a.Before, _ = strconv.ParseInt(rc.query("before"), 10, 64)
	from, to := timeOf(rc.query("from")), timeOf(rc.query("to"))
	if rc.query("range") == "" && 0 < from && from <= to && to-from < 100*365*24*3600 {
		// The bars and the fields have whole minutes, so the list has them, too, and at least one.
		last := time.Unix(max(to, from+1), 0).Add(time.Minute - time.Second)
		a.From, a.To = time.Unix(from, 0).Truncate(time.Minute), last.Truncate(time.Minute)
		return a
	}
	name, length := pages.RangeOf(rc.query("range"))
	a.Range, a.From, a.To = name, now.Add(-length).Truncate(time.Minute), now.Add(time.Minute).Truncate(time.Minute)
	return a
}

// timeOf reads a time of the address, in seconds since 1970 as in links, or in UTC as the fields of the page send it.
// It returns 0 for any other text.
func timeOf(text string) int64 {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return seconds
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Unix()
		}
	}
	return 0
}

// queryOf makes a query of the log. Its error is meant for the user.
func (rc *requestContext) queryOf(a *pages.Asked, limit int) (requestlog.Query, error) {
	terms, err := requestlog.Parse(a.Text)
	if a.Only != "" {
		terms = append(terms, requestlog.Term{Field: "is", Text: a.Only})
	}
	q := requestlog.Query{Owner: rc.logOwner(), From: a.From, To: a.To, Before: a.Before, Terms: terms, Limit: limit}
	if a.Group {
		q.Owner = "" // the group decides
		g, ok := identity.LedBy(rc.options.State.View(), rc.user.ID)
		if !ok {
			return q, errors.New("you no longer lead the group")
		}
		q.Terms = append(q.Terms, requestlog.Term{Field: "group", Text: g.Name})
		q.From = later(q.From, nameSince(&g))
	}
	return q, err
}

// countGroup counts the requests of a group in bars. Those of an earlier group of the same name do not count, nor do
// those of the minute in which g got its name, because the log counts whole minutes.
func countGroup(ctx context.Context, log requestlog.Reader, g *identity.Group, from, to time.Time,
	width time.Duration) ([]requestlog.Bar, error) {
	owner, since := requestlog.GroupOwner(g.Name), nameSince(g).Truncate(time.Minute).Add(time.Minute)
	bars, err := log.Count(ctx, owner, from, to, width)
	for i := range bars {
		b, end := &bars[i], to
		if i+1 < len(bars) {
			end = bars[i+1].From
		}
		if !b.From.Before(since) {
			break
		}
		if b.Counts = (requestlog.Counts{}); err == nil && since.Before(end) {
			var rest []requestlog.Bar
			if rest, err = log.Count(ctx, owner, since, end, end.Sub(since)); len(rest) > 0 {
				b.Counts = rest[0].Counts
			}
		}
	}
	return bars, err
}

// nameSince returns the time since which the log of requests means g by the group's name.
func nameSince(g *identity.Group) time.Time { return later(g.Created, g.Named) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// findLogged returns the request at a place of the log if the user may see it: the user's own, one of the group that
// the user leads, or any for administrators. It returns state.ErrNotFound for all others.
func (rc *requestContext) findLogged(log requestlog.Reader, at int64) (requestlog.Record, error) {
	ctx, cancel := context.WithTimeout(rc.r.Context(), searchTime)
	defer cancel()
	r, err := log.Get(ctx, at, rc.logOwner())
	g, leads := identity.LedBy(rc.options.State.View(), rc.user.ID)
	if !leads || !errors.Is(err, state.ErrNotFound) {
		return r, err
	}
	r, err = log.Get(ctx, at, "")
	if err == nil && (!strings.EqualFold(r.Group, g.Name) || r.Began.Before(nameSince(&g))) {
		return requestlog.Record{}, state.ErrNotFound
	}
	return r, err
}

// requestLog shows a page of the log.
//
// The bars count all requests of the time, also those that the search leaves out, so that a reader sees what
// part of them is listed. A search for one request more than a page shows whether there are older ones. The
// bars and the list share the time that a search may take.
func (rc *requestContext) requestLog() {
	a := rc.asked()
	view := &pages.Requests{Viewer: rc.viewer(), Query: a, Kept: pages.Days(rc.options.RequestLog.Limits().Keep),
		Several: rc.options.State.Several()}
	log, err := rc.searchedLog()
	if errors.Is(err, state.ErrNotFound) {
		view.Off = true
		rc.show(http.StatusOK, view)
		return
	}
	ctx, cancel := context.WithTimeout(rc.r.Context(), searchTime)
	defer cancel()
	status := http.StatusOK
	q, wrong := rc.queryOf(&a, perPage+1)
	var found []requestlog.Record
	width := (a.To.Sub(a.From) / strip).Round(time.Minute)
	if g, leads := identity.LedBy(rc.options.State.View(), rc.user.ID); a.Group && leads {
		if view.Group = g.Name; err == nil {
			view.Bars, err = countGroup(ctx, log, &g, a.From, a.To, width)
		}
	} else if !a.Group && err == nil {
		view.Bars, err = log.Count(ctx, q.Owner, a.From, a.To, width)
	}
	if wrong != nil {
		view.Problem, status = "This search cannot be read: "+wrong.Error()+".", http.StatusBadRequest
	} else if err == nil {
		err = log.Find(ctx, &q, func(r *requestlog.Record) bool { found = append(found, *r); return true })
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		view.Problem = "The search took too long. Choose a shorter time or add a condition."
		status = http.StatusServiceUnavailable
	case err != nil:
		rc.busy(rc.w, rc.r, err)
		return
	}
	for _, b := range view.Bars {
		view.Sum.All, view.Sum.Failed = view.Sum.All+b.All, view.Sum.Failed+b.Failed
		view.Sum.Slow, view.Sum.Lossy = view.Sum.Slow+b.Slow, view.Sum.Lossy+b.Lossy
	}
	if len(found) > perPage {
		found = found[:perPage]
		a.Before = found[perPage-1].At
		view.Older = a.Address(pathRequestLog)
	}
	view.Rows = pages.NewRequestRows(found, rc.options.Now())
	rc.show(status, view)
}

// loggedRecord returns the request that the path names, or state.ErrNotFound.
func (rc *requestContext) loggedRecord() (requestlog.Record, error) {
	at, err := strconv.ParseInt(rc.r.PathValue("at"), 10, 64)
	if err != nil {
		return requestlog.Record{}, state.ErrNotFound
	}
	log, err := rc.searchedLog()
	if err != nil {
		return requestlog.Record{}, err
	}
	return rc.findLogged(log, at)
}

// loggedRequest shows one request with its receipt.
func (rc *requestContext) loggedRequest() {
	r, err := rc.loggedRecord()
	switch {
	case errors.Is(err, state.ErrNotFound):
		rc.missing()
		return
	case err != nil:
		rc.busy(rc.w, rc.r, err)
		return
	}
	receipt, err := rc.receiptOf(&r)
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	view := pages.NewOneRequest(rc.viewer(), r, receipt)
	rc.link(view)
	rc.addRecording(view)
	rc.show(http.StatusOK, view)
}

// link adds the addresses of the pages about the user, the key, the model and the provider of a request that
// the reader may open.
func (rc *requestContext) link(view *pages.OneRequest) {
	if _, ok := rc.ownKey(view.Key); ok {
		view.KeyPath = "/account/keys/" + view.Key
	}
	if _, ok := rc.modelRow(view.Model); ok {
		view.ModelPath = (&pages.ModelRow{Name: view.Model}).Path()
	}
	if !rc.user.Admin {
		return
	}
	if u, ok := identity.FindUserByName(rc.options.State.View(), view.User); ok {
		view.UserPath = pathUser(u.ID)
	}
	if view.KeyPath == "" && view.Key != "" {
		view.KeyPath = allKeysPath(view.Key)
	}
	if o := rc.options.Overview; o != nil && o.Serves(view.Provider) {
		view.ProviderPath = pages.OneProviderPath(view.Provider)
	}
}

// receiptOf returns the receipt of a request, or nil. Clients may use an id again, so the times decide.
func (rc *requestContext) receiptOf(r *requestlog.Record) (*money.Receipt, error) {
	all, err := money.Receipts(rc.r.Context(), rc.options.State, state.Owner(r.Owner).Account(), r.ID)
	if errors.Is(err, state.ErrNotFound) {
		return nil, nil
	}
	// A request that was sent to two providers has two receipts. That of the slower one is not what the page shows.
	ended := r.Began.Add(r.Took)
	for i := range all {
		if c := &all[i]; c.Reason != money.ReasonOvertaken && c.Key == r.Key && !c.Ended.Before(r.Began) &&
			!c.Began.After(ended) {
			return c, nil
		}
	}
	return nil, err
}

// exportRequests sends all that matches as CSV or as JSON lines. It has one page of records in memory at a
// time, and no lock and no connection of the log while it waits for the client. The first page is read before
// the headers are sent, so that a log that cannot be read is an error page and not an empty file. A failure
// after that breaks off the reply.
func (rc *requestContext) exportRequests(media, file string, write func(io.Writer, []requestlog.Record, bool) error) {
	a := rc.asked()
	q, err := rc.queryOf(&a, exportPage)
	if err != nil {
		rc.show(http.StatusBadRequest, &pages.Failure{Title: "This search cannot be read", Message: err.Error() + "."})
		return
	}
	log, err := rc.searchedLog()
	if errors.Is(err, state.ErrNotFound) {
		rc.missing()
		return
	}
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	page, err := nextPage(rc.r.Context(), log, &q)
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	rc.beginFile(media, file)
	for first := true; err == nil && (first || len(page) > 0); first = false {
		if err = write(rc.w, page, first); err != nil {
			return // the client has left
		}
		if len(page) < exportPage {
			return
		}
		page, err = nextPage(rc.r.Context(), log, &q)
	}
	if err == nil {
		return // the last page was full
	}
	if rc.r.Context().Err() == nil {
		rc.options.Logger.Warn("an export of the log of requests broke off", "cause", err)
	}
	panic(http.ErrAbortHandler) // so that the file does not look complete
}

// nextPage returns the next records of q and moves q behind them.
func nextPage(ctx context.Context, log requestlog.Reader, q *requestlog.Query) ([]requestlog.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	var page []requestlog.Record
	err := log.Find(ctx, q, func(r *requestlog.Record) bool {
		page, q.Before = append(page, *r), r.At
		return true
	})
	return page, err
}

// exported is a record with its durations in milliseconds. Its fields are named as those of the API are, and
// the durations take the place of those of Record, which are in nanoseconds.
type exported struct {
	*requestlog.Record
	TookMs   float64 `json:"duration_ms"`
	FirstMs  float64 `json:"first_token_ms"`
	QueuedMs float64 `json:"queued_ms"`
}

// ms returns a time in milliseconds.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// writeLines writes records as JSON, one on a line.
func writeLines(w io.Writer, page []requestlog.Record, _ bool) error {
	lines := json.NewEncoder(w)
	for i := range page {
		r := &page[i]
		if err := lines.Encode(exported{r, ms(r.Took), ms(r.First), ms(r.Queued)}); err != nil {
			return err
		}
	}
	return nil
}

// csvColumns are those of the CSV.
var csvColumns = []string{"began", "id", "user", "key", "key_name", "model", "provider", "upstream_model", "api",
	"stream", "status", "code", "error", "reason", "input_tokens", "cached_tokens", "output_tokens",
	"reasoning_tokens", "images", "cost_usd", "attempts", "duration_ms", "first_token_ms", "queued_ms", "losses",
	"degraded", "trace", "group", "app"}

// csvWriter returns what writes records as CSV. Those of several gateways have the gateway in a further column.
func csvWriter(several bool) func(w io.Writer, page []requestlog.Record, first bool) error {
	length := func(d time.Duration) string { return strconv.FormatFloat(ms(d), 'f', -1, 64) }
	columns := csvColumns
	if several {
		columns = append(slices.Clip(csvColumns), "node")
	}
	return func(w io.Writer, page []requestlog.Record, first bool) error {
		out := newSpreadsheet(w)
		if first {
			out = newSpreadsheet(w, columns...)
		}
		for i := range page {
			r := &page[i]
			row := []string{r.Began.UTC().Format(time.RFC3339Nano), r.ID, r.User, r.Key, r.KeyName, r.Model, r.Provider,
				r.Upstream, r.Shape, strconv.FormatBool(r.Stream), strconv.Itoa(r.Status), r.Code, r.Error, r.Reason,
				number(r.Input), number(r.Cached), number(r.Output), number(r.Reasoning), number(r.Images),
				pages.Dollars(r.Cost), strconv.Itoa(r.Attempts), length(r.Took), length(r.First), length(r.Queued),
				r.Losses, r.Degraded, r.Trace, r.Group, r.App, r.Node}
			out.row(row[:len(columns)]...)
		}
		return out.end()
	}
}
