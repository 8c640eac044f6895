// Package dryrun serves requests to models that are not sent: those with the header X-Dry-Run: 1. The handlers of
// text, embeddings and pictures run all their checks and begin the request as any other, but with an engine.DryRun.
// The reply says what a provider would have received. Routes that cannot do this refuse the header, so that a client
// that expects a dry run is never charged.
//
// # Usage
//
// A handler calls Begin before it begins the request, passes the engine.DryRun on, and calls Write in place of the
// reply. Refuse wraps the routes without a dry run.
//
// # What is counted
//
// The bodies of the calls are kept until they are written, so they count as memory of the owner. A dry run counts only
// against the request rate of its key, because nothing is sent, held or charged.
package dryrun

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"stagedoor/actors/engine"
	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/memory"
	"stagedoor/providers/upstream"
)

// Header asks for a dry run by the value 1.
const Header = "X-Dry-Run"

// Wanted reports whether the client of r asks for a dry run. Values other than 1, true, 0 and false are an error.
func Wanted(r *http.Request) (bool, error) {
	values := r.Header[Header]
	if len(values) == 0 {
		return false, nil
	}
	switch strings.ToLower(values[0]) {
	case "1", "true":
		return true, nil
	case "0", "false":
		return false, nil
	}
	return false, dialogue.Invalid(Header, "must be 1 or 0")
}

// Begin returns a DryRun that keeps the calls of r, or nil if the client of r does not ask for a dry run. The bodies of
// the calls count as memory of owner until the caller calls DryRun.End.
func Begin(r *http.Request, pool memory.Pool, owner string) (*engine.DryRun, error) {
	wanted, err := Wanted(r)
	if !wanted {
		return nil, err
	}
	return New(pool, owner), nil
}

// New returns a DryRun as Begin does, for a request that is known to be a dry run. The caller calls End.
func New(pool memory.Pool, owner string) *engine.DryRun {
	d := new(engine.DryRun)
	d.Bound(pool, owner)
	return d
}

// Unsupported returns an error if r asks for a dry run. It is for routes that have none.
func Unsupported(r *http.Request) error {
	wanted, err := Wanted(r)
	if wanted {
		err = dialogue.BadRequest("dry_run_unsupported",
			"this route has no dry run: leave out the header "+Header+" to have the request done").About(Header)
	}
	return err
}

// Refuse returns the handler of a route that has no dry run. It refuses requests that ask for one.
func Refuse(dialect func(path string) envelope.Dialect, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := Unsupported(r); err != nil {
			envelope.Write(w, dialect(r.URL.Path), err)
			return
		}
		next(w, r)
	}
}

// Write sends the result of a dry run that has ended without an error. model is the name by which the client called the
// model.
func Write(w http.ResponseWriter, model string, d *engine.DryRun) {
	calls, _ := d.Calls() // an error is the request's, too
	var j jsonw.Writer
	j.Object().Key("object").String("dry_run").Key("model").String(model)
	j.Key("provider").String(d.Target.Provider.Name).Key("target").String(d.Target.Model)
	j.Key("simulated").Bool(d.Simulated)
	j.Key("shape").String(string(d.WrittenIn)).Key("passthrough").Bool(d.Untouched).Key("losses").Array()
	for _, name := range d.Losses {
		j.String(name)
	}
	j.End().Key("degraded")
	if d.Degraded == "" {
		j.Null()
	} else {
		j.String(d.Degraded)
	}
	j.Key("estimated_hold").Int(d.Hold).Key("requests").Array()
	for i := range calls {
		writeCall(&j, &calls[i])
	}
	j.End().End()
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(j.Buf))}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(j.Buf) // a client that has left needs no reply
}

// writeCall writes one call. A body of JSON is written byte for byte, and any other body in base64.
func writeCall(j *jsonw.Writer, c *upstream.Sent) {
	j.Object().Key("method").String(c.Method).Key("path").String(c.Path).Key("query").String(c.Query)
	j.Key("headers").Object()
	for _, name := range slices.Sorted(maps.Keys(c.Header)) {
		j.Key(strings.ToLower(name)).String(strings.Join(c.Header[name], ", "))
	}
	j.End()
	if json.Valid(c.Body) {
		j.Key("body").Raw(c.Body)
	} else {
		j.Key("body_base64").String(base64.StdEncoding.EncodeToString(c.Body))
	}
	j.Key("times").Int(int64(c.Times)).End()
}
