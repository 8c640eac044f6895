package upstream

import (
	"encoding/json"
	"regexp"
	"stagedoor/providers/dialogue"
)

const (
	redacted = "[redacted]"
	// shortestSecret is the length below which a configured key is not removed, since it would blank out words.
	shortestSecret = 6
)

// leaks match what a provider's message may reveal about the provider or the gateway's account there, which
// are addresses and keys (decisions.md "Errors"). The order matters, because a URL must be matched before its
// parts are.
var leaks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	// User, host, port and query of a URL; the query may hold a key. The path stays, because it makes
	// "cannot fetch .../cat.png" readable.
	{regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.-]*://)(?:[^\s/?#"'<>\\@]*@)?(?:\[[^\s\]]*\](?::\d+)?|[^\s/?#"'<>\\)\]]+)([^\s?#"'<>\\)\]]*)(?:[?#][^\s"'<>\\)\]]*)?`), "${1}" + redacted + "${2}"},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=*-]{8,}`), "${1} " + redacted},
	{regexp.MustCompile(`\b(?:sk|rk|pk)[-_][A-Za-z0-9_*.-]{5,}[A-Za-z0-9_*]`), redacted},
	{regexp.MustCompile(`\b(?:gsk|xai|sd|key)[-_][A-Za-z0-9_*-]{16,}`), redacted},
	{regexp.MustCompile(`\b(?:AIza|ya29\.|eyJ)[A-Za-z0-9._*-]{16,}`), redacted},
	{regexp.MustCompile(`(?i)\b((?:api[_-]?)?key|token|secret|password)=[^\s&"',;)]+`), "${1}=" + redacted},
	{regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d+)?`), redacted},
	{regexp.MustCompile(`\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%\w+)?\](?::\d+)?`), redacted},
	{regexp.MustCompile(`\b(?:[0-9A-Fa-f]{1,4}:){3,7}(?::?[0-9A-Fa-f]{1,4})?\b`), redacted},
	{regexp.MustCompile(`\b[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4})*::(?:[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4})*)?`), redacted},
	{regexp.MustCompile(`(?i)\b(?:[a-z0-9_-]+\.)+(?:com|net|org|io|ai|dev|app|cloud|internal|intranet|local|localdomain|lan|corp|svc)\b(?::\d+)?`), redacted},
	{regexp.MustCompile(`(?i)\blocalhost\b(?::\d+)?`), redacted},
	{regexp.MustCompile(`(?i)\b(lookup|dial (?:tcp|udp)[46]?) [a-z0-9_.:-]*[a-z0-9_]`), "${1} " + redacted},
	{regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9_]*(?:[-.][A-Za-z0-9_]+)+:\d{2,5}\b`), redacted},
}

// scrub returns a text of an upstream without addresses and keys, cut to dialogue.MaxErrorText. secrets are those of
// the provider.
func scrub(text string, secrets []string) string {
	if len(text) > 4*dialogue.MaxErrorText {
		text = text[:4*dialogue.MaxErrorText] // bounds the search; the rest is almost never shown
	}
	text = withoutSecrets(text, secrets)
	for _, leak := range leaks {
		text = leak.pattern.ReplaceAllString(text, leak.with)
	}
	return dialogue.ErrorText(text)
}

// scrubbed returns a copy of an upstream's error that may be shown. A type, parameter or code that holds a
// secret is left out, because the rest of it means nothing to a client.
func scrubbed(e *dialogue.Error, secrets []string) dialogue.Error {
	clean := *e
	clean.Message = scrub(e.Message, secrets)
	clean.Type = word(e.Type, secrets)
	clean.Param = word(e.Param, secrets)
	switch code := e.Code.(type) {
	case string:
		if clean.Code = word(code, secrets); clean.Code == "" {
			clean.Code = nil
		}
	case json.RawMessage:
		if word(string(code), secrets) == "" {
			clean.Code = nil
		}
	}
	if details := string(e.ModerationDetails); scrub(details, secrets) != details {
		clean.ModerationDetails = nil
	}
	return clean
}

// word returns a type, parameter or code, or "" if it holds an address or a key.
func word(s string, secrets []string) string {
	if scrub(s, secrets) != s {
		return ""
	}
	return s
}
