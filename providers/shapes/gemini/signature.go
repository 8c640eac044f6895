package gemini

import (
	"strings"

	"stagedoor/providers/dialogue"
)

// anySignature is the value the vendor documents for history that another model
// made: the upstream skips the check of the signature.
const anySignature = "skip_thought_signature_validator"

// carrier returns the thoughtSignature that brings a thought back in the next turn:
// Google's own as it is, any other vendor's sealed. The seal holds the text too,
// so that a signed block comes back byte for byte whatever the client did to
// its thought parts. "" means that there is nothing to bring back.
func carrier(th *dialogue.Thinking, text string, env *dialogue.Env) string {
	switch {
	case th == nil:
		return ""
	case th.Origin == Name:
		return th.Signature
	case env.Sealer == nil || th.Signature == "" && th.Redacted == "" && th.Encrypted == "":
		return ""
	}
	sealed := *th
	if sealed.Text == "" {
		sealed.Text = text
	}
	return env.Sealer.SealBase64(&sealed)
}

// version returns the generation in a model's name: 3 for gemini-3-pro-preview, 0 if
// it says none. Only the number next to the family's word counts.
func version(model string) int {
	_, rest, ok := strings.Cut(strings.ToLower(model), "gemini-")
	n := 0
	for i := 0; ok && i < len(rest) && i < 3 && '0' <= rest[i] && rest[i] <= '9'; i++ {
		n = n*10 + int(rest[i]-'0')
	}
	return n
}
