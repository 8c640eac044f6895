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

// Count counts the tokens of s.
func Count(s string) int64 {
	if s == "" {
		return 0
	}
	c, err := codec()
	if err != nil {
		return Estimate(len(s))
	}
	n, err := c.Count(s)
	if err != nil {
		return Estimate(len(s))
	}
	return int64(n)
}

// Estimate is the rule of thumb of four bytes a token, for where counting would
// cost more than it is worth.
func Estimate(bytes int) int64 { return int64(bytes+3) / 4 }

// maxCounted is how many bytes are looked up in the vocabulary, which takes about
// a microsecond for each.
const maxCounted = 1 << 20

// counter counts the texts of one request.
type counter struct{ bytes, tokens int64 }

func (c *counter) text(s string) int64 {
	known := s
	if left := maxCounted - c.bytes; int64(len(s)) > left {
		known = s[:left]
	}
	n := Count(known)
	c.bytes, c.tokens = c.bytes+int64(len(known)), c.tokens+n
	if rest := int64(len(s) - len(known)); rest > 0 {
		n += rest * c.tokens / c.bytes
	}
	return n
}

// CountRequest counts the input tokens of a request. Text beyond the first maxCounted
// bytes is taken to be like the text before.
func CountRequest(r *dialogue.Request) int64 {
	var c counter
	n := int64(perReply)
	for _, p := range r.System {
		n += perMessage + c.text(p.Text)
	}
	for _, t := range r.Turns {
		n += perMessage + c.parts(t.Parts, 0)
	}
	for _, t := range r.Tools {
		n += perTool + c.text(t.Name) + c.text(t.Description) + c.text(string(t.Schema))
	}
	for _, raw := range r.Prompts {
		text, _ := dialogue.PromptText(raw)
		n += c.text(text)
	}
	return n + c.text(string(r.Output.Schema))
}

func (c *counter) parts(ps []dialogue.Part, depth int) int64 {
	var n int64
	for _, p := range ps {
		n += c.text(p.Text)
		if p.Call != nil {
			n += perTool + c.text(p.Call.Name) + c.text(p.Call.Args)
		}
		if p.Result != nil && depth == 0 {
			n += perTool + c.parts(p.Result.Parts, 1) + c.text(string(p.Result.Object))
		}
		if p.Thinking != nil {
			n += c.text(p.Thinking.Text)
		}
		if p.Media != nil {
			n += c.media(p.Media)
		}
	}
	return n
}

func (c *counter) media(m *dialogue.Media) int64 {
	switch {
	case m.Text != "":
		return c.text(m.Text)
	case m.Kind == dialogue.Image:
		return perImage
	default:
		return perPage
	}
}
