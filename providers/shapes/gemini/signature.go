package gemini

import "stagedoor/providers/dialogue"

// anySignature is the value the vendor documents for history that another model
// made: the upstream skips the check of the signature.
const anySignature = "skip_thought_signature_validator"

// carrier returns the thoughtSignature that brings a thought back in the next turn: Google's own as
// it is, any other vendor's sealed. The seal holds the text too, so that a signed block comes back
// byte for byte whatever the client did to its thought parts. A text without a proof is sealed only
// if the client does not see it. "" means that there is nothing to bring back.
func (f *frame) carrier(th *dialogue.Thinking, text string) string {
	var sealed dialogue.Thinking
	if th != nil {
		sealed = *th
	}
	if sealed.Origin == Name {
		return sealed.Signature
	}
	proven := sealed.Signature != "" || sealed.Redacted != "" || sealed.Encrypted != ""
	if f.env.Sealer == nil || !proven && (f.shown || text == "") {
		return ""
	}
	if sealed.Text == "" {
		sealed.Text = text
	}
	return f.env.Sealer.SealBase64(&sealed)
}

// beforeText returns a carrier whose thought is put before the text that follows it, although the part behind the text
// carries it. Clients keep the signature of a call and drop that of an empty part behind the text.
func (f *frame) beforeText(carrier string) string {
	th, ok := f.env.Sealer.Open(carrier)
	if !ok {
		return carrier
	}
	th.BeforeText = true
	return f.env.Sealer.SealBase64(th)
}
