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
	"stagedoor/providers/sandbox"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/responses"
)

// backgroundRequest describes the request of a background response. It is always streamed
// toward the upstream, so that watchers see it grow and no clock but the idle
// one bounds it, and always in the gateway's own name.
func (v *visit) backgroundRequest(id, previous string) (*text.Request, error) {
	body, err := sjson.SetBytes(bytes.Clone(v.payload), "stream", true)
	if err != nil {
		return nil, err
	}
	o := v.textRequest()
	o.Body, o.ReplyID, o.PreviousResponseID, o.Translate = body, id, previous, true
	o.Head.Stream, o.Mode = true, streamMode
	o.In.Header = v.r.Header.Clone()
	v.meter(o)
	return o, nil
}

// kept is what a background response is begun again from. Credentials are not in
// it: the key is named by its id, and asked again whether it may.
type kept struct {
	RequestID string          `json:"request_id"`
	Key       string          `json:"key"`
	From      string          `json:"from"` // the client's address
	Sandbox   string          `json:"sandbox,omitempty"`
	Body      json.RawMessage `json:"body"`
}

// keep is the request for Again; own is the body without the history that was
// put before it, which is in the store.
func (v *visit) keep(own []byte) []byte {
	if !v.doors.Durable {
		return nil
	}
	b, err := json.Marshal(kept{RequestID: accesslog.RequestID(v.w), Key: v.key.ID, From: v.r.RemoteAddr, Sandbox: v.r.Header.Get(sandbox.Header), Body: own})
	if err != nil {
		return nil // own was checked to be JSON; without a request it is not begun again
	}
	return b
}

// Again makes the request of a background response once more, in another process:
// by the rules, models and keys of now. It implements background.Again.
func (d *Doors) Again(ctx context.Context, id string, request []byte) (*text.Request, error) {
	var k kept
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
	v := &visit{doors: d, shape: responses.Shape, w: nobody{"X-Request-Id": {k.RequestID}}, r: r, in: shapes.Params{Path: r.URL.Path, Header: r.Header}, payload: k.Body}
	v.era = d.Auth.Era()
	if v.key, err = d.Auth.ByID(k.Key); err != nil {
		return nil, err
	}
	if err := d.Auth.Permit(&v.key, r, v.shape.Scope, ""); err != nil {
		return nil, err
	}
	if err := v.route(); err != nil {
		return nil, err
	}
	previous, err := v.continueFrom()
	if err != nil {
		return nil, err
	}
	return v.backgroundRequest(id, previous)
}

// nobody stands for the client of a request that was made long ago.
type nobody http.Header

// Header implements http.ResponseWriter.
func (n nobody) Header() http.Header { return http.Header(n) }

// Write implements http.ResponseWriter.
func (nobody) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (nobody) WriteHeader(int) {}
