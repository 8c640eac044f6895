// Package responses speaks the responses shape, POST /v1/responses
// (gateway.md 2.5 and 4.5): it reads and writes requests, replies and their
// event streams, and edits stored responses as bytes. It keeps nothing: chains
// of responses, background runs and retrieval belong to those who call it.
package responses

import (
	"net/http"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// Shape is the responses shape.
var Shape shapes.Shape = shape{}

type shape struct{}

func (shape) Name() dialogue.Shape { return dialogue.Responses }

// MaxChoices is 1: the shape has no n.
func (shape) MaxChoices() int { return 1 }

// Heartbeat is a comment line without a blank line after it: the block form
// breaks an older client of this family, and so would an event type that
// clients do not know.
func (shape) Heartbeat(mode shapes.Mode) []byte {
	if mode == shapes.Whole {
		return nil
	}
	return []byte(heartbeat)
}

const heartbeat = ": keep-alive\n"

func (shape) Authorize(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

func (shape) NewEmitter(req *dialogue.Request, mode shapes.Mode, env *dialogue.Env) shapes.Emitter {
	return newEmitter(req, mode, env)
}

func (shape) NewParser(_ int, env *dialogue.Env) shapes.Parser { return &parser{env: env} }

func (shape) NewTap(o shapes.TapOptions, _ *dialogue.Env) shapes.Tap {
	return &tap{options: o, usage: dialogue.NoUsage, seq: -1}
}
