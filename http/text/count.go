package text

import (
	"errors"
	"net/http"

	"stagedoor/actors/text"
	"stagedoor/http/dryrun"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
	"stagedoor/providers/tokens"
)

// count answers with the number of tokens that a provider of the shape reports. If none does, it
// answers with an estimate by the gateway's own vocabulary and a header that says so. The body
// is not used again, because it may still be on its way to a provider that did not answer.
func (rc *requestContext) count() {
	body, estimated, err := rc.counted()
	if err != nil {
		rc.refuse(err)
		return
	}
	rc.note(nil)
	if estimated {
		rc.w.Header()["X-Stagedoor-Estimate"] = []string{"tokens"}
	}
	writeJSON(rc.w, http.StatusOK, body)
}

// counted returns the reply of a count. The provider is asked if it can count, otherwise the number is an estimate.
func (rc *requestContext) counted() (body []byte, estimated bool, err error) {
	// It counts as a request, but uses no tokens.
	defer func() { rc.pass.Release(0) }()
	if err := rc.read(); err != nil {
		return nil, false, err
	}
	if err := dryrun.Unsupported(rc.r); err != nil {
		return nil, false, err
	}
	if rc.payload, err = rc.shape.Counter.CountedRequest(rc.payload); err != nil {
		return nil, false, err
	}
	if err := rc.route(); err != nil {
		return nil, false, err
	}
	if body := rc.askForCount(); body != nil {
		return body, false, nil
	}
	rc.claim = memory.NewClaim(rc.handlers.Env.Memory, string(rc.owner()))
	defer rc.claim.End()
	req, err := rc.decodeToCount()
	if err != nil {
		return nil, false, err
	}
	text.EditContext(req)
	return rc.shape.Counter.CountReply(tokens.CountRequest(req)), true, nil
}

// askForCount returns a provider's reply with its own count, or nil if no provider counts.
func (rc *requestContext) askForCount() []byte {
	q := rc.textRequest()
	reply := rc.handlers.Requests.Inquire(rc.r.Context(), q, func(t dialogue.Target) (shapes.Call, error) {
		call, err := rc.shape.Patch(q.Body, q.In, q.Head, t, &dialogue.Report{},
			rc.handlers.Env.ForOwner(string(rc.owner())))
		if err != nil {
			return call, err
		}
		call, ok, err := rc.shape.Counter.CountCall(call)
		if err == nil && !ok {
			err = errNotCounted
		}
		return call, err
	})
	if reply == nil || !rc.shape.Counter.IsCount(reply) {
		return nil
	}
	return reply
}

// errNotCounted ends the inquiry before anything is sent: upstreams of the shape do not count.
var errNotCounted = errors.New("upstreams of this shape count no tokens")

// decodeToCount reads the request, with the history it continues.
func (rc *requestContext) decodeToCount() (*dialogue.Request, error) {
	if rc.shape.Traits.StoresReplies {
		if err := rc.resolve(); err != nil {
			return nil, err
		}
		if id := rc.head.PreviousResponseID; id != "" {
			if err := rc.expand(id); err != nil {
				return nil, err
			}
		}
		if err := rc.readConversation(&rc.claim); err != nil {
			return nil, err
		}
	}
	if err := rc.claim.Grow(memory.OfTranslation(rc.payload)); err != nil {
		return nil, dialogue.NoMemory(err)
	}
	return rc.shape.Decode(rc.payload, rc.in, rc.handlers.Env.ForOwner(string(rc.owner())))
}
