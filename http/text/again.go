package text

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tidwall/sjson"

	"stagedoor/actors/text"
	"stagedoor/http/accesslog"
	"stagedoor/providers/memory"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/responses"
)

// backgroundRequest describes the request of a background response to actors/text. It always streams
// from the upstream, so that watchers see progress and only the idle timeout limits it, and it is
// always translated, so that ids and statuses are the gateway's own.
func (rc *requestContext) backgroundRequest(id, previous string) (*text.Request, error) {
	body, err := sjson.SetBytes(bytes.Clone(rc.payload), "stream", true)
	if err != nil {
		return nil, err
	}
	o := rc.textRequest()
	o.Body, o.ReplyID, o.PreviousResponseID, o.Translate = body, id, previous, true
	o.Head.Stream, o.Mode = true, streamMode
	o.In.Header = rc.r.Header.Clone()
	rc.meter(o)
	return o, nil
}

// keptRequest is the record from which another process restarts a background response. It contains the
// id of the key and no secret, and the key's permissions are checked again.
type keptRequest struct {
	RequestID string          `json:"request_id"`
	Key       string          `json:"key"`
	From      string          `json:"from"` // the client's address
	Sandbox   string          `json:"sandbox,omitempty"`
	Body      json.RawMessage `json:"body"`
}

// keep returns the record for Again, or nil if the store does not outlive the process. own is the body
// without the history that was put before it, which the store has.
func (rc *requestContext) keep(own []byte) []byte {
	if !rc.handlers.Durable {
		return nil
	}
	b, err := json.Marshal(
		keptRequest{
			RequestID: accesslog.RequestID(rc.w),
			Key:       rc.key.ID,
			From:      rc.r.RemoteAddr,
			Sandbox:   rc.r.Header.Get(sandbox.Header),
			Body:      own,
		},
	)
	if err != nil {
		return nil // cannot happen, because own is valid JSON; the response would not be restarted
	}
	return b
}

// Again restarts the request of a background response in another process, under the current rules,
// models and keys. It implements background.RestoreRequest.
func (hs *Handlers) Again(ctx context.Context, id string, request []byte) (*text.Request, error) {
	var k keptRequest
	if err := json.Unmarshal(request, &k); err != nil {
		return nil, fmt.Errorf("the request kept of response %s: %w", id, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/v1/responses", nil)
	if err != nil {
		return nil, err
	}
	r.RemoteAddr = k.From
	if k.Sandbox != "" {
		r.Header.Set(sandbox.Header, k.Sandbox)
	}
	rc := &requestContext{
		handlers: hs,
		shape:    responses.Shape,
		w:        discard{"X-Request-Id": {k.RequestID}},
		r:        r,
		in:       shapes.Params{Path: r.URL.Path, Header: r.Header},
		payload:  k.Body,
	}
	rc.keyGeneration = hs.Auth.KeyGeneration()
	if rc.key, err = hs.Auth.ByID(k.Key); err != nil {
		return nil, err
	}
	if err := hs.Auth.Permit(&rc.key, r, rc.shape.Scope, ""); err != nil {
		return nil, err
	}
	if err := rc.route(); err != nil {
		return nil, err
	}
	previous, err := rc.continueFrom()
	if err != nil {
		return nil, err
	}
	claim := memory.NewClaim(hs.Env.Memory, string(rc.owner()))
	defer claim.End()
	if err := rc.readConversation(&claim); err != nil {
		return nil, err
	}
	return rc.backgroundRequest(id, previous)
}

// discard is the ResponseWriter of a request that has no client any more.
type discard http.Header

// Header implements http.ResponseWriter.
func (d discard) Header() http.Header { return http.Header(d) }

// Write implements http.ResponseWriter.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (discard) WriteHeader(int) {}
