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
)

// MaxIDs is how many jobs one subscription may name.
const MaxIDs = 1000

// Jobs watches jobs over a WebSocket: GET /v1/videos/live. The client says
//
//	{"type":"subscribe","ids":["video_...",...]|"all","after":n}
//	{"type":"unsubscribe"}
//
// A subscription takes the place of the one before. after, the revision of the
// last message before a connection was lost, leaves out what the client knows.
// The gateway says
//
//	{"type":"snapshot"|"job"|"deleted","revision":n,"job":{...}}
//	{"type":"ready","revision":n}     the snapshot is complete
//	{"type":"error","error":{...}}    of what the client said; the socket stays
func (hs *Handlers) Jobs(w http.ResponseWriter, r *http.Request) {
	v, err := hs.identify(w, r)
	if err != nil {
		hs.refuse(w, err)
		return
	}
	accesslog.Note(w, slog.String("key", v.key))
	hs.Serve(w, r, Watcher{Owner: v.owner, Still: v.still}, &jobs{state: hs.options.State, owner: v.owner})
}

// jobs is the Source of a socket for jobs.
type jobs struct {
	state *state.State
	owner state.Owner
	feed  *feed // nil: not subscribed
	// errs are said before anything else. What the client said last makes them,
	// so they are few.
	errs []*dialogue.Error
}

// Hear implements Source.
func (j *jobs) Hear(message []byte) {
	j.errs = nil
	if err := j.obey(message); err != nil {
		j.errs = append(j.errs, err)
	}
}

func (j *jobs) obey(message []byte) *dialogue.Error {
	if !fields.ValidLenient(message) {
		return &dialogue.Error{Type: dialogue.TypeInvalidRequest, Code: "invalid_json", Message: "a message must be one JSON object in a text frame"}
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

func (j *jobs) subscribe(ids, after gjson.Result) *dialogue.Error {
	if after.Exists() && after.Type != gjson.Null && (after.Type != gjson.Number || after.Num < 0 || after.Num != float64(after.Int())) {
		return dialogue.Invalid("after", "must be the revision of a message of this gateway")
	}
	only, err := selection(ids)
	if err != nil {
		return err
	}
	// A revision of jobs one did not watch says nothing of those one does now; the
	// client knows which it means.
	j.feed = newFeed(j.state, j.owner, only, after.Int())
	j.complain(only)
	return nil
}

// selection reads which jobs are meant; nil: all.
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

// complain leaves an error for each job that is not there. Somebody else's is not
// either, nor is one that was deleted before the client knew of it.
func (j *jobs) complain(only []string) {
	v := j.state.View()
	for _, id := range only {
		job, ok := v.AnyVideo(id)
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
	return j.feed.next(func(n news) error {
		b.bytes = n.appendMessage(b.bytes[:0])
		return send(b.bytes)
	})
}
