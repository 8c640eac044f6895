package sandbox

import (
	"context"
	"net/http"

	"stagedoor/providers/dialogue"
)

// Model is a simulator set up for use. It is immutable and safe for concurrent
// use.
type Model struct {
	Env *dialogue.Env
	// Base is what requests are delivered by unless they order otherwise.
	Base Script
	// Names are the models Handler lists.
	Names []string
}

// Simulate answers a request without HTTP. header is the client's; it may order
// faults. A reply that is cut off, or turns into garbage, ends with an error.
func (m *Model) Simulate(ctx context.Context, req *dialogue.Request, header http.Header, emit func(*dialogue.Event) error) error {
	script, err := ParseScript(m.Base, header.Get(Header), lastText(req))
	if err != nil {
		failure, _ := err.(*dialogue.Error)
		return emit(&dialogue.Event{Kind: dialogue.EventError, Err: failure})
	}
	return Generate(ctx, req, script, m.Env, emit)
}

// lastText is where a request may order faults.
func lastText(req *dialogue.Request) string { return notice(req, 0).text }

func (m *Model) names() []string {
	if len(m.Names) > 0 {
		return m.Names
	}
	return []string{"sandbox"}
}
