package portal

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"stagedoor/actors/recording"
	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/recordings"
	"stagedoor/state/requestlog"
)

// Recordings has what recorded keys sent and were answered. Its implementation is in actors/recording.
type Recordings interface {
	// Find returns the exchange of a request that a key sent between two times, from the gateway of a name if that is
	// not "", or state.ErrNotFound, or ErrSilent.
	Find(ctx context.Context, node, key, id string, from, to time.Time) (*recording.Exchange, error)
	Limits() recordings.Limits
}

// ErrSilent says that the gateway that has served a request does not answer.
var ErrSilent = errors.New("the gateway that keeps the recording does not answer")

// recordingTimes are the times that the form of a recording offers.
var recordingTimes = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": tokens.MaxRecording}

// recordingKept returns a text that says how long the exchanges of recorded keys are kept, or "" if no key can be
// recorded.
func (p *Portal) recordingKept() string {
	if p.options.Recordings == nil {
		return ""
	}
	keep := p.options.Recordings.Limits().Keep
	if keep == 0 {
		return ""
	}
	return pages.Days(keep)
}

// recordAnyKey switches the recording of a key of any user on or off. The change of the key is in the audit log.
func (rc *requestContext) recordAnyKey(id string, on bool) error {
	until := time.Time{}
	if on {
		length, known := recordingTimes[rc.form.Get("for")]
		if !known || rc.recordingKept() == "" {
			return &tokens.FieldError{Field: "for", Rule: "must be one of the times that the form offers"}
		}
		until = rc.options.Now().Add(length).Truncate(time.Second)
	}
	_, err := rc.options.Registry.UpdateKey(rc.r.Context(), id, tokens.KeyChange{RecordedUntil: &until})
	return err
}

// clockSlack is the difference between the times at which the log of requests and a recording note that a request
// began.
const clockSlack = time.Second

// uploadTime bounds the time between a request and the job that it makes, whose beginning the log of requests has.
const uploadTime = 30 * time.Minute

// recorded returns the exchange of a logged request, or state.ErrNotFound. Users read their own exchanges as they have
// sent and got them. Administrators read those of all users, with what providers got and answered, which the audit log
// notes unless the exchange is their own. Leads of a group read none.
func (rc *requestContext) recorded(r *requestlog.Record) (*recording.Exchange, error) {
	own := r.Owner == string(state.OwnerOf("", rc.user.Username))
	if rc.options.Recordings == nil || r.Key == "" || !own && !rc.user.Admin {
		return nil, state.ErrNotFound
	}
	from := r.Began.Add(-clockSlack)
	if strings.HasPrefix(r.ID, "video_") {
		from = from.Add(-uploadTime)
	}
	x, err := rc.options.Recordings.Find(rc.r.Context(), r.Node, r.Key, r.ID, from, r.Began.Add(r.Took+clockSlack))
	if err != nil {
		return nil, err
	}
	if !rc.user.Admin {
		x.Attempts = nil // the replies of providers name accounts and limits of the operator
	}
	if own {
		return x, nil
	}
	return x, rc.options.State.RecordAudit(rc.r.Context(), state.AuditEvent{Action: "recording.read",
		Target: state.Target{Kind: "key", ID: r.Key, Name: r.KeyName},
		After:  state.Fields{"request": r.ID, "user": r.User}})
}

// addRecording adds to the page of a request what was sent and answered. If that is not available, it adds the reason:
// the gateway that has it does not answer, or it cannot be read. If the request was not recorded, an administrator gets
// the address at which the recording of its key is switched on.
func (rc *requestContext) addRecording(view *pages.OneRequest) {
	view.FromPage = pageOfKey(view.Key)
	k, err := identity.FindKey(rc.options.State.View(), view.Key)
	isKey := err == nil
	x, err := rc.recorded(&view.Record)
	switch {
	case err == nil:
		view.Exchange = pages.NewRecorded(x, said(x), view.Path()+"/recording.json")
	case errors.Is(err, ErrSilent):
		if isKey && k.RecordedUntil != nil && view.Began.Before(*k.RecordedUntil) {
			view.RecordedAt = view.Node
		}
	case !errors.Is(err, state.ErrNotFound):
		rc.options.Logger.Error("read a recording", "request_id", view.ID, "cause", err)
		view.RecordingBroken = true
	case rc.user.Admin && isKey && k.Revoked.IsZero() && rc.recordingKept() != "":
		view.RecordPath = allKeysPath(k.ID)
	}
}

// said returns the content of a streamed reply.
func said(x *recording.Exchange) string {
	for _, s := range registry.All {
		if s.Name == x.Client.Shape {
			return x.Text(s)
		}
	}
	return ""
}

// exportRecording sends all that is kept of a request as JSON.
func (rc *requestContext) exportRecording() {
	r, err := rc.loggedRecord()
	var x *recording.Exchange
	if err == nil {
		x, err = rc.recorded(&r)
	}
	var text []byte
	if err == nil {
		text, err = json.MarshalIndent(x, "", "  ")
	}
	switch {
	case errors.Is(err, state.ErrNotFound):
		rc.missing()
	case err != nil:
		rc.busy(rc.w, rc.r, err)
	default:
		rc.beginFile("application/json", "request-"+strconv.FormatInt(r.At, 10)+".json")
		_, _ = rc.w.Write(text) // the client has left
	}
}
