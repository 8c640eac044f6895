package gemini

import "stagedoor/providers/dialogue"

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
