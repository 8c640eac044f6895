package text

import (
	"net/http"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/gemini"
	"stagedoor/providers/shapes/messages"
	"stagedoor/providers/shapes/responses"
	"stagedoor/providers/tokens"
)

// counter is how one shape counts the tokens of a request that is not made.
type counter struct {
	// request is the generation request in the body; nil: the body itself.
	request func(body []byte) ([]byte, error)
	// call turns the call of a generation request into one that counts. nil:
	// providers of the shape are not asked.
	call func(shapes.Call) (shapes.Call, error)
	// field is where a provider's reply has the number.
	field string
	reply func(n int64) []byte
}

var (
	messagesCounter = counter{
		// The shape knows by the path that it counts.
		call:  func(c shapes.Call) (shapes.Call, error) { return c, nil },
		field: "input_tokens", reply: messages.InputTokensBody,
	}
	geminiCounter    = counter{request: gemini.CountTokensRequest, call: gemini.CountTokensCall, field: "totalTokens", reply: gemini.CountTokensReply}
	responsesCounter = counter{reply: responses.InputTokensBody}
)

// CountTokens is POST /v1/messages/count_tokens.
func (d *Doors) CountTokens(w http.ResponseWriter, r *http.Request) {
	v := visit{doors: d, shape: d.Shapes[dialogue.Messages], w: w, r: r, in: shapes.Inbound{Path: r.URL.Path, Header: r.Header}}
	v.count(messagesCounter)
}

// InputTokens is POST /v1/responses/input_tokens.
func (d *Doors) InputTokens(w http.ResponseWriter, r *http.Request) {
	v := visit{doors: d, shape: d.Shapes[dialogue.Responses], w: w, r: r, in: shapes.Inbound{Path: r.URL.Path, Header: r.Header}}
	v.count(responsesCounter)
}

// count answers with the number a provider of the shape tells, else with an
// estimate by the gateway's own vocabulary, and a header that says so. The body
// is not used again: a provider that did not answer may still be sent it.
func (v *visit) count(c counter) {
	body, estimated, err := v.counted(c)
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

func (v *visit) counted(c counter) (body []byte, estimated bool, err error) {
	// It counts as a request, but uses no tokens.
	defer func() { v.pass.Release(0) }()
	if err := v.read(); err != nil {
		return nil, false, err
	}
	if c.request != nil {
		if v.payload, err = c.request(v.payload); err != nil {
			return nil, false, err
		}
	}
	if err := v.route(); err != nil {
		return nil, false, err
	}
	if body := v.asked(c); body != nil {
		return body, false, nil
	}
	claim := memory.NewClaim(v.doors.Env.Memory, string(v.owner()))
	defer claim.End()
	req, err := v.decodeToCount(&claim)
	if err != nil {
		return nil, false, err
	}
	return c.reply(tokens.CountRequest(req)), true, nil
}

// asked is a provider's own count, nil if there is none to be had.
func (v *visit) asked(c counter) []byte {
	if c.call == nil {
		return nil
	}
	order := v.order()
	reply := v.doors.Translator.Inquire(v.r.Context(), order, func(t dialogue.Target) (shapes.Call, error) {
		call, err := v.shape.Patch(order.Body, order.In, order.Head, t, &dialogue.Report{}, v.doors.Env)
		if err != nil {
			return call, err
		}
		return c.call(call)
	})
	if reply == nil || gjson.GetBytes(reply, c.field).Type != gjson.Number {
		return nil
	}
	return reply
}

// decodeToCount reads the request, with the history it continues.
func (v *visit) decodeToCount(claim *memory.Claim) (*dialogue.Request, error) {
	if v.shape.Name() == dialogue.Responses {
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
