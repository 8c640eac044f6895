package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"stagedoor/actors/recording"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// Limits of a recording: its duration, and its size in bytes.
const (
	MaxRecordingTime = 24 * time.Hour
	MinRecordingSize = 64 << 10
	MaxRecordingSize = 1 << 30
)

// Recordings serves recordings of a key's exchanges. A recording lasts until its time is over, its
// size is reached, it is stopped, or its client leaves.
type Recordings struct {
	Recorder *recording.Recorder
	// Key returns an error unless a usable key has this id.
	Key func(id string) error
}

func (rs *Recordings) routes(mux *http.ServeMux, s *state.State) {
	mux.HandleFunc("POST /recordings/{key}", func(w http.ResponseWriter, r *http.Request) { rs.record(w, r, s) })
	mux.HandleFunc("DELETE /recordings/{key}", func(w http.ResponseWriter, r *http.Request) {
		stopped := rs.Recorder.Stop(r.PathValue("key"))
		var err error
		if stopped {
			err = auditRecording(r, s, "recording.stop", nil)
		}
		writeReply(w, map[string]bool{"stopped": stopped}, err)
	})
}

// auditRecording writes to the audit log that the recording of a key was started or stopped.
func auditRecording(r *http.Request, s *state.State, action string, fields state.Fields) error {
	id := r.PathValue("key")
	k, _ := identity.FindKey(s.View(), id) // keys of the configuration file have no record
	return s.RecordAudit(r.Context(), state.AuditEvent{Action: action,
		Target: state.Target{Kind: "key", ID: id, Name: k.Name}, After: fields})
}

// record handles POST /recordings/{key} and streams the recording.
func (rs *Recordings) record(w http.ResponseWriter, r *http.Request, s *state.State) {
	key := r.PathValue("key")
	d, err := time.ParseDuration(r.URL.Query().Get("for"))
	if err != nil || d <= 0 || d > MaxRecordingTime {
		writeReply(w, nil, dialogue.Invalid("for", "must be a time of at most "+MaxRecordingTime.String()))
		return
	}
	size, err := strconv.ParseInt(r.URL.Query().Get("bytes"), 10, 64)
	if err != nil || size < MinRecordingSize || size > MaxRecordingSize {
		rule := fmt.Sprintf("must be from %d to %d", MinRecordingSize, MaxRecordingSize)
		writeReply(w, nil, dialogue.Invalid("bytes", rule))
		return
	}
	if rs.Key(key) != nil {
		writeReply(w, nil, dialogue.NotFound("key", "key with this id that can be used"))
		return
	}
	rec, err := rs.Recorder.Start(key)
	if err != nil {
		writeReply(w, nil, &operatorError{http.StatusConflict, err.Error(), err})
		return
	}
	if err := auditRecording(r, s, "recording.start", state.Fields{"for": d.String(), "bytes": size}); err != nil {
		rs.Recorder.Stop(key)
		writeReply(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	// After an error the client sees that the last line is missing.
	_ = rec.Write(r.Context(), w, http.NewResponseController(w).Flush, d, size)
}

// Record records the exchanges of a key and copies the recording to w, until d has passed, limit bytes are written or
// ctx ends. A recording that was cut off is an error.
func (c *Client) Record(ctx context.Context, key string, d time.Duration, limit int64, w io.Writer) error {
	unlimited := *c
	unlimited.http.Timeout = 0
	path := "/recordings/" + url.PathEscape(key)
	stop := context.AfterFunc(ctx, func() {
		_ = c.do(context.WithoutCancel(ctx), http.MethodDelete, path, nil, nil) // else the recording ends with its time
	})
	defer stop()
	q := url.Values{"for": {d.String()}, "bytes": {strconv.FormatInt(limit, 10)}}
	return unlimited.stream(context.WithoutCancel(ctx), path+"?"+q.Encode(), w)
}

// stream sends a POST and copies the body of the reply to w.
func (c *Client) stream(ctx context.Context, path string, w io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://stagedoor"+path, nil)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= http.StatusBadRequest {
		return readError(res)
	}
	if _, err := io.Copy(w, res.Body); err != nil {
		return errors.Join(errors.New("the recording was cut off"), err)
	}
	return nil
}
