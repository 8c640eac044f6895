package live

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/tidwall/gjson"

	"stagedoor/http/accesslog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/state"
	"stagedoor/state/work"
)

// MaxIDs limits the jobs that one subscription may name.
const MaxIDs = 1000

// Jobs serves GET /v1/videos/live, a WebSocket for watching jobs. The client sends
//
//	{"type":"subscribe","ids":["video_...",...]|"all","after":n}
//	{"type":"unsubscribe"}
//
// A subscription replaces the one before. A client that reconnects sends the revision of its last message
// as after and gets only later changes. The gateway sends
//
//	{"type":"snapshot"|"job"|"deleted","revision":n,"job":{...}}
//	{"type":"ready","revision":n}     the snapshot is complete
//	{"type":"error","error":{...}}    about a message of the client; the socket stays open
func (hs *Handlers) Jobs(w http.ResponseWriter, r *http.Request) {
	v, err := hs.identify(w, r)
	if err != nil {
		hs.refuse(w, err)
		return
	}
	accesslog.Note(w, slog.String("key", v.key))
	hs.Serve(w, r, Watcher{Owner: v.owner, Still: v.still}, &jobs{state: hs.options.State, owner: v.owner})
}

// jobs implements Source for a socket on which jobs are watched.
type jobs struct {
	state *state.State
	owner state.Owner
	feed  *feed // nil while there is no subscription
	// errs are sent first. They are about the last message of the client only, so they
	// are few.
	errs []*dialogue.Error
}

// Receive implements Source.
func (j *jobs) Receive(message []byte) {
	j.errs = nil
	if err := j.handle(message); err != nil {
		j.errs = append(j.errs, err)
	}
}

// handle handles a message of the client.
func (j *jobs) handle(message []byte) *dialogue.Error {
	if !fields.ValidLenient(message) {
		return dialogue.BadRequest("invalid_json", "a message must be one JSON object in a text frame")
	}
	m := gjson.ParseBytes(message)
	switch kind := m.Get("type"); kind.Str {
	case "subscribe":
		return j.subscribe(m.Get("ids"), m.Get("after"))
	case "unsubscribe":
		j.feed = nil
		return nil
	}
	return dialogue.Invalid("type", "must be subscribe or unsubscribe")
}

// subscribe replaces the subscription. ids chooses jobs, and after is the last revision that the client has seen.
func (j *jobs) subscribe(ids, after gjson.Result) *dialogue.Error {
	if after.Exists() && after.Type != gjson.Null &&
		(after.Type != gjson.Number || after.Num < 0 || after.Num != float64(after.Int())) {
		return dialogue.Invalid("after", "must be the revision of a message of this gateway")
	}
	only, err := selection(ids)
	if err != nil {
		return err
	}
	// A revision is meaningful only for a subscription to the same jobs, which is up to
	// the client.
	j.feed = newFeed(j.state, j.owner, only, after.Int())
	j.reportMissing(only)
	return nil
}

// selection returns the ids of the jobs to watch, or nil for all.
func selection(ids gjson.Result) ([]string, *dialogue.Error) {
	if ids.Type == gjson.String && ids.Str == "all" {
		return nil, nil
	}
	if !ids.IsArray() {
		return nil, dialogue.Invalid("ids", `must be "all" or an array of ids`)
	}
	only := []string{}
	for _, id := range ids.Array() {
		if id.Type != gjson.String {
			return nil, dialogue.Invalid("ids", "must hold strings")
		}
		only = append(only, id.Str)
	}
	if len(only) == 0 || len(only) > MaxIDs {
		return nil, dialogue.Invalid("ids", fmt.Sprintf("must hold 1 to %d ids", MaxIDs))
	}
	slices.Sort(only)
	return slices.Compact(only), nil
}

// reportMissing adds an error for each job that does not exist, belongs to another owner or was deleted
// before the client knew it.
func (j *jobs) reportMissing(only []string) {
	v := j.state.View()
	for _, id := range only {
		job, ok := work.FindAnyVideo(v, id)
		if !ok || job.Owner != j.owner || !job.Deleted.IsZero() && !j.feed.resumed() {
			j.errs = append(j.errs, notFound(id))
		}
	}
}

// Next implements Source.
func (j *jobs) Next(send func([]byte) error) (<-chan struct{}, error) {
	b := borrow()
	defer b.giveBack()
	for _, e := range j.errs {
		b.bytes = append(e.AppendJSON(append(b.bytes[:0], `{"type":"error","error":`...)), '}')
		if err := send(b.bytes); err != nil {
			return nil, err
		}
	}
	j.errs = nil
	if j.feed == nil {
		return nil, nil
	}
	return j.feed.next(func(n update) error {
		b.bytes = n.appendMessage(b.bytes[:0])
		return send(b.bytes)
	})
}
