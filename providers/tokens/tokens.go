// Package tokens counts tokens the way a common vocabulary (o200k) would. For
// models of other vendors that is an estimate, good enough to reserve limits
// and to answer count routes that say so; what is charged is what upstreams
// tell. The vocabulary is embedded and loaded at its first use.
package tokens

import (
	"sync"

	"github.com/tiktoken-go/tokenizer"

	"stagedoor/providers/dialogue"
)

// Costs of what is not text, in tokens, as the vendors' documents put them.
const (
	perMessage = 4   // role and separators of a turn
	perReply   = 3   // what primes the answer
	perTool    = 8   // frame of a declared tool
	perImage   = 765 // an image of medium size in high detail
	perPage    = 1500
)

var codec = sync.OnceValues(func() (tokenizer.Codec, error) { return tokenizer.Get(tokenizer.O200kBase) })

// Text counts the tokens of s.
func Text(s string) int64 {
	if s == "" {
		return 0
	}
	c, err := codec()
	if err != nil {
		return Guess(len(s))
	}
	n, err := c.Count(s)
	if err != nil {
		return Guess(len(s))
	}
	return int64(n)
}

// Guess is the rule of thumb of four bytes a token, for where counting would
// cost more than it is worth.
func Guess(bytes int) int64 { return int64(bytes+3) / 4 }

// Request counts the input tokens of a request.
func Request(r *dialogue.Request) int64 {
	n := int64(perReply)
	for _, p := range r.System {
		n += perMessage + Text(p.Text)
	}
	for _, t := range r.Turns {
		n += perMessage + parts(t.Parts)
	}
	for _, t := range r.Tools {
		n += perTool + Text(t.Name) + Text(t.Description) + Text(string(t.Schema))
	}
	return n + Text(string(r.Output.Schema))
}

func parts(ps []dialogue.Part) int64 {
	var n int64
	for _, p := range ps {
		n += Text(p.Text)
		if p.Call != nil {
			n += perTool + Text(p.Call.Name) + Text(p.Call.Args)
		}
		if p.Result != nil {
			n += perTool + parts(p.Result.Parts) + Text(string(p.Result.Object))
		}
		if p.Thinking != nil {
			n += Text(p.Thinking.Text)
		}
		if p.Media != nil {
			n += media(p.Media)
		}
	}
	return n
}

func media(m *dialogue.Media) int64 {
	switch {
	case m.Text != "":
		return Text(m.Text)
	case m.Kind == dialogue.Image:
		return perImage
	default:
		return perPage
	}
}
