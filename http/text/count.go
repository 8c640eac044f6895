package text

import (
	"errors"
	"net/http"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
	"stagedoor/providers/tokens"
)

// count answers with the number of tokens that a provider of the shape reports. If none does, it
// answers with an estimate by the gateway's own vocabulary and a header that says so. The body
// is not used again, because it may still be on its way to a provider that did not answer.
func (v *visit) count() {
	body, estimated, err := v.counted()
	if err != nil {
		v.refuse(err)
		return
	}
	v.note(nil)
	if estimated {
		v.w.Header()["X-Stagedoor-Estimate"] = []string{"tokens"}
	}
	writeJSON(v.w, http.StatusOK, body)
}

func (v *visit) counted() (body []byte, estimated bool, err error) {
	// It counts as a request, but uses no tokens.
	defer func() { v.pass.Release(0) }()
	if err := v.read(); err != nil {
		return nil, false, err
	}
	if v.payload, err = v.shape.Counter.CountedRequest(v.payload); err != nil {
		return nil, false, err
	}
	if err := v.route(); err != nil {
		return nil, false, err
	}
	if body := v.askForCount(); body != nil {
		return body, false, nil
	}
	claim := memory.NewClaim(v.doors.Env.Memory, string(v.owner()))
	defer claim.End()
	req, err := v.decodeToCount(&claim)
	if err != nil {
		return nil, false, err
	}
	return v.shape.Counter.CountReply(tokens.CountRequest(req)), true, nil
}

// askForCount returns a provider's reply with its own count, or nil if no provider counts.
func (v *visit) askForCount() []byte {
	q := v.textRequest()
	reply := v.doors.Requests.Inquire(v.r.Context(), q, func(t dialogue.Target) (shapes.Call, error) {
		call, err := v.shape.Patch(q.Body, q.In, q.Head, t, &dialogue.Report{}, v.doors.Env)
		if err != nil {
			return call, err
		}
		call, ok, err := v.shape.Counter.CountCall(call)
		if err == nil && !ok {
			err = errNotCounted
		}
		return call, err
	})
	if reply == nil || !v.shape.Counter.IsCount(reply) {
		return nil
	}
	return reply
}

// errNotCounted ends the inquiry before anything is sent: upstreams of the shape do not count.
var errNotCounted = errors.New("upstreams of this shape count no tokens")

// decodeToCount reads the request, with the history it continues.
func (v *visit) decodeToCount(claim *memory.Claim) (*dialogue.Request, error) {
	if v.shape.Traits.StoresReplies {
		if err := v.resolve(); err != nil {
			return nil, err
		}
		if id := v.head.PreviousResponseID; id != "" {
			if err := v.expand(id); err != nil {
				return nil, err
			}
		}
	}
	if err := claim.Grow(memory.OfTranslation(v.payload)); err != nil {
		return nil, dialogue.NoMemory(err)
	}
	return v.shape.Decode(v.payload, v.in, v.doors.Env)
}
