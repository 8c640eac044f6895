package text_test

import (
	"testing"

	"stagedoor/state/identity"
)

// TestNoNumberOfAClientLowersWhatItsLimitReserves: the largest numbers that a request may have do not overflow, and
// each answer counts.
func TestNoNumberOfAClientLowersWhatItsLimitReserves(t *testing.T) {
	g := open(t)
	const largest = "9223372036854775807"
	chat := `{"model":"alpha","messages":[{"role":"user","content":"hi"}],`
	for name, c := range map[string]struct{ path, body, remaining string }{
		"chat":            {"/v1/chat/completions", chat + `"max_tokens":` + largest + `}`, "0"},
		"chat_newer_name": {"/v1/chat/completions", chat + `"max_completion_tokens":` + largest + `}`, "0"},
		"chat_n":          {"/v1/chat/completions", chat + `"max_tokens":400,"n":3}`, "0"},
		"completions":     {"/v1/completions", `{"model":"alpha","prompt":["a","b"],"max_tokens":` + largest + `}`, "0"},
		"responses":       {"/v1/responses", `{"model":"alpha","input":"hi","max_output_tokens":` + largest + `}`, "0"},
		"gemini": {"/v1beta/models/alpha:generateContent",
			`{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":` + largest + `}}`, "0"},
	} {
		g.key(name, func(k *identity.Key) { k.Limits = identity.Limits{TPM: 1000} })
		r := g.do("POST", c.path, c.body, g.as(name)...)
		if got := r.header.Get("X-Ratelimit-Remaining-Tokens"); r.status != 200 || got != c.remaining {
			t.Errorf("%s: status %d with %q tokens left, want %q: %.200s", name, r.status, got, c.remaining, r.body)
		}
	}
}
