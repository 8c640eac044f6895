// Package toy is a shape that no vendor has. The test beside it builds the gateway with it, to
// show that a shape needs a folder and one line in shapes/registry.
//
// A request is {"model","say","stream","most"}. A reply is {"model","said","read","wrote"}. A
// stream is one data event {"piece"} for each piece of text, and then {"read","wrote"}. An error
// is {"fault","code"}. There are no tools, pictures or schemas.
package toy

import (
	"encoding/json"
	"net/http"
	"os"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// Name is the name of the shape.
const Name dialogue.Shape = "toy"

// Shape is the toy shape.
var Shape = &shapes.Shape{
	Descriptor: descriptor, Inbound: inbound{}, Outbound: outbound{}, Passthrough: passthrough{}, Counter: counter{},
}

var descriptor = shapes.Descriptor{
	Name:      Name,
	Scope:     os.Getenv("TOY_SCOPE"), // a test leaves it out
	KeyHeader: "X-Toy-Key",
	Routes: []shapes.Route{
		{Pattern: "POST /v1/toy", Task: shapes.Generate},
		{Pattern: "POST /v1/toy/count", Task: shapes.Count},
	},
	ErrorPaths: []string{"/v1/toy"},
	Members:    fields.NewNames("model", "say", "stream", "most"),
	Answer:     shapes.AnswerMembers{Text: []string{"said", "piece"}},
	Telemetry: shapes.Telemetry{
		Operation: "toy_operation", Vendor: "toyworks", ReplyModel: []string{"model"},
	},
	Defaults: dialogue.Capabilities{Sampling: true},
	Models: &shapes.ModelList{
		Path: "/v1/toymodels",
		Page: func(models []shapes.Model, _ bool) []byte {
			var w jsonw.Writer
			w.Object().Key("toys").Array()
			for _, m := range models {
				w.String(m.ID)
			}
			return w.End().End().Buf
		},
		One: func(m shapes.Model) []byte {
			var w jsonw.Writer
			return w.Object().Key("toy").String(m.ID).End().Buf
		},
	},
	Probe:       shapes.Probe{Path: "/models", Authorize: outbound{}.Authorize},
	SandboxPath: "/toy",
}

// request is the body of a request.
type request struct {
	Model  string `json:"model"`
	Say    string `json:"say"`
	Stream bool   `json:"stream"`
	Most   *int64 `json:"most,omitempty"`
}

// reply is a whole reply and, without Said and Model, the end of a stream.
type reply struct {
	Model string `json:"model,omitempty"`
	Said  string `json:"said,omitempty"`
	Piece string `json:"piece,omitempty"`
	Read  int64  `json:"read,omitempty"`
	Wrote int64  `json:"wrote,omitempty"`
	Fault string `json:"fault,omitempty"`
}

func readRequest(body []byte) (r request, err error) {
	switch {
	case json.Unmarshal(body, &r) != nil:
		return r, dialogue.Invalid("body", "must be a toy request")
	case r.Model == "":
		return r, dialogue.Missing("model")
	case r.Say == "":
		return r, dialogue.Missing("say")
	}
	return r, nil
}

func written(v any) []byte {
	b, _ := json.Marshal(v) // strings and numbers only: cannot fail
	return b
}

type inbound struct{}

func (inbound) Check(body []byte, _ shapes.Params) (shapes.Head, error) {
	r, err := readRequest(body)
	head := shapes.Head{Model: r.Model, Stream: r.Stream, IncludeUsage: true, MaxTokens: -1, N: 1}
	if r.Most != nil {
		head.MaxTokens = *r.Most
	}
	return head, err
}

func (inbound) Decode(body []byte, _ shapes.Params, _ *dialogue.Env) (*dialogue.Request, error) {
	r, err := readRequest(body)
	if err != nil {
		return nil, err
	}
	said := []dialogue.Part{{Text: r.Say}}
	return &dialogue.Request{
		Inbound: Name, Traits: descriptor.Traits, Model: r.Model, Stream: r.Stream, IncludeUsage: true, Body: body,
		MaxTokens: r.Most, Turns: []dialogue.Turn{{Role: dialogue.User, Parts: said}},
	}, nil
}

func (inbound) NewEmitter(req *dialogue.Request, mode shapes.Mode, _ *dialogue.Env) shapes.Emitter {
	return &emitter{model: req.Model, whole: mode == shapes.Whole}
}

func (inbound) Envelope(err *dialogue.Error) []byte { return written(fault{err.Message, err.Code}) }

type fault struct {
	Fault string `json:"fault"`
	Code  any    `json:"code"`
}

func (inbound) Heartbeat(mode shapes.Mode) []byte {
	if mode == shapes.Whole {
		return nil
	}
	return []byte(":\n\n")
}

// emitter writes the events of a reply.
type emitter struct {
	model string
	whole bool
	said  string
	usage dialogue.Usage
}

func (e *emitter) Emit(dst []byte, ev *dialogue.Event) []byte {
	switch ev.Kind {
	case dialogue.EventDelta:
		e.said += ev.Text
		if !e.whole && ev.Text != "" {
			return shapes.AppendEvent(dst, "", written(reply{Piece: ev.Text}))
		}
	case dialogue.EventUsage:
		e.usage = *ev.Usage
	case dialogue.EventEnd:
		last := reply{Read: e.usage.InputTotal, Wrote: e.usage.OutputTotal}
		if !e.whole {
			return shapes.AppendEvent(dst, "", written(last))
		}
		last.Model, last.Said = e.model, e.said
		return append(dst, written(last)...)
	case dialogue.EventError:
		if !e.whole {
			return shapes.AppendEvent(dst, "", written(reply{Fault: ev.Err.Message}))
		}
	}
	return dst
}

type outbound struct{}

func (outbound) Encode(req *dialogue.Request, t dialogue.Target, _ *dialogue.Report, _ *dialogue.Env) (shapes.Call, error) {
	r := request{Model: t.Model, Stream: req.Stream, Most: req.MaxTokens}
	for _, turn := range req.Turns {
		for _, p := range turn.Parts {
			r.Say += p.Text
		}
	}
	return shapes.Call{Path: "/toy", Body: written(r), Stream: req.Stream}, nil
}

func (outbound) NewParser(int, *dialogue.Env) shapes.Parser { return &parser{} }

func (outbound) DecodeError(status int, _ http.Header, body []byte) *dialogue.Error {
	var f fault
	if json.Unmarshal(body, &f) != nil || f.Fault == "" {
		f.Fault = "the toy upstream refused the request"
	}
	return &dialogue.Error{Status: status, Type: dialogue.TypeAPI, Message: f.Fault}
}

func (outbound) Authorize(h http.Header, key string) { h.Set("X-Toy-Key", key) }

func (outbound) MaxChoices() int { return 1 }
