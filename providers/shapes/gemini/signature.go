package gemini

import (
	"cmp"
	"stagedoor/providers/dialogue"
)

// anySignature is the value that the vendor documents for calls which another model made. The
// upstream then skips the check.
const anySignature = "skip_thought_signature_validator"

// carrier is a thought that waits for the part which brings it to the client.
type carrier struct {
	thinking dialogue.Thinking
	at       int // how much text of the answer stood before the thought
}

// carrier returns the thought of which a thoughtSignature brings back the proof in the next turn: Google's own as it
// is, any other vendor's sealed. The seal holds the text too, so that a signed block comes back byte for byte whatever
// the client did to its thought parts. A text without a proof is sealed only if the client does not see it. It returns
// false if there is nothing to bring back.
func (f *frame) carrier(th *dialogue.Thinking, text string, a *answer) (carrier, bool) {
	c := carrier{at: len(a.text)}
	if th != nil {
		c.thinking = *th
	}
	if c.thinking.Origin == Name {
		return c, c.thinking.Signature != ""
	}
	proven := c.thinking.Signature != "" || c.thinking.Redacted != "" || c.thinking.Encrypted != ""
	if f.env.Sealer == nil || !proven && (f.shown || text == "") {
		return c, false
	}
	c.thinking.Text = cmp.Or(c.thinking.Text, text)
	return c, true
}

// signature returns the thoughtSignature of the part that c has waited for. A thought is sealed here and nowhere else,
// because a seal says how much text came after the thought.
func (f *frame) signature(c carrier, a *answer) string {
	if c.thinking.Origin == Name {
		return c.thinking.Signature
	}
	c.thinking.TextAfter = len(a.text) - c.at
	return f.env.Sealer.SealBase64(&c.thinking)
}
